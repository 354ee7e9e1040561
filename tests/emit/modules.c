// ENTRY of anything: random modules of many ops beside fusions, calls, branches and tuples, in memory on the host and
// on the simulator, the same bits and right by the evaluator; modules of the corpus; how many launches there are, what
// scratch memory they take, and how time grows.

#include "harness.h"
#include "loops.h"
#include "lower/choose/choose.h"
#include "random_module.h"
#include "support/share.h"
#include "support/slow.h"
#include "support/suite.h"

#include <stdlib.h>
#include <time.h>

static kiln_context *cx;

static void make(void) {
  cx = kiln_context_create(NULL);
  kl_sb_init(&text, cx);
}
static void drop(void) {
  kl_sb_free(&text);
  kiln_context_destroy(&cx);
}

static kiln_module *parse_text(const char *name) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, name, text.p, text.n, &m) != KILN_OK) give_up(0, "parsing", cx, text.p);
  return m;
}

// --- random modules -------------------------------------------------------------------------------------------------

START_TEST(random_modules) {
  uint64_t n = share_of(8);
  for (uint64_t k = 0; k < n; k++) {
    seed = k * 977 + 5;
    put_random(30 + below(k % 8 == 7 ? 270 : 60));
    kiln_module *m = parse_text("random.hlo");
    strategy.rounds = (const uint32_t[]){0, KL_NONE, 1, 4}[k % 4];
    run_both_and_check(cx, m, 3, (unsigned)k & ~1u, text.p);
    strategy.rounds = 0;
    kiln_module_destroy(&m);
  }
}
END_TEST

// Each level of a loop's body wants the one before at two indices: 2^24 of the first for each element of the last.
START_TEST(bodies_are_cut) {
  enum { N = 331 };
  text.n = 0;
  kl_sbf(&text,
         "HloModule doubling\n\nagain { s = (s32[], f32[%d]) parameter(0)\n"
         "  i = s32[] get-tuple-element(s), index=0 z = s32[] constant(0)\n"
         "  ROOT r = pred[] compare(i, z), direction=GT }\n",
         N);
  kl_sbf(&text,
         "body { s = (s32[], f32[%d]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
         "  one = s32[] constant(1) j = s32[] subtract(i, one) x0 = f32[%d] get-tuple-element(s), index=1\n",
         N, N);
  for (int i = 0; i < 24; i++) {
    int by = (int)((1ll << (i % 20)) * 7 + i) % N;
    if (!by) by = 1;
    kl_sbf(&text, "  a%d = f32[%d] slice(x%d), slice={[%d:%d]} b%d = f32[%d] slice(x%d), slice={[0:%d]}\n", i, N - by,
           i, by, N, i, by, i, by);
    kl_sbf(&text, "  r%d = f32[%d] concatenate(a%d, b%d), dimensions={0}\n", i, N, i, i);
    kl_sbf(&text, "  m%d = f32[%d] maximum(x%d, r%d) x%d = f32[%d] subtract(m%d, r%d)\n", i, N, i, i, i + 1, N, i, i);
  }
  kl_sbf(&text,
         "  ROOT t = (s32[], f32[%d]) tuple(j, x24) }\nENTRY e { p = f32[%d] parameter(0) n = s32[] constant(2)\n"
         "  t = (s32[], f32[%d]) tuple(n, p)\n"
         "  ROOT w = (s32[], f32[%d]) while(t), condition=again, body=body }\n",
         N, N, N, N);
  kiln_module *m = parse_text("doubling.hlo");
  run_both_and_check(cx, m, 3, 2, text.p);
  kiln_module_destroy(&m);
}
END_TEST

