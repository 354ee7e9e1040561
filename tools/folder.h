// A verb on every module of a folder.
#ifndef TOOLS_FOLDER_H
#define TOOLS_FOLDER_H

#include "kiln.h"

bool is_folder(const char *path);

typedef struct folder_work {
  const args *a;
  const char *from, *to; // folders; `to` is made if need be
  const char *extension; // of what comes out of NAME.hlo; NULL: a folder NAME
  unsigned jobs;         // at once; 0: as many as there are cores
  // Which of the verb's are this function's affair: -o names what comes out of a file; files that are compiled at once
  // share the cores, where the words give each no number of threads.
  int out_option, jobs_option, threads_option;
} folder_work;

// Each NAME.hlo of `from`, in a process of its own, with the verb's other options. What they say comes in the order of
// their names, whatever the number at once. The worst exit status of all.
int run_folder(const folder_work *w);

#endif
