"""Calls, loops, conditionals, tuples, tokens, asynchronous pairs, dimension sizes; map."""
import numpy as np

from cases import Arr, File, ints, of
from inputs import array

EXACT = 'exact'


def loops():
    file = File('control', 'Structure and control flow; results by NumPy.')
    x = np.array([1, 2, 3], np.int32)
    head = '''cond { s = (s32[], s32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(%d)
  ROOT lt = pred[] compare(i, n), direction=LT }
body { s = (s32[], s32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = s32[3] get-tuple-element(s), index=1
  jb = s32[3] broadcast(j), dimensions={}
  w = s32[3] multiply(v, jb)
  ROOT t = (s32[], s32[3]) tuple(j, w) }
---
i0 = s32[] constant(0)
s = (s32[], s32[3]) tuple(i0, a)
ROOT w = (s32[], s32[3]) while(s), condition=cond, body=body'''
    for n in (0, 1, 5, 14):
        y, last = x.copy(), 0
        for i in range(1, n + 1):
            y, last = y * np.int32(i), i
        file.case('while_%d' % n, head % n, [of(x)], (EXACT, of(np.int32(last))), (EXACT, of(y)), by='numpy')
    bits = '''c { s = u32[] parameter(0)
  z = u32[] constant(0)
  ROOT r = pred[] compare(s, z), direction=NE }
b { s = u32[] parameter(0)
  o = u32[] constant(1)
  ROOT r = u32[] shift-right-logical(s, o) }
---
r = u32[] while(a), condition=c, body=b'''
    file.case('while_scalar', bits, [of(np.uint32(0xdeadbeef))], (EXACT, of(np.uint32(0))))
    branches = '''b0 { p = f32[2] parameter(0)
  ROOT r = f32[2] negate(p) }
b1 { ROOT p = s32[] parameter(0) 
}
b1x { p = s32[] parameter(0)
  c = f32[] convert(p)
  ROOT r = f32[2] broadcast(c), dimensions={} }
b2 { p = (f32[2], s32[]) parameter(0)
  ROOT r = f32[2] get-tuple-element(p), index=0 }
---
t = (f32[2], s32[]) tuple(b, c)
r = f32[2] conditional(a, b, c, t), branch_computations={b0, b1x, b2}'''.replace('b1 { ROOT p = s32[] parameter(0) \n}\n', '')
    v, k = np.array([1.5, -2], np.float32), np.int32(-7)
    for i in (0, 1, 2, 3, -1, 2**31 - 1, -2**31):
        y = [-v, np.full(2, -7, np.float32), v][i if 0 <= i < 3 else 2]
        file.case('switch_%d' % i, branches, [of(np.int32(i)), of(v), of(k)], (EXACT, of(y)))
    either = '''t { p = s8[3] parameter(0)
  ROOT r = s8[3] add(p, p) }
f { p = s8[3] parameter(0)
  q = s8[3] negate(p)
  ROOT r = s8[3] reverse(q), dimensions={0} }
---
r = s8[3] conditional(a, b, b), true_computation=t, false_computation=f'''
    w = np.array([100, -3, 7], np.int8)
    for p in (True, False):
        file.case('if_%s' % p, either, [of(np.bool_(p)), of(w)], (EXACT, of(w + w if p else -w[::-1])))


