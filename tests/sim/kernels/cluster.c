#include "cases.h"
#include "cluster.cu"

static void of_clusters(kernel_case *c, uint32_t x, uint32_t y) {
  c->cluster[0] = x;
  c->cluster[1] = y;
}

static void cluster_histogram_setup(kernel_case *c, uint32_t n) {
  launch(c, 8, 96);
  of_clusters(c, 4, 1);
  fill_bits(arg_input(c, KERNEL_U8, n), n);
  arg_inout(c, KERNEL_U32, 256);
  arg_i32(c, (int)n);
}

static void cluster_reduce_setup(kernel_case *c, uint32_t n) {
  uint32_t clusters = blocks_for(n, 3 * 96);
  launch(c, clusters * 3, 96);
  of_clusters(c, 3, 1);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -1, 1);
  arg_output(c, KERNEL_F32, clusters);
  arg_output(c, KERNEL_U32, clusters * 3);
  arg_i32(c, (int)n);
}

static void cluster_ring_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128) * 2, 64);
  of_clusters(c, 2, 1);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 1000);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

// `n` clusters in a row, three rows of them.
static void cluster_registers_setup(kernel_case *c, uint32_t n) {
  launch3(c, (uint32_t[]){n * 2, 6, 1}, (uint32_t[]){33, 1, 1});
  of_clusters(c, 2, 2);
  arg_output(c, KERNEL_U32, n * 2 * 6 * 33);
  arg_i32(c, (int)n * 2);
}

const kernel_row cluster_rows[] = {
    ROW("cluster", cluster_histogram, 90, 5, 1000, 10007),
    ROW("cluster", cluster_reduce, 90, 1, 288, 2001),
    ROW("cluster", cluster_ring, 90, 3, 128, 777),
    ROW("cluster", cluster_registers, 90, 1, 2, 5),
};
const size_t cluster_nrow = sizeof cluster_rows / sizeof *cluster_rows;
