// Products within a kl_fold. Start and merge know nothing but the product; the others take the fold's flags along.
#ifndef KL_EVAL_PRODUCT_H
#define KL_EVAL_PRODUCT_H

#include "eval/fold/sum.h"

void kl_product_start(kl_fold_product *p, bool complex);
// n <= KL_EV_CHUNK elements.
void kl_product_add(kl_fold *f, int64_t n, const kl_iv_in *in, bool point);
void kl_product_add_complex(kl_fold *f, int64_t n, const kl_iv_in *in);
void kl_product_merge(kl_fold_product *p, const kl_fold_product *q, bool complex);
void kl_product_store(const kl_fold *f, const kl_iv_out *out, int64_t i);
void kl_product_store_complex(const kl_fold *f, const kl_iv_out *out, int64_t i);

#endif
