// Reinterpretation: bitcast between layouts and bitcast-convert between types.
//
// Bits of a computed NaN are not promised, and an interval of values is no interval of bits: results that rest on
// either are open.
#include "eval/impl.h"
#include "ir/index/layout/layout.h"

// The bytes of src in the layout of `from` become the bytes of dst in the layout of `to`; what lies beyond is zero.
static kiln_status reinterpret(kl_ev *ev, const kl_shape *from, void *src, const kl_shape *to, void *dst) {
  int64_t have = kl_shape_bytes(from), want = kl_shape_bytes(to), size = have > want ? have : want;
  void *bytes = size < 0 ? NULL : kl_try_alloc(ev->cx, (size_t)size);
  if (!bytes) return kl_out_of_memory(ev->cx, size < 0 ? SIZE_MAX : (size_t)size, "a bitcast");
  kl_array_pack(&(kl_array){from, src}, bytes);
  kl_array_unpack(&(kl_array){to, dst}, bytes);
  if (to->dtype == KILN_PRED) {
    uint8_t *p = dst;
    for (int64_t i = 0; i < to->count; i++) p[i] = p[i] != 0;
  }
  kl_free(ev->cx, bytes, (size_t)size);
  return KILN_OK;
}

static bool element_open(const kl_evval *v, int64_t i) {
  kl_dtype t = v->shape->dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  size_t size = kl_ev_size(t), at = (size_t)i * size;
  if (any && any[i]) return true;
  if (memcmp((char *)kl_ev_plane(v, KL_EV_LO) + at, (char *)kl_ev_plane(v, KL_EV_HI) + at, size)) return true;
  for (int lane = 0; lane < (kl_is_complex(t) ? 2 : 1) && !v->raw && kl_is_float(part); lane++)
    if (kl_float_is_nan(part, kl_element_get(t, kl_ev_plane(v, KL_EV_DATA), i, lane))) return true;
  return false;
}

static bool may_be_open(const kl_ev *ev, const kl_evval *v) {
  kl_dtype t = v->shape->dtype;
  return ev->intervals && (!kl_ev_exact(v) || (!v->raw && (kl_is_float(t) || kl_is_complex(t))));
}

// Opens each output element that shares bits with an open input element, both in row-major order.
static void spread_open(const kl_evval *src, kl_evval *out) {
  uint64_t from = kl_info(src->shape->dtype)->bits, to = kl_info(out->shape->dtype)->bits;
  uint8_t *any = kl_ev_plane(out, KL_EV_ANY);
  int64_t n = src->splat ? 1 : src->shape->count, outputs = out->splat ? 1 : out->shape->count;
  for (int64_t i = 0; i < n; i++) {
    if (!element_open(src, i)) continue;
    // Widths are powers of two, so that one is a multiple of the other.
    uint64_t per = to < from ? from / to : 1;
    uint64_t first = to < from ? (uint64_t)i * per : (uint64_t)i / (to / from);
    for (uint64_t k = first; k < first + per && k < (uint64_t)outputs; k++) any[k] = 1;
  }
}

// lo and hi of open elements say nothing; they follow the data.
static void close_bounds(kl_evval *v) {
  size_t size = (size_t)(v->splat ? 1 : v->shape->count) * kl_ev_size(v->shape->dtype);
  memcpy(kl_ev_plane(v, KL_EV_LO), kl_ev_plane(v, KL_EV_DATA), size);
  memcpy(kl_ev_plane(v, KL_EV_HI), kl_ev_plane(v, KL_EV_DATA), size);
}

kiln_status kl_ev_bitcast_convert(kl_ev *ev, const kl_instr *in, const kl_evval *operand, kl_evval *out) {
  const kl_shape *s = in->shape;
  bool same_width = kl_info(s->dtype)->bits == kl_info(operand->shape->dtype)->bits;
  kl_evval src;
  if (same_width)
    src = kl_ev_share(operand, operand->shape);
  else
    KL_TRY(kl_ev_expand(ev, operand, &src));
  bool open = may_be_open(ev, &src);
  kiln_status status = kl_ev_new(ev, s, src.splat, open, out);
  if (status == KILN_OK) {
    kl_shape from = *src.shape, to = *s;
    from.layout = to.layout = (kl_layout){0};
    if (src.splat) from.rank = to.rank = 0, from.count = to.count = 1;
    status = reinterpret(ev, &from, kl_ev_plane(&src, KL_EV_DATA), &to, kl_ev_plane(out, KL_EV_DATA));
    out->raw = src.raw;
  }
  if (status == KILN_OK && open) {
    close_bounds(out);
    spread_open(&src, out);
  }
  if (status != KILN_OK) kl_ev_free(ev, out);
  kl_ev_free(ev, &src);
  return status;
}

