// The attribute table: which op has which attributes, how each is written, and where its value is kept. Parser,
// printer, builder, hash and copies of instructions all walk its rows; none of them knows an attribute by name.
#ifndef KL_ATTRS_H
#define KL_ATTRS_H

#include "ir/hlo.h"

typedef enum kl_attr_type {
  KL_ATTR_DIMS,       // {0,1}: ndims, dims of kl_instr
  KL_ATTR_INTS,       // {0,1}: kl_ints
  KL_ATTR_INT,        // int64_t
  KL_ATTR_BITS,       // int32_t from 0 to 64
  KL_ATTR_BOOL,       // true, false: bool
  KL_ATTR_REAL,       // double, rounded to f32
  KL_ATTR_NAME,       // one of `names`: int
  KL_ATTR_NAMES,      // {highest,default}: kl_ints of indices into `names`
  KL_ATTR_QUOTED,     // "text": kl_str with its quotes
  KL_ATTR_SLICES,     // {[0:2], [1:8:3]}: ndims, slice
  KL_ATTR_PADDING,    // 0_1x2_3_1: ndims, pad
  KL_ATTR_WINDOW,     // {size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate= rhs_dilate= rhs_reversal=}: nwindow, window
  KL_ATTR_DIM_LABELS, // b01f_01io->b01f: const kl_conv_dims *
  KL_ATTR_GROUPS,     // {{0,1},{2,3}}, [2,2]<=[4], [2,2]<=[2,2]T(1,0): kl_groups
  KL_ATTR_PAIRS,      // {{0,1},{1,0}}: kl_ints, flat
  KL_ATTR_COMP,       // %name: the next of called
  KL_ATTR_COMPS,      // {%a, %b}: the next ones of called
  KL_ATTR_SHAPE,      // const kl_shape *
} kl_attr_type;

typedef enum kl_attr_need {
  KL_ATTR_MAY,    // printed where it was given and is not what it would be without
  KL_ATTR_ALWAYS, // may be left out, and is printed all the same
  KL_ATTR_MUST,
} kl_attr_need;

typedef struct kl_attr_row {
  const char *key;
  kl_attr_type type;
  kl_attr_need need;
  bool in_more;             // `offset` is into kl_more, else into kl_instr
  uint16_t offset;          // of the value; of its first member, where it has several
  int64_t otherwise;        // INT, BOOL, NAME: the value where the text has none
  const char *const *names; // NAME, NAMES; NULL entries are values without a text
  uint8_t nnames;
  const char *what; // for messages: "a direction"
} kl_attr_row;

typedef struct kl_attr_list {
  const kl_attr_row *p;
  uint32_t n; // at most 64
} kl_attr_list;

// The rows of an instruction: those of the op it wraps, for an async op written in short.
kl_attr_list kl_op_attrs(kl_op op);
static inline kl_attr_list kl_instr_attrs(const kl_instr *in) {
  return kl_op_attrs(in->wrapped ? in->wrapped : in->op);
}
static inline const void *kl_attr_at(const kl_instr *in, const kl_attr_row *r) {
  return (r->in_more ? (const char *)in->more : (const char *)in) + r->offset;
}
// Does the op keep anything in kl_more?
bool kl_op_has_more(kl_op op);
// Writes what the rows say where the text has nothing. `more` belongs to `in`.
void kl_attrs_default(kl_instr *in, kl_more *more);

extern const char *const kl_fusion_kind_names[4];
extern const char *const kl_precision_names[5];
enum { KL_DOT_ALGORITHMS = 16 };
extern const char *const kl_dot_algorithm_names[KL_DOT_ALGORITHMS];
extern const char *const kl_triangle_op_names[3], *const kl_fft_type_names[4], *const kl_rng_algorithm_names[3],
                                                                                   *const kl_rng_distribution_names[2];

#endif
