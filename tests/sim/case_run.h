// The launches of tests/sim/kernels on the simulator: their modules' texts, memory and arguments.
#ifndef TESTS_SIM_CASE_RUN_H
#define TESTS_SIM_CASE_RUN_H

#include "kernels/kernels.h"
#include "sim/check/checks.h"
#include "stage.h"

// The folders of tests/sim/kernels/ptx: PTX for a target, optimised or with -G.
enum { CASE_FOLDERS = 6 };
extern const char *const case_folders[CASE_FOLDERS];

// ROOT/FOLDER/FILE.ptx, with a zero behind it; NULL where there is none. The caller frees it.
char *case_text(const char *root, const char *folder, const char *file);
// The same of a folder of -G that lacks the file, as nvcc makes the same code for sm_90: that one, for the folder's
// target.
char *case_text_alike(const char *root, const char *folder, const char *file);

typedef struct case_run {
  stage s;
  const kernel_case *c;
  uint64_t address[KERNEL_MAX_BUFFERS]; // of its buffers
  char params[4096];
  kl_launch launch; // may be changed before it runs
} case_run;

// Loads the case's kernel from a text that must stay, and places its buffers. False: the text is refused, or does not
// have the kernel; stage_why(&r->s) says why. To be closed in either case.
bool case_open(case_run *r, kl_str ptx, const kernel_case *c);
// Runs the launch under all checks, whose report is r's until it closes. What is undefined before and looked at
// afterwards must be written, what is not looked at need not.
kiln_status case_check(case_run *r, kl_checks *checks);
// Is everything in memory as the case expects? If not, `message` says what is not.
bool case_agrees(const case_run *r, char *message, size_t room);
void case_close(case_run *r);

#endif
