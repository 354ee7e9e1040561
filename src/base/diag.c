// Diagnostics: findings with a place in a text, rendered with the source line and a caret. Also status names, version.
//
// Texts come from anywhere, so nothing of them reaches a terminal unescaped, and what a finding keeps is bounded:
// length of message and of shown line, and number of findings. Running out of memory here loses findings, never the
// status.
#include "base/base.h"

#include <stdio.h>

enum {
  MAX_KEPT = 1000,    // findings; one more tells how many were dropped
  MAX_MESSAGE = 4000, // bytes
  MAX_NAME = 1000,    // bytes of a file's name
  WINDOW = 110,       // columns shown of a source line
  WINDOW_BEFORE = 70, // of these at most so many before the caret
  TAB = 8,
};

// --- harmless text ------------------------------------------------------------------------------------------------

// Length of the well-formed UTF-8 sequence at p, 0 if there is none; stores its code point.
static size_t utf8_length(const char *z, size_t n, uint32_t *code) {
  const unsigned char *p = (const unsigned char *)z;
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
  if (len == 0 || len > n) return 0;
  uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
  for (size_t i = 1; i < len; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (p[i] & 0x3f);
  }
  if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
  *code = c;
  return len;
}

// Control codes of any kind and marks that reorder or hide what is displayed.
static bool is_harmful(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe0000 && c < 0xe1000);
}

// Bytes taken by the next thing to show: one character, or one byte that must be escaped (*harmless false).
static size_t next_piece(const char *p, size_t n, bool *harmless) {
  uint32_t c;
  size_t len = utf8_length(p, n, &c);
  *harmless = len && !is_harmful(c);
  return *harmless ? len : 1;
}

