// Instructions that have no row, by what they begin with: opcode and modifiers. The first that fits counts. What is
// in neither table is no instruction of the PTX ISA that the simulator knows of.
#ifndef KL_ISA_REFUSED_H
#define KL_ISA_REFUSED_H

// clang-format off
//  name                     what it belongs to                                             section
#define KL_ISA_REFUSED(X)                                                                                              \
  X("mma",                   "tensor cores",                                                "9.7.14.5")                 \
  X("wmma",                  "tensor cores",                                                "9.7.14.4")                 \
  X("wgmma",                 "tensor cores",                                                "9.7.15")                   \
  X("tcgen05",               "tensor cores",                                                "9.7.16")                   \
  X("ldmatrix",              "tensor cores",                                                "9.7.14.5")                 \
  X("stmatrix",              "tensor cores",                                                "9.7.14.5")                 \
  X("movmatrix",             "tensor cores",                                                "9.7.14.5")                 \
  X("mbarrier",              "asynchronous copies: barriers in memory",                     "9.7.13.15")                \
  X("cp.async.mbarrier",     "asynchronous copies: barriers in memory",                     "9.7.13.15")                \
  X("cp.async.bulk",         "asynchronous copies: bulk copies",                            "9.7.9.25")                 \
  X("cp.reduce",             "asynchronous copies: bulk copies",                            "9.7.9.25")                 \
  X("st.async",              "asynchronous copies: stores that a barrier in memory awaits", "9.7.9.12")                 \
  X("st.bulk",               "asynchronous copies: bulk stores",                            "9.7.9.13")                 \
  X("red.async",             "asynchronous copies: reductions that a barrier in memory awaits", "9.7.13.7")             \
  X("tensormap",             "tensor maps",                                                 "9.7.9.27")                 \
  X("prefetch.tensormap",    "tensor maps",                                                 "9.7.9.15")                 \
  X("prefetch.const.tensormap", "tensor maps",                                              "9.7.9.15")                 \
  X("prefetch.param.tensormap", "tensor maps",                                              "9.7.9.15")                 \
  X("multimem",              "memory of several devices",                                   "9.7.9.14")                 \
  X("clusterlaunchcontrol",  "clusters that take over others' work",                        "9.7.13.16")                \
  X("tex",                   "textures",                                                    "9.7.10")                   \
  X("tld4",                  "textures",                                                    "9.7.10")                   \
  X("txq",                   "textures",                                                    "9.7.10")                   \
  X("istypep",               "textures",                                                    "9.7.10")                   \
  X("suld",                  "surfaces",                                                    "9.7.11")                   \
  X("sust",                  "surfaces",                                                    "9.7.11")                   \
  X("sured",                 "surfaces",                                                    "9.7.11")                   \
  X("suq",                   "surfaces",                                                    "9.7.11")                   \
  X("vote.all",              "GPUs before sm_70, which know it without .sync",              "9.7.13.8")                 \
  X("vote.any",              "GPUs before sm_70, which know it without .sync",              "9.7.13.8")                 \
  X("vote.uni",              "GPUs before sm_70, which know it without .sync",              "9.7.13.8")                 \
  X("vote.ballot",           "GPUs before sm_70, which know it without .sync",              "9.7.13.8")                 \
  X("shfl.up",               "GPUs before sm_70, which know it without .sync",              "9.7.9.5")                  \
  X("shfl.down",             "GPUs before sm_70, which know it without .sync",              "9.7.9.5")                  \
  X("shfl.bfly",             "GPUs before sm_70, which know it without .sync",              "9.7.9.5")                  \
  X("shfl.idx",              "GPUs before sm_70, which know it without .sync",              "9.7.9.5")
// clang-format on

#endif