// A loop over a counter and an array, of which `body` makes y, and of which XLA would have said that it has two rounds,
// as the manifest has it: how many launches there are, how
// many of these are copies, how many steps of which kinds, and bytes of scratch memory at most.
START_TEST(loops_are_these) {
  static const struct {
    const char *what, *limit, *body;
    unsigned launches, copies, repeats, whiles, branches, scratch;
  } row[] = {
      {"element by element, a few rounds: one kernel", "constant(9)", "y = f32[64,32] multiply(x, x)", 1, 0, 0, 0, 0,
       0},
      {"element by element, many rounds: one kernel", "constant(900)", "y = f32[64,32] multiply(x, x)", 1, 0, 0, 0, 0,
       0},
      {"element by element, by data: one kernel", "copy(n)", "y = f32[64,32] multiply(x, x)", 1, 0, 0, 0, 0, 0},
      {"element by element beside a sum, many rounds: in place", "constant(900)",
       "d = f32[64,48] iota(), iota_dimension=1 v = f32[64] reduce(d, h), dimensions={1}, to_apply=sum "
       "b = f32[64,32] broadcast(v), dimensions={0} y = f32[64,32] multiply(x, b)",
       6, 2, 1, 0, 0, 768},
      {"element by element beside a sum, by data: in place", "copy(n)",
       "d = f32[64,48] iota(), iota_dimension=1 v = f32[64] reduce(d, h), dimensions={1}, to_apply=sum "
       "b = f32[64,32] broadcast(v), dimensions={0} y = f32[64,32] multiply(x, b)",
       7, 2, 0, 1, 0, 1024},
      {"rows of an array, by data: what changes alone is written", "copy(n)",
       "u = f32[1,32] broadcast(h), dimensions={} y = f32[64,32] dynamic-update-slice(x, u, i, c)", 6, 2, 0, 1, 0,
       1024},
      {"others' elements, many rounds: two places", "constant(900)", "y = f32[64,32] reverse(x), dimensions={0}", 7, 2,
       1, 0, 0, 8704},
      {"others' elements, by data: two places", "copy(n)", "y = f32[64,32] reverse(x), dimensions={1}", 10, 3, 0, 1, 1,
       9216},
      {"rows that sums make, a few rounds: each writes its own", "constant(3)",
       "v = f32[32] reduce(x, h), dimensions={0}, to_apply=sum u = f32[1,32] reshape(v) "
       "y = f32[64,32] dynamic-update-slice(x, u, i, c)",
       10, 0, 0, 0, 0, 768},
      {"sums, a few rounds: one after the other", "constant(3)",
       "v = f32[64] reduce(x, h), dimensions={1}, to_apply=sum y = f32[64,32] broadcast(v), dimensions={0}", 0, 0, 0, 0,
       0, 8704},
  };
  for (size_t k = 0; k < KL_COUNT(row); k++) {
    if (!share_has(k, 1)) continue;
    text.n = 0;
    kl_sbf(&text,
           "HloModule loop\n\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
           "again { s = (s32[], f32[64,32], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 "
           "n = s32[] get-tuple-element(s), index=2 m = s32[] %s ROOT r = pred[] compare(i, m), direction=LT }\n"
           "body { s = (s32[], f32[64,32], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 "
           "x = f32[64,32] get-tuple-element(s), index=1 n = s32[] get-tuple-element(s), index=2 "
           "c = s32[] constant(1) h = f32[] constant(0.5) j = s32[] add(i, c) %s "
           "ROOT r = (s32[], f32[64,32], s32[]) tuple(j, y, n) }\n"
           "ENTRY e { p = f32[64,32] parameter(0) q = s32[] parameter(1) m = s32[] constant(15) n = s32[] and(q, m) "
           "z = s32[] constant(0) t = (s32[], f32[64,32], s32[]) tuple(z, p, n) "
           "w = (s32[], f32[64,32], s32[]) while(t), condition=again, body=body, "
           "backend_config={\"known_trip_count\":{\"n\":\"2\"}} "
           "ROOT r = f32[64,32] get-tuple-element(w), index=1 }\n",
           row[k].limit, row[k].body);
    kiln_module *m = parse_text("loop.hlo");
    strategy.rounds = KL_NONE;
    const kiln_artifact *a = compiled_for(cx, m, 3, (unsigned)k, text.p);
    const kiln_manifest *f = kiln_artifact_manifest(a);
    unsigned copies = 0, kinds[5] = {0};
    for (size_t i = 0; i < f->launch_count; i++) copies += strncmp(f->launches[i].kernel, "copy_", 5) == 0;
    for (size_t i = 0; i < f->step_count; i++) kinds[f->steps[i].kind]++;
    bool same = (!row[k].launches || f->launch_count == row[k].launches) && copies == row[k].copies &&
                kinds[KILN_STEP_REPEAT] == row[k].repeats && kinds[KILN_STEP_WHILE] == row[k].whiles &&
                kinds[KILN_STEP_BRANCH] == row[k].branches && f->scratch_bytes <= row[k].scratch;
    ck_assert_msg(same, "%s: %zu launches, %u copies, %u repeated, %u while, %u branches, %llu bytes", row[k].what,
                  f->launch_count, copies, kinds[KILN_STEP_REPEAT], kinds[KILN_STEP_WHILE], kinds[KILN_STEP_BRANCH],
                  (unsigned long long)f->scratch_bytes);
    run_both_and_check(cx, m, 3, 2 * (unsigned)k, text.p);
    strategy.rounds = 0;
    f = kiln_artifact_manifest(compiled_for(cx, m, 3, (unsigned)k, text.p));
    bool rolled = row[k].repeats || row[k].whiles;
    ck_assert_msg(!rolled || (f->launch_count == 1 && !f->step_count), "%s: %zu launches, %zu steps", row[k].what,
                  f->launch_count, f->step_count);
    run_both_and_check(cx, m, 3, 2 * (unsigned)k, text.p);
    kiln_module_destroy(&m);
  }
}
END_TEST

