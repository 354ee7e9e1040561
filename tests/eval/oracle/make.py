"""Computes the oracle: cases for the evaluator whose results come from elsewhere.

    python make.py          rewrites data/*.txt; needs NumPy, SciPy, mpmath, ml_dtypes and, for some, JAX

It is run by hand: the build and the tests only read data/. Fixed seeds: it writes the same bytes each time.
The form of the files is told in cases.h, the form of arrays in arrays.py. `by` says who computed a case's results:
  python    integers and fractions of unlimited size, rounded once by formats.py
  mpmath    400 bits and more, rounded once by formats.py
  numpy     NumPy's own arithmetic on the type, where it is exactly specified, or in a wider type and rounded
  cmath     C's Annex G as Python has it
  jax       jax.lax on a CPU, for ops whose results are moved or counted rather than rounded
What an op means where HLO leaves a choice is told in src/eval/eval.h; the cases follow it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases  # noqa: E402

MODULES = ['unary', 'binary', 'conversions', 'movement', 'control', 'complex', 'contraction', 'folds', 'indexed', 'linear', 'stochastic']


def main():
    os.makedirs(os.path.join(cases.HERE, 'data'), exist_ok=True)
    for name in sys.argv[1:] or MODULES:
        __import__(name).make()
    for file in cases.File.all:
        file.write()
        print('%-32s %4d' % (file.name, file.count))
    print('%-32s %4d' % ('all', sum(f.count for f in cases.File.all)))


main()