static size_t put_piece(char *out, const char *p, size_t len, bool harmless) {
  static const char hex[] = "0123456789abcdef";
  unsigned char c = (unsigned char)*p;
  if (harmless)
    memcpy(out, p, len);
  else
    memcpy(out, (const char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, len = 4);
  return len;
}

// Copies text with everything harmful escaped, cut off with "..." where it would exceed the room (NUL included).
static size_t put_harmless(char *out, size_t room, kl_str s) {
  size_t n = 0;
  for (size_t i = 0; i < s.n;) {
    bool harmless;
    size_t len = next_piece(s.p + i, s.n - i, &harmless);
    if (n + 4 + sizeof "..." > room) {
      memcpy(out + n, "...", 3);
      n += 3;
      break;
    }
    n += put_piece(out + n, s.p + i, len, harmless);
    i += len;
  }
  out[n] = 0;
  return n;
}

// --- places -------------------------------------------------------------------------------------------------------

typedef struct place {
  kl_str line;       // without its end
  size_t begin, end; // in the line
  size_t number;     // of the line, from 1
} place;

void kl_read_source(kl_ctx *cx, const kl_source *src) {
  cx->found = (kl_line){.src = src, .number = 1};
}

static kl_line find_line(kl_ctx *cx, const kl_source *src, size_t pos) {
  bool behind = cx->found.src == src && cx->found.pos <= pos;
  kl_line line = behind ? cx->found : (kl_line){.src = src, .number = 1};
  size_t at = line.pos;
  for (const char *p; at < pos && (p = memchr(src->text.p + at, '\n', pos - at)); line.number++)
    line.start = at = (size_t)(p - src->text.p) + 1;
  line.pos = pos;
  if (cx->found.src == src) cx->found = line;
  return line;
}

// Of a long line only what may be shown is looked at.
static place place_of(kl_ctx *cx, kl_span where) {
  enum { REACH = 4 * (WINDOW + 1) };
  kl_str text = where.src->text;
  size_t begin = where.begin < text.n ? where.begin : text.n;
  kl_line found = find_line(cx, where.src, begin);
  size_t start = found.start, reach = text.n - begin < REACH ? text.n : begin + REACH;
  const char *stop = begin < text.n ? memchr(text.p + begin, '\n', reach - begin) : NULL;
  size_t n = (stop ? (size_t)(stop - text.p) : reach) - start;
  if (n && text.p[start + n - 1] == '\r') n--;
  size_t end = where.end > start ? where.end - start : 0;
  place at = {.line = {text.n ? text.p + start : "", n}, .begin = begin - start, .end = end, .number = found.number};
  if (at.begin > n) at.begin = n;
  if (at.end > n) at.end = n;
  return at;
}

static uint32_t clamp_u32(size_t v) {
  return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

// Columns that a piece takes; a tab goes up to the next stop.
static size_t width_of(char c, bool harmless, size_t column) {
  return c == '\t' ? TAB - column % TAB : harmless ? 1 : 4;
}

// Where the window begins: at the start of a piece, so far before the caret that it is sure to be in the window.
static size_t window_start(const place *at) {
  const char *p = at->line.p;
  size_t start = at->begin > WINDOW_BEFORE ? at->begin - WINDOW_BEFORE : 0, columns = 0;
  for (int back = 0; start && back < 3 && ((unsigned char)p[start] & 0xc0) == 0x80; back++) start++;
  bool harmless;
  for (size_t i = start, len; i < at->begin; i += len) {
    len = next_piece(p + i, at->line.n - i, &harmless);
    columns += width_of(p[i], harmless, 0);
  }
  for (size_t len; columns > WINDOW_BEFORE; start += len) {
    len = next_piece(p + start, at->line.n - start, &harmless);
    columns -= width_of(p[start], harmless, 0);
  }
  return start;
}

// Two lines of text: the shown part of the source line, and the marks below it. Each piece is marked over its whole
// width; a tab is shown as spaces, so that both lines agree in every terminal.
typedef struct picture {
  char line[4 + 3 + 4 * (WINDOW + TAB) + 3 + 1];
  char marks[WINDOW + 2 * TAB];
} picture;

static size_t put_shown(char *out, const char *p, size_t len, bool harmless, size_t width) {
  if (*p != '\t') return put_piece(out, p, len, harmless);
  memset(out, ' ', width);
  return width;
}

static void draw(picture *pic, const place *at) {
  size_t i = window_start(at), column = i ? 3 : 0, n = column;
  memcpy(pic->line, "...", 3);
  memset(pic->marks, ' ', sizeof pic->marks);
  while (i < at->line.n && column < WINDOW) {
    const char *p = at->line.p + i;
    bool harmless;
    size_t len = next_piece(p, at->line.n - i, &harmless);
    size_t width = width_of(*p, harmless, column);
    n += put_shown(pic->line + n, p, len, harmless, width);
    bool first = at->begin >= i && at->begin < i + len;
    if (first || (i > at->begin && i < at->end)) memset(pic->marks + column, '~', width);
    if (first) pic->marks[column] = '^';
    column += width;
    i += len;
  }
  if (i < at->line.n) n = (size_t)(stpcpy(pic->line + n, "...") - pic->line);
  if (at->begin == at->line.n) pic->marks[column++] = '^';
  while (column && pic->marks[column - 1] == ' ') column--;
  pic->line[n] = pic->marks[column] = 0;
}

// --- findings -----------------------------------------------------------------------------------------------------

static const char *const severity_names[] = {[KILN_ERROR] = "error", [KILN_WARNING] = "warning", [KILN_NOTE] = "note"};

static const char *try_text(kl_ctx *cx, const char *text) {
  size_t size = strlen(text) + 1;
  char *p = kl_arena_try_alloc(&cx->diag_arena, size);
  return p ? memcpy(p, text, size) : NULL;
}

// Fills in d's place and text; false if memory is short.
static bool render(kl_ctx *cx, kiln_diagnostic *d, kl_span where) {
  char head[MAX_NAME + 64] = "", full[sizeof head + MAX_MESSAGE + sizeof(picture) + 32];
  picture pic;
  if (where.src) {
    place at = place_of(cx, where);
    size_t n = put_harmless(head, MAX_NAME, kl_str_of(where.src->name ? where.src->name : "<text>"));
    d->line = clamp_u32(at.number);
    d->column = clamp_u32(at.begin + 1);
    if (!(d->file = try_text(cx, head))) return false;
    snprintf(head + n, sizeof head - n, ":%zu:%zu: ", at.number, at.begin + 1);
    draw(&pic, &at);
  }
  int n = snprintf(full, sizeof full, "%s%s: %s\n", head, severity_names[d->severity], d->message);
  if (where.src) snprintf(full + n, sizeof full - (size_t)n, "    %s\n    %s\n", pic.line, pic.marks);
  return (d->text = try_text(cx, full)) != NULL;
}

static bool reserve_finding(kl_ctx *cx) {
  if (cx->diags.n < cx->diags.cap) return true;
  size_t cap = cx->diags.cap ? cx->diags.cap * 2 : 8;
  kiln_diagnostic *p = kl_try_alloc(cx, cap * sizeof *p);
  if (!p) return false;
  if (cx->diags.n) memcpy(p, cx->diags.p, cx->diags.n * sizeof *p);
  kl_free(cx, cx->diags.p, cx->diags.cap * sizeof *p);
  cx->diags.p = p;
  cx->diags.cap = cap;
  return true;
}

static void drop(kl_ctx *cx) {
  cx->dropped++;
  snprintf(cx->dropped_message, sizeof cx->dropped_message, "%zu more findings are not shown", cx->dropped);
  snprintf(cx->dropped_text, sizeof cx->dropped_text, "note: %s\n", cx->dropped_message);
  cx->dropped_note = (kiln_diagnostic){.severity = KILN_NOTE, .message = cx->dropped_message, .text = cx->dropped_text};
}

// The room for messages exceeds MAX_MESSAGE only so that put_harmless sees that a message is too long.
static bool keep(kl_ctx *cx, kiln_diagnostic d, kl_span where, const char *fmt, va_list ap) {
  char raw[MAX_MESSAGE + 8], message[MAX_MESSAGE];
  int n = vsnprintf(raw, sizeof raw, fmt, ap);
  put_harmless(message, sizeof message, (kl_str){raw, n < 0 ? 0 : (size_t)n < sizeof raw ? (size_t)n : sizeof raw - 1});
  if (!(d.message = try_text(cx, message)) || !render(cx, &d, where) || !reserve_finding(cx)) return false;
  cx->diags.p[cx->diags.n++] = d;
  return true;
}

// Warnings may fill half of the room only: no number of them hides the error that follows.
static void report(kl_ctx *cx, kiln_severity severity, kiln_status s, kl_span where, const char *fmt, va_list ap) {
  size_t room = severity == KILN_ERROR ? MAX_KEPT : MAX_KEPT / 2;
  kiln_diagnostic d = {.severity = severity, .status = s};
  if (cx->diags.n >= room || !keep(cx, d, where, fmt, ap)) drop(cx);
}

void kl_diag_repeat(kl_ctx *cx, const kiln_diagnostic *d) {
  kiln_diagnostic own = *d;
  if (d->severity == KILN_ERROR) cx->errors++;
  own.file = d->file ? try_text(cx, d->file) : NULL;
  own.message = try_text(cx, d->message);
  own.text = try_text(cx, d->text);
  bool whole = own.message && own.text && (own.file || !d->file);
  if (cx->diags.n >= MAX_KEPT || !whole || !reserve_finding(cx))
    drop(cx);
  else
    cx->diags.p[cx->diags.n++] = own;
}

kiln_status kl_vfail(kl_ctx *cx, kiln_status s, kl_span where, const char *fmt, va_list ap) {
  cx->errors++;
  report(cx, KILN_ERROR, s, where, fmt, ap);
  return s;
}

kiln_status kl_fail(kl_ctx *cx, kiln_status s, kl_span where, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  kl_vfail(cx, s, where, fmt, ap);
  va_end(ap);
  return s;
}

void kl_warn(kl_ctx *cx, kl_span where, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(cx, KILN_WARNING, KILN_OK, where, fmt, ap);
  va_end(ap);
}

kiln_status kl_out_of_memory(kl_ctx *cx, size_t size, const char *what) {
  if (cx->limit.refused) {
    cx->limit.refused = false;
    return kl_fail(cx, KILN_E_MEMORY, KL_NOWHERE, "out of memory: wanted %zu bytes for %s, found %lld available", size,
                   what, (long long)cx->limit.left);
  }
  return kl_fail(cx, KILN_E_MEMORY, KL_NOWHERE, "out of memory: wanted %zu bytes for %s", size, what);
}

// --- what the user sees -------------------------------------------------------------------------------------------

kl_diag_mark kl_diag_here(const kl_ctx *cx) {
  return (kl_diag_mark){cx->diags.n};
}

void kl_diag_forget(kl_ctx *cx, kl_diag_mark from, kl_diag_mark to) {
  for (size_t i = from.kept; i < to.kept; i++) cx->errors -= cx->diags.p[i].severity == KILN_ERROR;
  if (to.kept == from.kept) return;
  memmove(&cx->diags.p[from.kept], &cx->diags.p[to.kept], (cx->diags.n - to.kept) * sizeof *cx->diags.p);
  cx->diags.n -= to.kept - from.kept;
}

size_t kiln_diagnostics_count(const kiln_context *cx) {
  return cx ? cx->diags.n + (cx->dropped > 0) : 0;
}

const kiln_diagnostic *kiln_diagnostics_get(const kiln_context *cx, size_t i) {
  if (!cx) return NULL;
  if (i < cx->diags.n) return &cx->diags.p[i];
  return i == cx->diags.n && cx->dropped ? &cx->dropped_note : NULL;
}

void kiln_diagnostics_clear(kiln_context *cx) {
  if (!cx) return;
  cx->diags.n = 0;
  cx->clears++;
  cx->errors = cx->dropped = 0;
  kl_arena_free(&cx->diag_arena);
}

const char *kiln_status_name(kiln_status s) {
  switch (s) {
  case KILN_OK: return "ok";
  case KILN_E_INVALID: return "invalid input";
  case KILN_E_UNSUPPORTED: return "not supported";
  case KILN_E_MEMORY: return "out of memory";
  case KILN_E_DEVICE: return "device error";
  case KILN_E_INTERNAL: return "internal error";
  case KILN_E_CANCELLED: return "cancelled";
  }
  return "unknown status";
}

#define TEXT_OF(x)       #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *kiln_version(void) {
  return VERSION(KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH);
}
