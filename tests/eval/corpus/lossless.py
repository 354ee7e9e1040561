"""Is anything lost in kiln's canonical print? Judged by XLA's own parser and printer.

    python lossless.py KILN FILE.hlo...

Each file is read by XLA directly, and again from what `KILN verify FILE` prints. XLA then prints both modules with
everything that it can print, and the two texts must be equal: names, order, attributes, and every bit of every literal,
for XLA prints floats so that they read back exactly. Files that XLA itself refuses are listed and skipped.
Needs jaxlib."""
import difflib
import re
import subprocess
import sys

import jaxlib._hlo as H


def full(text, literals):
    o = H.HloPrintOptions()
    o.print_large_constants = literals
    for field in ('print_percent', 'print_operand_shape', 'print_metadata',
                  'print_control_dependencies', 'print_backend_config', 'print_extra_attributes', 'print_program_shape'):
        setattr(o, field, True)
    return H.hlo_module_from_text(text).to_string(o)


def check(kiln, path):
    """None if nothing is lost, else a finding."""
    with open(path) as f:
        original = f.read()
    literals = '{...}' not in original  # XLA makes up values for those that are left out
    try:
        want = full(original, literals)
    except Exception as e:
        return 'skipped, XLA refuses the original: ' + str(e).split('\n')[1][:160]
    run = subprocess.run([kiln, 'verify', path], capture_output=True, text=True)
    if run.returncode:
        return 'kiln refuses it: ' + run.stderr[:300]
    try:
        got = full(run.stdout, literals)
    except Exception as e:
        return 'XLA refuses what kiln prints: ' + str(e)[:600]
    if got == want:
        return None
    diff = [line for line in difflib.unified_diff(want.split('\n'), got.split('\n'), lineterm='', n=0)
            if not re.match(r'---|\+\+\+|@@', line)]
    return 'differs (- XLA from the original, + XLA from kiln):\n' + '\n'.join(l[:400] for l in diff[:8])


def main():
    count = dict(lost=0, skipped=0)
    for path in sys.argv[2:]:
        finding = check(sys.argv[1], path)
        if finding:
            count['skipped' if finding.startswith('skipped') else 'lost'] += 1
            print('%s: %s' % (path, finding))
    print('%d modules: %d lose something, %d skipped' % (len(sys.argv) - 2, count['lost'], count['skipped']))
    return count['lost'] != 0


sys.exit(main())
