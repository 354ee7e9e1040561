// Rows of control flow. PTX ISA 9.7.12, 9.7.17 and 9.7.19.
#ifndef KL_ISA_CONTROL_H
#define KL_ISA_CONTROL_H

// clang-format off
//  decoded by  pattern              operands                   unit     spread grade  section
#define KL_ISA_CONTROL(X)                                                                                              \
  X(branch,     "bra{.uni}",         "label",                   CONTROL, OWN,   EXACT, "9.7.12.3")                     \
  X(branch_idx, "brx.idx{.uni}",     "a, table",                CONTROL, OWN,   EXACT, "9.7.12.4")                     \
  X(call,       "call{.uni}",        "{(d),} f{, (a)}{, table}", CONTROL, OWN,  EXACT, "9.7.12.5")                     \
  X(ret,        "ret{.uni}",         "",                        CONTROL, OWN,   EXACT, "9.7.12.6")                     \
  X(exit,       "exit",              "",                        CONTROL, OWN,   EXACT, "9.7.12.7")                     \
  X(trap,       "trap",              "",                        CONTROL, OWN,   EXACT, "9.7.19.4")                     \
  X(trap,       "brkpt",             "",                        CONTROL, OWN,   EXACT, "9.7.19.1")                     \
  X(nothing,    "pmevent{.mask}",    "a",                       CONTROL, OWN,   EXACT, "9.7.19.3")                     \
  X(nanosleep,  "nanosleep.u32",     "a",                       CONTROL, OWN,   EXACT, "9.7.19.2")                     \
  X(setmaxnreg, "setmaxnreg(.inc|.dec).sync.aligned.u32", "n",  CONTROL, OWN,   EXACT, "9.7.19.5")                     \
  X(alloca,     "alloca(.u32|.u64)", "d, a{, align}",           CONTROL, OWN,   EXACT, "9.7.17.3")                     \
  X(stacksave,  "stacksave(.u32|.u64)", "d",                    CONTROL, OWN,   EXACT, "9.7.17.1")                     \
  X(stackrestore, "stackrestore(.u32|.u64)", "a",               CONTROL, OWN,   EXACT, "9.7.17.2")                     \
  X(nothing,    "griddepcontrol(.launch_dependents|.wait)", "", SYNC,    OWN,   EXACT, "9.7.13.13")
// clang-format on

#endif