def structure():
    file = File('structure', 'Tuples, calls, fusions, barriers, tokens, asynchronous pairs, dimension sizes, map.')
    a, b = array('f32', (2, 2), 1), array('s16', (3,), 2)
    file.case('tuple', 't = (f32[2,2], (s16[3], f32[2,2])) tuple(a, u)\n'.join(['u = (s16[3], f32[2,2]) tuple(b, a)\n', '']),
              [a, b], (EXACT, a), (EXACT, b), (EXACT, a))
    file.case('element_of_nested', '''u = (s16[3], f32[2,2]) tuple(b, a)
t = (f32[2,2], (s16[3], f32[2,2])) tuple(a, u)
v = (s16[3], f32[2,2]) get-tuple-element(t), index=1
r = s16[3] get-tuple-element(v), index=0''', [a, b], (EXACT, b))
    file.case('empty_tuple', 'e = () tuple()\nr = ((), s16[3]) tuple(e, b)', [a, b], (EXACT, b))
    callee = 'f { p = s16[3] parameter(0)\n  q = s16[3] parameter(1)\n  ROOT r = s16[3] subtract(q, p) }\n---\n'
    c = array('s16', (3,), 3)
    y = ints('s16', (3,), [q - p for p, q in zip(b.ints(), c.ints())])
    file.case('call', callee + 'r = s16[3] call(a, b), to_apply=f', [b, c], (EXACT, y))
    file.case('fusion', callee + 'r = s16[3] fusion(a, b), kind=kLoop, calls=f', [b, c], (EXACT, y))
    file.case('map', 'f { p = s16[] parameter(0)\n  q = s16[] parameter(1)\n  ROOT r = s16[] subtract(q, p) }\n---\n'
              'r = s16[3] map(a, b), dimensions={0}, to_apply=f', [b, c], (EXACT, y))
    file.case('async', callee + '''s = ((s16[3], s16[3]), s16[3], u32[]) async-start(a, b), calls=f
u = ((s16[3], s16[3]), s16[3], u32[]) async-update(s)
r = s16[3] async-done(u)''', [b, c], (EXACT, y))
    file.case('async_sugar', 's = ((s16[3], s16[3]), s16[3], u32[]) subtract-start(b, a)\nr = s16[3] subtract-done(s)',
              [b, c], (EXACT, y))
    file.case('copy_pair', 's = (s16[3], s16[3], u32[]) copy-start(a)\nr = s16[3] copy-done(s)', [b], (EXACT, b))
    file.case('barrier', 't = (f32[2,2], s16[3]) tuple(a, b)\nr = (f32[2,2], s16[3]) opt-barrier(t)', [a, b],
              (EXACT, a), (EXACT, b))
    file.case('dependency', 't = token[] after-all()\nr = f32[2,2] add-dependency(a, t)', [a], (EXACT, a))
    file.case('domain', 'r = f32[2,2] domain(a), domain={kind="sharding", entry={replicated}, exit={replicated}}', [a],
              (EXACT, a))
    file.case('dimension_size', 'r = s32[] get-dimension-size(a), dimensions={1}', [array('u8', (2, 5), 0)],
              (EXACT, ints('s32', (), [5])))
    w = array('c64', (4,), 1)
    h = w.numbers()
    file.case('map_pick', 'f { p = c64[] parameter(0)\n  q = pred[] parameter(1)\n  n = c64[] negate(p)\n'
              '  ROOT r = c64[] select(q, n, p) }\n---\nr = c64[4] map(a, b), dimensions={0}, to_apply=f',
              [w, Arr('pred', (4,), [1, 0, 0, 1])],
              (EXACT, Arr('c64', (4,), [x ^ 0x80000000 if i // 2 in (0, 3) else x for i, x in enumerate(w.bits)])))
    del h


def constants():
    file = File('constant', 'Constants of every type, their text read by kiln.')
    rows = [('pred', '{true, false, 1}', [1, 0, 1]), ('s1', '{-1, 0, 0}', [1, 0, 0]), ('u1', '{1, 0, 1}', [1, 0, 1]), ('s2', '{-2, 1, 0}', [2, 1, 0]), ('u2', '{3, 0, 1}', [3, 0, 1]),
            ('s4', '{-8, 7, -1}', [8, 7, 15]), ('u4', '{15, 0, 9}', [15, 0, 9]), ('s8', '{-128, 127, -1}', [128, 127, 255]),
            ('u8', '{255, 0, 1}', [255, 0, 1]), ('s16', '{-32768, 32767, 5}', [32768, 32767, 5]),
            ('u64', '{18446744073709551615, 0, 1}', [2**64 - 1, 0, 1]),
            ('s64', '{-9223372036854775808, 1, 2}', [2**63, 1, 2]),
            ('f4e2m1fn', '{0.5, -6, -0}', [1, 15, 8]), ('f8e4m3fn', '{448, -0.0625, 0.001953125}', [0x7e, 0x98, 1]),
            ('f8e5m2', '{inf, 57344, -1.52587890625e-05}', [0x7c, 0x7b, 0x81]), ('f8e8m0fnu', '{1, 2, 0.5}', [127, 128, 126]),
            ('f8e4m3fnuz', '{240, 1, -1}', [0x7f, 0x40, 0xc0]), ('f8e3m4', '{1, 15.5, -inf}', [0x30, 0x6f, 0xf0]),
            ('f16', '{65504, 5.9604645e-08, -2}', [0x7bff, 1, 0xc000]), ('bf16', '{3.140625, -inf, 1e-40}', [0x4049, 0xff80, 1]),
            ('f32', '{0.1, 1e-45, -3.40282347e+38}', [0x3dcccccd, 1, 0xff7fffff]),
            ('f64', '{0.1, 5e-324, 1.7976931348623157e+308}', [0x3fb999999999999a, 1, 0x7fefffffffffffff]),
            ('c64', '{(1, -2), (0, inf), (-0, 0.5)}', [0x3f800000, 0xc0000000, 0, 0x7f800000, 0x80000000, 0x3f000000])]
    for t, text, bits in rows:
        file.case(t, 'r = %s[3] constant(%s)' % (t, text), [], (EXACT, Arr(t, (3,), bits)))
    file.case('rank_3', 'r = s32[2,1,2] constant({ { {1, 2} }, { {3, -4} } })', [],
              (EXACT, ints('s32', (2, 1, 2), [1, 2, 3, -4])))
    file.case('empty', 'r = f32[0] constant({})', [], (EXACT, Arr('f32', (0,), [])))


def make():
    loops()
    structure()
    constants()
