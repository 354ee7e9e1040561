// kiln: everything. C++ has owners, and attributes in its own notation, in kiln/kiln.hpp beside it.
#ifndef KILN_H
#define KILN_H

#include <kiln/base.h>
#include <kiln/compile.h>
#include <kiln/index.h>
#include <kiln/ir.h>
#include <kiln/layout.h>
#include <kiln/npy.h>
#include <kiln/sparse.h>
#include <kiln/tile.h>
#include <kiln/cuda.h>
#include <kiln/run.h>
#include <kiln/sim.h>
#include <kiln/profile.h>
#include <kiln/xla.h>
#include <kiln/cache.h>
#include <kiln/bundle.h>
#include <kiln/job.h>
#include <kiln/worker.h>

#endif