// Planes of one type in two layouts.
static kiln_status relayout(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out) {
  kl_shape from = *src->shape, to = *in->shape;
  KL_TRY(kl_ev_new(ev, in->shape, false, !kl_ev_exact(src), out));
  out->raw = src->raw;
  kiln_status status = KILN_OK;
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI && status == KILN_OK; plane++)
    if (plane == KL_EV_DATA || !kl_ev_exact(out))
      status = reinterpret(ev, &from, kl_ev_plane(src, plane), &to, kl_ev_plane(out, plane));
  from.dtype = to.dtype = KILN_U8;
  from.layout.element_bits = to.layout.element_bits = 0;
  from.layout.metadata_prefix = to.layout.metadata_prefix = 0;
  if (status == KILN_OK && src->plane[KL_EV_ANY])
    status = reinterpret(ev, &from, kl_ev_plane(src, KL_EV_ANY), &to, kl_ev_plane(out, KL_EV_ANY));
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

// Refuses what gives no value: layouts that do not say where elements lie, results that are padding of the operand.
// *one_to_one: types are the same, and each element of the result is one of the operand's.
static kiln_status check_places(const kl_ev *ev, const kl_instr *in, const kl_shape *from, bool *one_to_one) {
  const kl_shape *s = in->shape;
  bool same_type = s->dtype == from->dtype;
  __int128 have = (__int128)from->count * kl_info(from->dtype)->bits,
           want = (__int128)s->count * kl_info(s->dtype)->bits;
  *one_to_one = same_type;
  if (kl_layout_is_order(s) && kl_layout_is_order(from) && have == want) return KILN_OK;
  kl_physical p, q;
  kl_physical_error e = kl_physical_of(from, &p);
  if (!e) e = kl_physical_of(s, &q);
  if (e) return kl_unsupported(ev->cx, in->span, "no evaluation of a bitcast with %s", kl_physical_error_text(e));
  *one_to_one = same_type && p.bits == q.bits && p.prefix == q.prefix;
  if (kl_bitcast_reads_elements(&p, &q, INT64_MAX) == KILN_YES) return KILN_OK;
  return kl_unsupported(ev->cx, in->span, "no evaluation of a bitcast that reads its operand's padding");
}

kiln_status kl_ev_bitcast(kl_ev *ev, const kl_instr *in, const kl_evval *operand, kl_evval *out) {
  const kl_shape *s = in->shape, *from = operand->shape;
  bool same_type = false, same_order = kl_shape_default_layout(s) && kl_shape_default_layout(from);
  KL_TRY(check_places(ev, in, from, &same_type));
  if (same_type && same_order && s->count == from->count) {
    *out = kl_ev_share(operand, s);
    return KILN_OK;
  }
  if (same_type && operand->splat) return kl_ev_spread(ev, operand, s, out);
  if (same_type) return relayout(ev, in, operand, out);
  kl_evval src;
  KL_TRY(kl_ev_expand(ev, operand, &src));
  bool open = may_be_open(ev, &src);
  kiln_status status = kl_ev_new(ev, s, false, open, out);
  if (status == KILN_OK) status = reinterpret(ev, from, kl_ev_plane(&src, KL_EV_DATA), s, kl_ev_plane(out, KL_EV_DATA));
  if (status == KILN_OK && open) {
    // Which element takes which bits depends on both layouts: one open element opens all.
    bool any = false;
    for (int64_t i = 0; i < from->count && !any; i++) any = element_open(&src, i);
    close_bounds(out);
    memset(kl_ev_plane(out, KL_EV_ANY), any, (size_t)s->count);
  }
  if (status == KILN_OK) out->raw = src.raw;
  if (status != KILN_OK) kl_ev_free(ev, out);
  kl_ev_free(ev, &src);
  return status;
}
