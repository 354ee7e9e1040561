// kiln: everything.
#ifndef KILN_H
#define KILN_H

#include <kiln/base.h>
#include <kiln/compile.h>
#include <kiln/ir.h>
#include <kiln/cuda.h>
#include <kiln/run.h>

#endif