// A loop in a loop, which begins with the sines of an array: these are written over the array, which lies where a
// result of ENTRY does, once all that reads it is done; and so is an array of which each element is read where it is
// written.
START_TEST(loops_in_loops_write_results) {
  static const char state[] = "(s32[], f32[64,32], f32[64,32], s32[])";
  for (unsigned again = 0; again < 2; again++) {
    text.n = 0;
    kl_sb_puts(&text,
               "HloModule nest\n\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
               "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n");
    for (int inner = 0; inner < 2; inner++) {
      kl_sbf(&text,
             "%s { s = %s parameter(0) i = s32[] get-tuple-element(s), index=0\n"
             "  n = s32[] get-tuple-element(s), index=3 ROOT r = pred[] compare(i, n), direction=LT }\n",
             inner ? "within" : "again", state);
    }
    for (int inner = 1; inner >= 0; inner--) {
      kl_sbf(&text,
             "%s { s = %s parameter(0) i = s32[] get-tuple-element(s), index=0\n"
             "  x = f32[64,32] get-tuple-element(s), index=1 o = f32[64,32] get-tuple-element(s), index=2\n"
             "  n = s32[] get-tuple-element(s), index=3 c = s32[] constant(1) j = s32[] add(i, c)\n"
             "  h = f32[] constant(0.25) z = s32[] constant(0)\n",
             inner ? "lines" : "rounds", state);
      if (inner)
        kl_sb_puts(
            &text,
            "  v = f32[64] reduce(x, h), dimensions={1}, to_apply=sum\n"
            "  b = f32[64,32] broadcast(v), dimensions={0} y = f32[64,32] subtract(x, b) k = f32[64,32] copy(o)\n");
      else
        kl_sbf(
            &text,
            "  f = f32[64,32] sine(x) l = f32[64,32] sort(%s), dimensions={1}, to_apply=less t = %s tuple(z, f, l, n)\n"
            "  w = %s while(t), condition=within, body=lines y = f32[64,32] get-tuple-element(w), index=1\n"
            "  v = f32[64] reduce(y, h), dimensions={1}, to_apply=sum b = f32[64,32] broadcast(v), dimensions={0}\n"
            "  g = f32[64,32] get-tuple-element(w), index=2 a = f32[64,32] multiply(b, g)\n"
            "  k = f32[64,32] add(a, o)\n",
            again ? "x" : "o", state, state);
      kl_sbf(&text, "  ROOT r = %s tuple(j, y, k, n) }\n", state);
    }
    kl_sbf(&text,
           "ENTRY e { p = f32[64,32] parameter(0) q = s32[] parameter(1) m = s32[] constant(3) n = s32[] and(q, m)\n"
           "  z = s32[] constant(0) o = f32[64,32] sine(p) t = %s tuple(z, p, o, n)\n"
           "  w = %s while(t), condition=again, body=rounds x = f32[64,32] get-tuple-element(w), index=1\n"
           "  k = f32[64,32] get-tuple-element(w), index=2 ROOT r = (f32[64,32], f32[64,32]) tuple(x, k) }\n",
           state, state);
    kiln_module *m = parse_text("nest.hlo");
    strategy.rounds = KL_NONE;
    const kiln_artifact *a = compiled_for(cx, m, 3, again, text.p);
    const kiln_manifest *f = kiln_artifact_manifest(a);
    bool there[2] = {false};
    for (size_t i = 0; i < f->launch_count; i++)
      for (size_t k = 0; k < f->launches[i].argument_count; k++) {
        const kiln_argument *to = &f->launches[i].arguments[k];
        if (to->kind != KILN_ARGUMENT_SLOT || !to->output) continue;
        there[0] |= f->launches[i].kernel[0] == 'f' && to->slot == 2;
        there[1] |= f->launches[i].kernel[0] == 'k' && to->slot == 3;
      }
    ck_assert_msg(there[0] && there[1], "%s: the sines %d, the sums %d", again ? "wanted again" : "once", there[0],
                  there[1]);
    run_both_and_check(cx, m, 3, 2 * again, text.p);
    strategy.rounds = 0;
    run_both_and_check(cx, m, 3, 2 * again, text.p);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Folds in loops: by launches, and by blocks of one, as cost says, one, and a cluster of eight. The same bits as on the
// host, with zero rounds or some, and nothing for ptxas to spill.
START_TEST(loops_with_folds_inside) {
  static const uint32_t ways[] = {0, 1, 8, KL_NONE};
  batch batches[TARGETS];
  batches_init(batches, cx);
  for (unsigned k = 0; k < KL_COUNT(loops); k++) {
    text.n = 0;
    kl_sb_puts(&text, loops[k].text);
    kiln_module *m = parse_text("loops.hlo");
    for (unsigned w = 0; w < KL_COUNT(ways); w++) {
      if (!share_has(k + 5 * w, 4)) continue;
      unsigned t = w == 2 ? 3 : (k + w) % TARGETS;
      strategy.rounds = ways[w];
      const kiln_manifest *f = kiln_artifact_manifest(compiled_for(cx, m, t, k, text.p));
      bool together = ways[w] != KL_NONE, is = f->launch_count <= loops[k].launches && !f->step_count;
      ck_assert_msg(is == together, "%s, %u: %zu launches", loops[k].what, w, f->launch_count);
      uint32_t blocks = f->launches[f->launch_count - 1].grid[0];
      ck_assert_msg(!together || !ways[w] || blocks == ways[w], "%s, %u: %u blocks", loops[k].what, w, blocks);
      for (unsigned seed = 0; seed < 2; seed++) run_both_and_check(cx, m, t, 4 * w + seed, text.p);
      if (together) batch_add(batches, t, cx, m, 4 * k + w, text.p);
    }
    strategy.rounds = 0;
    kiln_module_destroy(&m);
  }
  batches_free(batches);
}
END_TEST

// --- memory ---------------------------------------------------------------------------------------------------------

enum { KINDS_OF_SIZES = 6 };
static const int lengths[KINDS_OF_SIZES] = {256, 1000, 4096, 5000, 20000, 65536};

static void put_reading(int f, int a, int b, int out) {
  kl_sbf(&text, "f%d { p = f32[%d] parameter(0) q = f32[%d] parameter(1)\n  z = f32[] constant(0)\n", f, a, b);
  kl_sbf(&text,
         "  a = f32[1] slice(p), slice={[0:1]} b = f32[1] slice(q), slice={[3:4]} c = f32[1] add(a, b)\n"
         "  d = f32[] reshape(c) ROOT r = f32[%d] broadcast(d), dimensions={} }\n",
         out);
}

// Fusions that each read up to three values, of any lengths, and write one: rows of the first, sums of the others.
static int put_given(int n, int *length, int (*reads)[2]) {
  text.n = 0;
  kl_sb_puts(&text,
             "HloModule memory\n\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n");
  for (int i = 1; i < n; i++) {
    length[i] = lengths[below(KINDS_OF_SIZES)];
    reads[i][0] = i < 2 ? 0 : i - 1 - (int)below((uint32_t)(i < 20 ? i : 20));
    reads[i][1] = chance(50) ? i - 1 : (int)below((uint32_t)i);
    put_reading(i, length[reads[i][0]], length[reads[i][1]], length[i]);
  }
  kl_sbf(&text, "ENTRY e {\n  v0 = f32[%d] parameter(0)\n", length[0]);
  for (int i = 1; i < n; i++)
    kl_sbf(&text, "  %sv%d = f32[%d] fusion(v%d, v%d), kind=kLoop, calls=f%d\n", i + 1 == n ? "ROOT " : "", i,
           length[i], reads[i][0], reads[i][1], i);
  kl_sb_puts(&text, "}\n");
  return n;
}

// The most that is there at one launch: what it writes, and what it or a later one reads.
static uint64_t live_at_most(int n, const int *length, int (*const reads)[2]) {
  uint64_t most = 0;
  for (int i = 1; i < n; i++) {
    uint64_t live = 0;
    for (int v = 1; v + 1 < n && v <= i; v++) {
      bool wanted = v == i;
      for (int k = i; k < n && !wanted; k++) wanted = reads[k][0] == v || reads[k][1] == v;
      live += wanted ? (uint64_t)length[v] * 4 : 0;
    }
    most = live > most ? live : most;
  }
  return most;
}

// Where kernels are launches of their own: buffers of those that are one are there for all of it.
//
// Those first that no plain order places well: 346 by bytes takes 1.104 times what is there, 803 and 1260 1.134 times.
static const unsigned hard_to_place[] = {803, 1260, 346, 1666};

START_TEST(buffers_share_memory) {
  enum { N = 120 };
  int length[N] = {256}, reads[N][2] = {{0}};
  double worst = 0;
  for (uint64_t k = 0; k < share_of(8); k++) {
    unsigned draw = k < KL_COUNT(hard_to_place) ? hard_to_place[k] : (unsigned)k;
    seed = 31 * (uint64_t)draw + 7;
    put_given(20 + (int)below(N - 20), length, reads);
    int n = 0;
    for (const char *at = text.p; (at = strstr(at, " fusion(")); at++) n++;
    kiln_module *m = parse_text("memory.hlo");
    kiln_compile_params p = {.struct_size = sizeof p, .separate_launches = true};
    kiln_artifact *a = NULL;
    if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compiling", cx, text.p);
    uint64_t bound = live_at_most(n + 1, length, reads), scratch = kiln_artifact_manifest(a)->scratch_bytes;
    double times = (double)scratch / (double)bound;
    ck_assert_msg(scratch >= bound && times <= 1.1, "seed %u: %llu bytes, %llu are there at most", draw,
                  (unsigned long long)scratch, (unsigned long long)bound);
    worst = times > worst ? times : worst;
    if (k < 2) run_both_and_check(cx, m, 3, 2 * (unsigned)k, text.p);
    kiln_artifact_destroy(&a);
    kiln_module_destroy(&m);
  }
  printf("# scratch memory is at most %.3f times what is there at one launch\n", worst);
}
END_TEST

// Fusions before a loop, in its body and behind it, of which each reads what the one before it makes, so that there is
// one order, and something else. Values: 1 ... are what fusions make, STATE ... what the loop carries, in it and behind
// it. The last fusions of the body make that anew.
enum { STATE = 100, MOST_CARRIED = 3, MOST_KEPT = 3 };
typedef struct looping {
  int before, body, behind, carried, kept, n;
  int begin[MOST_CARRIED + MOST_KEPT]; // what is carried begins as these; and what is kept is these
  int length[STATE + MOST_CARRIED], reads[STATE][2];
} looping;

static void draw_looping(looping *x) {
  *x = (looping){
      .before = 3 + (int)below(18), .carried = 1 + (int)below(MOST_CARRIED), .kept = (int)below(MOST_KEPT + 1)};
  int all = x->carried + x->kept;
  x->body = all + x->carried + (int)below(15);
  x->behind = x->carried + 2 + (int)below(18);
  x->n = x->before + x->body + x->behind;
  x->length[0] = 256;
  for (int i = 1; i <= x->n; i++) x->length[i] = lengths[below(KINDS_OF_SIZES)];
  for (int k = 0; k < all; k++) x->begin[k] = k ? 1 + (int)below((uint32_t)x->before) : x->before;
  for (int k = 0; k < x->carried; k++)
    x->length[STATE + k] = x->length[x->before + x->body - x->carried + 1 + k] = x->length[x->begin[k]];
  for (int i = 1; i <= x->n; i++) {
    int in = i - x->before - 1, behind = in - x->body, made = in < x->body - x->carried ? in : x->body - x->carried;
    int of = in < all ? in : (int)below((uint32_t)all), *reads = x->reads[i];
    reads[0] = in == 0 || behind == 0 ? STATE : i - 1;
    if (in < 0)
      reads[1] = (int)below((uint32_t)i);
    else if (behind >= 0)
      reads[1] = behind < x->carried ? STATE + behind
                 : chance(50)        ? (int)below((uint32_t)x->before + 1)
                                     : i - 1 - (int)below((uint32_t)behind);
    else if (in < all || (in < x->body - x->carried && chance(50)))
      reads[1] = of < x->carried ? STATE + of : x->begin[of];
    else
      reads[1] = x->before + 1 + (int)below((uint32_t)made);
  }
}

static void put_value(const looping *x, int v, bool inside) {
  int k = v - STATE;
  if (inside && v <= x->before)
    for (k = x->carried; x->begin[k] != v;) k++;
  kl_sbf(&text, k < 0 ? "v%d" : inside ? "x%d" : "w%d", k < 0 ? v : k);
}

static void put_fusions(const looping *x, int from, int to, bool inside) {
  for (int i = from; i <= to; i++) {
    kl_sbf(&text, "  %sv%d = f32[%d] fusion(", i == x->n ? "ROOT " : "", i, x->length[i]);
    put_value(x, x->reads[i][0], inside);
    kl_sb_puts(&text, ", ");
    put_value(x, x->reads[i][1], inside);
    kl_sbf(&text, "), kind=kLoop, calls=f%d\n", i);
  }
}

static void put_state(const looping *x) {
  kl_sb_puts(&text, "(s32[], s32[]");
  for (int k = 0; k < x->carried + x->kept; k++) kl_sbf(&text, ", f32[%d]", x->length[x->begin[k]]);
  kl_sb_puts(&text, ")");
}

static void put_looping(const looping *x) {
  int all = x->carried + x->kept;
  text.n = 0;
  kl_sb_puts(&text, "HloModule looping\n\n");
  for (int i = 1; i <= x->n; i++) put_reading(i, x->length[x->reads[i][0]], x->length[x->reads[i][1]], x->length[i]);
  kl_sb_puts(&text, "again { s = ");
  put_state(x);
  kl_sb_puts(&text, " parameter(0) i = s32[] get-tuple-element(s), index=0\n  n = s32[] get-tuple-element(s), index=1 "
                    "ROOT r = pred[] compare(i, n), direction=LT }\nbody { s = ");
  put_state(x);
  kl_sb_puts(&text, " parameter(0) i = s32[] get-tuple-element(s), index=0\n  n = s32[] get-tuple-element(s), index=1 "
                    "one = s32[] constant(1) j = s32[] add(i, one)\n");
  for (int k = 0; k < all; k++)
    kl_sbf(&text, "  x%d = f32[%d] get-tuple-element(s), index=%d\n", k, x->length[x->begin[k]], k + 2);
  put_fusions(x, x->before + 1, x->before + x->body, true);
  kl_sb_puts(&text, "  ROOT t = ");
  put_state(x);
  kl_sb_puts(&text, " tuple(j, n");
  for (int k = 0; k < x->carried; k++) kl_sbf(&text, ", v%d", x->before + x->body - x->carried + 1 + k);
  for (int k = x->carried; k < all; k++) kl_sbf(&text, ", x%d", k);
  kl_sb_puts(&text, ") }\nENTRY e {\n  v0 = f32[256] parameter(0) m = s32[] parameter(1) seven = s32[] constant(7) "
                    "n = s32[] and(m, seven) z = s32[] constant(0)\n");
  put_fusions(x, 1, x->before, false);
  kl_sb_puts(&text, "  t = ");
  put_state(x);
  kl_sb_puts(&text, " tuple(z, n");
  for (int k = 0; k < all; k++) kl_sbf(&text, ", v%d", x->begin[k]);
  kl_sb_puts(&text, ")\n  w = ");
  put_state(x);
  kl_sb_puts(&text, " while(t), condition=again, body=body\n");
  for (int k = 0; k < x->carried; k++)
    kl_sbf(&text, "  w%d = f32[%d] get-tuple-element(w), index=%d\n", k, x->length[STATE + k], k + 2);
  put_fusions(x, x->before + x->body + 1, x->n, false);
  kl_sb_puts(&text, "}\n");
}

// Is it somebody else's, too, what the loop begins with? Then that is copied.
static bool is_copied(const looping *x, int k) {
  int n = 0;
  for (int i = 1; i <= x->n; i++) n += x->reads[i][0] == x->begin[k] || x->reads[i][1] == x->begin[k];
  for (int o = 0; o < x->carried + x->kept; o++) n += o != k && x->begin[o] == x->begin[k];
  return n > 0;
}

// The most that is there at one launch. What a loop carries or keeps is there for all of it.
static uint64_t live_around_loop(const looping *x) {
  enum { MOST = STATE + MOST_CARRIED };
  int copies = x->before + 1, first = x->before + x->carried + 1, last = first + x->body - 1;
  int makes_anew = x->before + x->body - x->carried;
  uint64_t live[MOST] = {0}, most = 0;
  for (int v = 1; v < STATE + x->carried; v = v == x->n - 1 ? STATE : v + 1) {
    if (v > makes_anew && v <= x->before + x->body) continue; // in the place of what is carried
    int k = v - STATE,
        from = v >= STATE       ? copies + k
               : v <= x->before ? v
                                : v + x->carried,
        to = v >= STATE ? last : from;
    for (int i = 1; i <= x->n; i++) {
      int at = i <= x->before ? i : i + x->carried;
      if (x->reads[i][0] != v && x->reads[i][1] != v) continue;
      if (v <= x->before && at >= first && at <= last) at = last;
      to = at > to ? at : to;
    }
    for (int o = 0; v <= x->before && o < x->carried; o++) {
      int until = copies + o - !is_copied(x, o);
      if (x->begin[o] == v && until > to) to = until;
    }
    for (int at = from; at <= to; at++) live[at] += (uint64_t)x->length[v] * 4;
  }
  for (int at = 0; at < MOST; at++) most = live[at] > most ? live[at] : most;
  return most;
}

START_TEST(loops_share_memory) {
  double worst = 0;
  for (uint64_t k = 0; k < share_of(8); k++) {
    looping x;
    seed = 57 * k + 11;
    draw_looping(&x);
    put_looping(&x);
    kiln_module *m = parse_text("looping.hlo");
    strategy.rounds = KL_NONE;
    const kiln_artifact *a = compiled_for(cx, m, 3, (unsigned)k, text.p);
    strategy.rounds = 0;
    uint64_t bound = live_around_loop(&x), scratch = kiln_artifact_manifest(a)->scratch_bytes;
    double times = (double)scratch / (double)bound;
    ck_assert_msg(scratch >= bound && times <= 1.1, "seed %u: %llu bytes, %llu are there at most", (unsigned)k,
                  (unsigned long long)scratch, (unsigned long long)bound);
    worst = times > worst ? times : worst;
    if (k < 2) run_both_and_check(cx, m, 3, 2 * (unsigned)k, text.p);
    kiln_module_destroy(&m);
  }
  printf("# around loops, scratch memory is at most %.3f times what is there at one launch\n", worst);
}
END_TEST

// Fusions before a conditional, in its branches and behind it; each reads what the one before it makes, and something
// else. Of a branch: its own values, and those two of before that all branches are given.
enum { MOST_BRANCHES = 3, MOST_PATH = 64, MOST_OF_PART = 14 };
typedef struct path {
  int n, length[MOST_PATH], reads[MOST_PATH][2]; // as of all that is launched, one after the other
} path;
typedef struct branching {
  int before, behind, nbranches, in[MOST_BRANCHES], given[2];
  path path[MOST_BRANCHES]; // through each branch
} branching;

static void draw_branching(branching *x) {
  *x = (branching){.before = 4 + (int)below(MOST_OF_PART - 3), .nbranches = 2 + (int)below(MOST_BRANCHES - 1)};
  x->behind = 3 + (int)below(MOST_OF_PART - 2);
  x->given[0] = x->before;
  x->given[1] = 1 + (int)below((uint32_t)x->before - 1);
  int results = lengths[below(KINDS_OF_SIZES)];
  for (int b = 0; b < x->nbranches; b++) {
    path *w = &x->path[b];
    x->in[b] = 2 + (int)below(MOST_OF_PART - 1);
    int behind = x->before + x->in[b], n = w->n = behind + x->behind;
    w->length[0] = 256;
    for (int i = 1; i <= n; i++) {
      bool alike = b > 0 && (i <= x->before || i > behind);
      int other = i <= x->before ? i : i - x->in[b] + x->in[0]; // of the first path
      int first = i == x->before + 1 ? 0 : i <= behind ? x->before + 1 : behind;
      w->length[i] = alike ? x->path[0].length[other] : i == behind ? results : lengths[below(KINDS_OF_SIZES)];
      w->reads[i][0] = i - 1;
      if (i <= x->before || i > behind + 1)
        w->reads[i][1] = chance(50)       ? (int)below((uint32_t)x->before)
                         : i <= x->before ? 0
                                          : behind + (int)below((uint32_t)(i - behind));
      else
        w->reads[i][1] = !first || chance(30) ? x->given[1] : first + (int)below((uint32_t)(i - first));
      for (int k = 0; alike && k < 2; k++) {
        int of = x->path[0].reads[other][k];
        w->reads[i][k] = of <= x->before ? of : of - x->in[0] + x->in[b];
      }
      if (i <= x->before && w->reads[i][1] >= i) w->reads[i][1] = 0;
    }
  }
}

static void put_path(const branching *x, int b, int from, int to) {
  const path *w = &x->path[b];
  bool inside = from == x->before + 1;
  int result = x->before + x->in[b];
  for (int i = from; i <= to; i++) {
    kl_sbf(&text, "  %sv%d = f32[%d] fusion(", i == w->n || (inside && i == to) ? "ROOT " : "", i, w->length[i]);
    for (int k = 0; k < 2; k++) {
      int of = w->reads[i][k];
      bool given = inside && of <= x->before;
      const char *name = given ? "x%d" : !inside && of == result ? "c%d" : "v%d";
      kl_sb_puts(&text, k ? ", " : "");
      kl_sbf(&text, name, given ? of != x->given[0] : of);
    }
    kl_sbf(&text, "), kind=kLoop, calls=f%d_%d\n", b, i);
  }
}

static void put_branching(const branching *x) {
  int last = x->before + x->in[0], sizes[2] = {x->path[0].length[x->given[0]], x->path[0].length[x->given[1]]};
  text.n = 0;
  kl_sb_puts(&text, "HloModule branching\n\n");
  for (int b = 0; b < x->nbranches; b++)
    for (int i = 1; i <= x->path[b].n; i++) {
      const path *w = &x->path[b];
      if (b && (i <= x->before || i > x->before + x->in[b])) continue;
      kl_sbf(&text, "f%d_", b);
      size_t at = text.n;
      put_reading(i, w->length[w->reads[i][0]], w->length[w->reads[i][1]], w->length[i]);
      memmove(text.p + at, text.p + at + 1, text.n - at); // its `f`
      text.p[--text.n] = 0;
    }
  for (int b = 0; b < x->nbranches; b++) {
    kl_sbf(&text, "b%d { t = (f32[%d], f32[%d]) parameter(0)\n", b, sizes[0], sizes[1]);
    for (int k = 0; k < 2; k++) kl_sbf(&text, "  x%d = f32[%d] get-tuple-element(t), index=%d\n", k, sizes[k], k);
    put_path(x, b, x->before + 1, x->before + x->in[b]);
    kl_sb_puts(&text, "}\n");
  }
  kl_sb_puts(&text, "ENTRY e {\n  v0 = f32[256] parameter(0) q = s32[] parameter(1)\n");
  put_path(x, 0, 1, x->before);
  kl_sbf(&text, "  t = (f32[%d], f32[%d]) tuple(v%d, v%d)\n  c%d = f32[%d] conditional(q", sizes[0], sizes[1],
         x->given[0], x->given[1], last, x->path[0].length[last]);
  for (int b = 0; b < x->nbranches; b++) kl_sb_puts(&text, ", t");
  kl_sb_puts(&text, "), branch_computations={");
  for (int b = 0; b < x->nbranches; b++) kl_sbf(&text, b ? ", b%d" : "b%d", b);
  kl_sb_puts(&text, "}\n");
  put_path(x, 0, last + 1, x->path[0].n);
  kl_sb_puts(&text, "}\n");
}

// The most that is there at one launch of a path. What branches are given is there for all of them, and so is the place
// of what they make.
static uint64_t live_along(const branching *x, int b) {
  const path *w = &x->path[b];
  int first = x->before + 1, end = x->before + x->in[b];
  uint64_t most = 0;
  for (int at = 1; at <= w->n; at++) {
    uint64_t live = 0;
    for (int v = 1; v < w->n && v <= at; v++) {
      bool wanted = v == at || ((v == x->given[0] || v == x->given[1]) && at <= end);
      for (int k = at; k <= w->n && !wanted; k++) wanted = w->reads[k][0] == v || w->reads[k][1] == v;
      live += wanted ? (uint64_t)w->length[v] * 4 : 0;
    }
    if (at >= first && at < end) live += (uint64_t)w->length[end] * 4;
    most = live > most ? live : most;
  }
  return most;
}

START_TEST(branches_share_memory) {
  double worst = 0;
  for (uint64_t k = 0; k < share_of(8); k++) {
    branching x;
    uint64_t bound = 0;
    seed = 91 * k + 3;
    draw_branching(&x);
    put_branching(&x);
    kiln_module *m = parse_text("branching.hlo");
    strategy.rounds = KL_NONE;
    const kiln_artifact *a = compiled_for(cx, m, 3, (unsigned)k, text.p);
    strategy.rounds = 0;
    for (int b = 0; b < x.nbranches; b++) {
      uint64_t live = live_along(&x, b);
      bound = live > bound ? live : bound;
    }
    uint64_t scratch = kiln_artifact_manifest(a)->scratch_bytes;
    double times = (double)scratch / (double)bound;
    ck_assert_msg(times <= 1.1, "seed %u: %llu bytes, %llu are there at most", (unsigned)k, (unsigned long long)scratch,
                  (unsigned long long)bound);
    worst = times > worst ? times : worst;
    if (k < 2) run_both_and_check(cx, m, 3, 2 * (unsigned)k, text.p);
    kiln_module_destroy(&m);
  }
  printf("# around branches, scratch memory is at most %.3f times what is there at one launch\n", worst);
}
END_TEST

// --- equal kernels ---------------------------------------------------------------------------------------------------

// Layers that are alike but for names, of which the last multiplies the other way round; and, with `updates`, that
// update an array which they may overwrite, and one which they may not.
static void put_layers(int n, bool updates) {
  text.n = 0;
  kl_sb_puts(&text, "HloModule layers\n");
  for (int i = 0; i < n; i++) {
    kl_sbf(&text,
           "f%d { x%d = f32[8,33] parameter(0) w = f32[33] parameter(1) b = f32[8,33] broadcast(w), dimensions={1} ", i,
           i);
    kl_sbf(&text, i == n - 1 ? "t = f32[8,33] subtract(b, x%d) " : "t = f32[8,33] subtract(x%d, b) ", i);
    if (updates)
      kl_sbf(&text,
             "i = s32[] parameter(2) s = f32[1,33] slice(t), slice={[0:1], [0:33]} "
             "ROOT y%d = f32[8,33] dynamic-update-slice(x%d, s, i, i) }\n",
             i, i);
    else
      kl_sbf(&text, "ROOT y%d = f32[8,33] tanh(t) }\n", i);
  }
  kl_sb_puts(&text, "ENTRY e { v0 = f32[8,33] parameter(0) w0 = f32[33] parameter(1) w1 = f32[33] parameter(2) "
                    "i = s32[] parameter(3)\n");
  for (int i = 0; i < n; i++)
    kl_sbf(&text, "v%d = f32[8,33] fusion(v%d, w%d%s), kind=kLoop, calls=f%d\n", i + 1, i, i % 2, updates ? ", i" : "",
           i);
  kl_sbf(&text, "ROOT r = (f32[8,33], f32[8,33]) tuple(v%d, v2) }\n", n);
}

static unsigned entries(const kiln_module *m, bool lineinfo, size_t launches) {
  kiln_compile_params p = {.struct_size = sizeof p,
                           .lineinfo = lineinfo,
                           .keep = KILN_KEEP_PLAN | KILN_KEEP_EXPLAIN,
                           .separate_launches = true};
  kiln_artifact *a = NULL;
  unsigned n = 0;
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compiling", cx, text.p);
  if (launches) ck_assert_uint_eq(kiln_artifact_manifest(a)->launch_count, launches);
  for (const char *at = kiln_artifact_text(a, KILN_TEXT_PTX, NULL); (at = strstr(at, ".visible .entry")); at++) n++;
  kiln_artifact_destroy(&a);
  return n;
}

START_TEST(equal_kernels_share_code) {
  put_layers(9, false);
  kiln_module *m = parse_text("layers.hlo");
  ck_assert_uint_eq(entries(m, false, 9), 2);
  ck_assert_uint_eq(entries(m, true, 9), 9); // lines are of each its own
  run_both_and_check(cx, m, 3, 0, text.p);
  kiln_module_destroy(&m);
  put_layers(9, true);
  m = parse_text("updates.hlo");
  unsigned n = entries(m, false, 0);
  ck_assert_msg(n > 2 && n < entries(m, true, 0), "%u kernels", n);
  run_both_and_check(cx, m, 3, 0, text.p);
  kiln_module_destroy(&m);
}
END_TEST

// Loops that are the same but for what they begin with are one kernel. One of fewer rounds begins with the same code,
// and so does one that is given other arrays twice: these are kernels of their own.
START_TEST(equal_loops_share_code) {
  static const char state[] = "(s32[], f32[8,33], f32[33], f32[33], f32[33])";
  static const struct {
    const char *from, *taken;
    int rounds, like;
  } of[] = {{"subtract", "l, k, k", 100, 0},
            {"add", "l, k, k", 99, 1},
            {"maximum", "l, k, k", 100, 0},
            {"minimum", "l, l, k", 100, 3}};
  enum { LOOPS = KL_COUNT(of) };
  text.n = 0;
  kl_sb_puts(&text,
             "HloModule loops\n\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n");
  for (int n = 99; n <= 100; n++)
    kl_sbf(&text,
           "below%d { s = %s parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(%d)\n"
           "  ROOT r = pred[] compare(i, n), direction=LT }\n",
           n, state, n);
  kl_sbf(
      &text,
      "body { s = %s parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[8,33] get-tuple-element(s), index=1\n"
      "  k = f32[33] get-tuple-element(s), index=2 l = f32[33] get-tuple-element(s), index=3\n"
      "  m = f32[33] get-tuple-element(s), index=4 c = s32[] constant(1) j = s32[] add(i, c) h = f32[] constant(0.5)\n"
      "  v = f32[33] reduce(x, h), dimensions={0}, to_apply=sum kv = f32[33] multiply(v, k) lv = f32[33] add(kv, l)\n"
      "  mv = f32[33] multiply(lv, m) b = f32[8,33] broadcast(mv), dimensions={1} t = f32[8,33] tanh(b)\n"
      "  u = f32[8] reduce(t, h), dimensions={1}, to_apply=sum y = f32[8,33] broadcast(u), dimensions={0}\n"
      "  ROOT r = %s tuple(j, y, k, l, m) }\n"
      "ENTRY e { p = s32[20000] parameter(0) k = f32[33] parameter(1) l = f32[33] parameter(2)\n"
      "  q = s32[20000] reverse(p), dimensions={0} z = s32[] constant(0)\n",
      state, state);
  // Between the loops there is what cannot be part of them: blocks that wait for others.
  for (int i = 0; i < LOOPS; i++)
    kl_sbf(&text,
           "  p%d = s32[20000] %s(p, q)\n"
           "  a%d = s32[20000] reduce-window(p%d, z), window={size=20000 pad=19999_0}, to_apply=total\n"
           "  e%d = s32[264] slice(a%d), slice={[7:271]} f%d = f32[264] convert(e%d) g%d = f32[8,33] reshape(f%d)\n"
           "  t%d = %s tuple(z, g%d, %s) w%d = %s while(t%d), condition=below%d, body=body\n"
           "  x%d = f32[8,33] get-tuple-element(w%d), index=1\n",
           i, of[i].from, i, i, i, i, i, i, i, i, i, state, i, of[i].taken, i, state, i, of[i].rounds, i, i);
  kl_sb_puts(&text, "  ROOT r = (f32[8,33], f32[8,33], f32[8,33], f32[8,33]) tuple(x0, x1, x2, x3) }\n"
                    "total { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n");
  kiln_module *m = parse_text("loops.hlo");
  const kiln_artifact *a = compiled_for(cx, m, 3, 0, text.p);
  const kiln_manifest *f = kiln_artifact_manifest(a);
  const char *rounds[LOOPS];
  size_t n = 0;
  for (size_t i = 0; i < f->launch_count; i++)
    if (strstr(f->launches[i].kernel, "rounds") && n++ < LOOPS) rounds[n - 1] = f->launches[i].kernel;
  ck_assert_uint_eq(n, LOOPS);
  for (int i = 0; i < LOOPS; i++)
    for (int k = 0; k < i; k++)
      ck_assert_msg((strcmp(rounds[i], rounds[k]) == 0) == (of[i].like == of[k].like), "%d and %d: %s and %s", i, k,
                    rounds[i], rounds[k]);
  n = 0;
  for (const char *at = kiln_artifact_text(a, KILN_TEXT_PTX, NULL); (at = strstr(at, ".visible .entry")); at++)
    n += strstr(at, "rounds") && strstr(at, "rounds") < strchr(at, '(');
  ck_assert_uint_eq(n, 3);
  run_both_and_check(cx, m, 3, 0, text.p);
  kiln_module_destroy(&m);
}
END_TEST

// --- the corpus -----------------------------------------------------------------------------------------------------

#define CORPUS KL_TESTS "/eval/corpus/"

static bool read_file(const char *name) {
  char path[1024], buffer[4096];
  size_t n;
  snprintf(path, sizeof path, CORPUS "%s", name);
  FILE *f = fopen(path, "rb");
  text.n = 0;
  while (f && (n = fread(buffer, 1, sizeof buffer, f)) > 0) kl_sb_put(&text, (kl_str){buffer, n});
  if (f) fclose(f);
  return f != NULL;
}

static void check_module(const char *name, bool runs, unsigned k) {
  ck_assert_msg(read_file(name), "%s is not there", name);
  kiln_module *m = parse_text(name);
  for (int host = 0; host < 2; host++) {
    kiln_compile_params p = {.struct_size = sizeof p, .target = host ? "host" : "sm_90"};
    kiln_status st = kiln_compile_check(cx, m, &p);
    size_t n = kiln_diagnostics_count(cx);
    ck_assert_msg(st == KILN_OK, "%s: %s", name, n ? kiln_diagnostics_get(cx, n - 1)->text : "");
    kiln_diagnostics_clear(cx);
  }
  if (runs) run_both_and_check(cx, m, 3, 2 * k, text.p);
  kiln_module_destroy(&m);
}

// Modules that are compiled stay so: a name a line, "compile" behind those that are not run, as their loops may not end
// with any data, or nothing evaluates them. Of what is not in the list nothing is said.
START_TEST(corpus_is_compiled) {
  char line[512];
  unsigned k = 0;
  FILE *f = fopen(CORPUS "compiled.txt", "r");
  ck_assert_ptr_nonnull(f);
  for (; fgets(line, sizeof line, f); k++) {
    if (!share_has(k, 20)) continue;
    line[strcspn(line, "\n")] = 0;
    char *space = strchr(line, ' ');
    if (space) *space = 0;
    check_module(line, !space, k);
  }
  fclose(f);
  ck_assert_uint_gt(k, 100);
}
END_TEST

int main(void) {
  return RUN_TESTS("modules", EACH(make, drop), {random_modules}, {bodies_are_cut}, {loops_are_these},
                   {loops_in_loops_write_results}, {loops_with_folds_inside}, {buffers_share_memory},
                   {loops_share_memory}, {branches_share_memory}, {equal_kernels_share_code}, {equal_loops_share_code},
                   {corpus_is_compiled});
}
