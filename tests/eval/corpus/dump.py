"""Writes the corpus: HLO modules dumped from JAX programs, before and after XLA's optimisation for CPUs, in the textual
forms that XLA's print options give, and JAX's results for the smaller ones.

    python dump.py          rewrites dumped/*.hlo and dumped/*.io; needs JAX 0.10, ml_dtypes

NAME.hlo is the module as traced, NAME.FORM.hlo the same in another print form, NAME.cpu.hlo the compiled one.
NAME.io holds the inputs (`in SHAPE = ...` per leaf) and results (`out near ABS REL = ...` or `out exact = ...`), in the
notation of ../oracle/arrays.py; it goes with NAME.hlo, NAME.FORM.hlo and NAME.cpu.hlo alike.

Of programs of programs_library.py there is only what is traced, as NAME.hlo, and NAME.gpu.hlo (dump_gpu.py).

NAME.tpu.hlo is traced for TPUs, where some functions are HLO ops that other platforms have library calls for; it is not
compiled.

The bound. XLA's CPU code reassociates, contracts and uses approximate functions, each with errors of about a unit in
the last place. A program states the number N of roundings along its longest path, length of its sums included. They
add up like a random walk: a result may differ by sqrt(N) * 2^-man * max(|expected element|, largest |expected| of that
array), man being the mantissa bits of the type that the program computes in, and the scale that of the array, as for
all backward stable computations. ABS and REL are the two parts."""
import os
import re
import sys

# Excess precision would let XLA drop roundings to narrow types: results of another function.
os.environ['XLA_FLAGS'] = (os.environ.get('XLA_FLAGS', '') + ' --xla_force_host_platform_device_count=8'
                           ' --xla_allow_excess_precision=false')
os.environ['JAX_PLATFORMS'] = 'cpu'

import jax  # noqa: E402
import jaxlib._hlo as H  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'oracle')]

import arrays  # noqa: E402
import programs  # noqa: E402
import programs_array  # noqa: E402,F401
import programs_library  # noqa: E402,F401
import programs_sharded  # noqa: E402,F401

OUT = os.path.join(HERE, 'dumped')
FORMS = {
    'canonical': lambda: H.HloPrintOptions.canonical(),
    'short': lambda: H.HloPrintOptions.short_parsable(),
    'full': lambda: options(print_large_constants=True, print_ids=True, print_percent=True, print_program_shape=True,
                            print_operand_shape=True, print_metadata=True),
    'bare': lambda: options(print_percent=False, print_operand_shape=False, print_metadata=False,
                            include_layout_in_shapes=False, print_control_dependencies=True, print_large_constants=True),
    'renamed': lambda: options(print_program_shape=False, print_percent=True, print_large_constants=True,
                               canonicalize_instruction_names=True),
}


def options(**fields):
    o = H.HloPrintOptions()
    for key, value in fields.items():
        setattr(o, key, value)
    return o


def clean(text):
    """Without the paths of the machine that the dump was made on, and without trailing blanks."""
    text = re.sub(r'"[^"\n]*/(site-packages|corpus)/', '"', text)
    text = re.sub(r'"[^"\n]*/lib/python[^/"]*/', '"', text)
    return '\n'.join(line.rstrip() for line in text.strip().split('\n')) + '\n'


def write(name, text):
    with open(os.path.join(OUT, name), 'w') as f:
        f.write(text)


def out_line(value, how):
    value = np.asarray(value)
    name = arrays.type_name(value)
    if name in arrays.INTS or name == 'pred' or not how['roundings']:
        return arrays.text('out exact', value)
    base = {'c64': 'f32', 'c128': 'f64'}.get(name, name)
    steps = how['roundings']
    # The coarser of the types that it computes in and that it is stored in.
    eps = max(float(ml_dtypes.finfo(arrays.TYPES[base][0]).eps), float(ml_dtypes.finfo(how.get('dtype', 'float32')).eps))
    if how.get('dtype') == 'float64' and base == 'f64':
        eps = 2.0**-52
    rel = steps**0.5 * eps
    wide = np.abs(value.astype(np.complex128 if name in arrays.COMPLEX else np.float64))
    wide = wide[np.isfinite(wide)]
    return arrays.text('out near %.3g %.3g' % (rel * float(wide.max(initial=0.0)), rel), value)


def dump(index, name, how):
    with jax.enable_x64('x64' in how):
        dump_program(index, name, how)


def dump_program(index, name, how):
    f, args = how['make']()
    jitted = jax.jit(f, keep_unused=True, donate_argnums=how.get('donate', ()))
    lowered = jitted.lower(*args)
    module = lowered.compiler_ir('hlo').as_hlo_module()
    compiled = lowered.compile()
    large = how.get('large')
    if how.get('tpu'):
        traced = jitted.trace(*args).lower(lowering_platforms=('tpu',)).compiler_ir('hlo')
        write(name + '.tpu.hlo', clean(traced.as_hlo_text()))
    write(name + '.hlo', clean(module.to_string(options(print_large_constants=True, print_percent=False))))
    library = how.get('libraries')
    after = compiled.as_text()
    if index % 3 == 0:
        after = H.hlo_module_from_text(after).to_string(options(print_large_constants=True))
    if not library and not how.get('traced_only') and (large or len(after) < 50000):
        write(name + '.cpu.hlo', clean(after))
    form = sorted(FORMS)[index % len(FORMS)]
    text = module.to_string(FORMS[form]())
    if len(text) < 12000 and not library:
        write('%s.%s.hlo' % (name, form), clean(text))
    if large or how.get('text_only'):
        return
    results = jax.tree.leaves(compiled(*jax.tree.map(np.array, args)))
    lines = ['# JAX %s on CPU. %d roundings in %s.\n' % (jax.__version__, how['roundings'], how.get('dtype', 'float32'))]
    lines += [arrays.text('in ' + arrays.shape_text(a), a) for a in jax.tree.leaves(args)]
    lines += [out_line(r, how) for r in results]
    write(name + '.io', ''.join(lines))


def main():
    os.makedirs(OUT, exist_ok=True)
    wanted = sys.argv[1:]
    for index, (name, how) in enumerate(programs.PROGRAMS.items()):
        if wanted and name not in wanted:
            continue
        try:
            dump(index, name, how)
        except Exception as e:  # a program that this JAX cannot run is left out, and said
            print('%s: %s' % (name, str(e)[:600]), file=sys.stderr)



if __name__ == '__main__':
    main()
