// Modules with something that is read across, small enough to be executed in tests, and what is known of their plans.
#ifndef TESTS_TRANSPOSES_H
#define TESTS_TRANSPOSES_H

enum {
  IN_TILES = 1, // a tile is what reads least
  WIDE = 2,     // no row is cut: 16 bytes at once everywhere, no sector twice, no conflicts
};

typedef struct transpose_case {
  const char *name;
  int what;
  const char *text; // of ENTRY
} transpose_case;

// clang-format off
static const transpose_case transpose_cases[] = {
  {"rows and columns", IN_TILES | WIDE,
   "x = f32[64,128] parameter(0) ROOT r = f32[128,64] transpose(x), dimensions={1,0}"},
  {"the two minor dimensions", IN_TILES | WIDE,
   "x = f32[3,64,64] parameter(0) ROOT r = f32[3,64,64] transpose(x), dimensions={0,2,1}"},
  {"whole rows", 0,
   "x = f32[20,24,32] parameter(0) ROOT r = f32[24,20,32] transpose(x), dimensions={1,0,2}"},
  {"four dimensions, all of them", IN_TILES | WIDE,
   "x = f32[2,5,64,32] parameter(0) ROOT r = f32[5,32,2,64] transpose(x), dimensions={1,3,0,2}"},
  {"two dimensions that move together", IN_TILES | WIDE,
   "x = f32[8,16,64] parameter(0) ROOT r = f32[64,8,16] transpose(x), dimensions={2,0,1}"},
  {"back to front, packed", IN_TILES | WIDE,
   "x = bf16[64,4,64] parameter(0) ROOT r = bf16[64,4,64] transpose(x), dimensions={2,1,0}"},
  {"dimensions of one between", IN_TILES | WIDE,
   "x = f32[1,64,1,64,1] parameter(0) ROOT r = f32[64,1,1,1,64] transpose(x), dimensions={3,0,2,4,1}"},
  {"nibbles", IN_TILES | WIDE,
   "x = s4[128,256] parameter(0) ROOT r = s4[256,128] transpose(x), dimensions={1,0}"},
  {"nibbles, four dimensions", IN_TILES,
   "x = s4[2,6,32,64] parameter(0) ROOT r = s4[6,64,2,32] transpose(x), dimensions={1,3,0,2}"},
  {"nibbles, whole rows", 0,
   "x = s4[8,16,128] parameter(0) ROOT r = s4[16,8,128] transpose(x), dimensions={1,0,2}"},
  {"something before, in each of three orders", IN_TILES | WIDE,
   "x = f32[2,64,64] parameter(0) y = f32[2,64,64] parameter(1) a = f32[2,64,64] add(x, y) e = f32[2,64,64] abs(a) "
   "ROOT r = f32[2,64,64] transpose(e), dimensions={0,2,1}"},
  {"something before, back to front", IN_TILES | WIDE,
   "x = f32[64,2,64] parameter(0) a = f32[64,2,64] negate(x) ROOT r = f32[64,2,64] transpose(a), dimensions={2,1,0}"},
  {"something before, whole rows", 0,
   "x = f32[20,24,32] parameter(0) a = f32[20,24,32] negate(x) ROOT r = f32[24,20,32] transpose(a), "
   "dimensions={1,0,2}"},
  {"something behind", IN_TILES | WIDE,
   "x = f32[64,128] parameter(0) y = f32[128,64] parameter(1) t = f32[128,64] transpose(x), dimensions={1,0} "
   "a = f32[128,64] add(t, y) ROOT r = f32[128,64] abs(a)"},
  {"tiles that are cut", IN_TILES,
   "x = f32[100,70] parameter(0) ROOT r = f32[70,100] transpose(x), dimensions={1,0}"},
  {"tiles of odd sizes", IN_TILES,
   "x = f32[77,65] parameter(0) ROOT r = f32[65,77] transpose(x), dimensions={1,0}"},
  {"tiles of nibbles that are cut", IN_TILES,
   "x = s4[140,90] parameter(0) ROOT r = s4[90,140] transpose(x), dimensions={1,0}"},
  {"one value, as it is and as one row", IN_TILES | WIDE,
   "x = f32[64,64] parameter(0) t = f32[64,64] transpose(x), dimensions={1,0} a = f32[64,64] abs(t) "
   "b = f32[4096] bitcast(t) ROOT r = (f32[64,64], f32[4096]) tuple(a, b)"},
  {"several results", IN_TILES | WIDE,
   "x = f32[64,64] parameter(0) y = f32[64,64] parameter(1) t = f32[64,64] transpose(x), dimensions={1,0} "
   "u = f32[64,64] transpose(y), dimensions={1,0} ROOT r = (f32[64,64], f32[64,64]) tuple(t, u)"},
  {"results of several ranks", IN_TILES | WIDE,
   "x = f32[64,64] parameter(0) t = f32[64,64] transpose(x), dimensions={1,0} b = f32[8,8,64] reshape(t) "
   "c = f32[8,8,64] negate(b) ROOT r = (f32[64,64], f32[8,8,64]) tuple(t, c)"},
  {"several results of one tile", IN_TILES | WIDE,
   "x = f32[64,64] parameter(0) t = f32[64,64] transpose(x), dimensions={1,0} a = f32[64,64] abs(t) "
   "n = f32[64,64] negate(t) ROOT r = (f32[64,64], f32[64,64]) tuple(a, n)"},
  {"a result in the other order", IN_TILES | WIDE,
   "x = f32[64,128] parameter(0) e = f32[64,128] negate(x) t = f32[128,64] transpose(e), dimensions={1,0} "
   "ROOT r = (f32[64,128], f32[128,64]) tuple(e, t)"},
  {"a result in the other order, last", IN_TILES | WIDE,
   "x = f32[64,128] parameter(0) e = f32[64,128] negate(x) t = f32[128,64] transpose(e), dimensions={1,0} "
   "ROOT r = (f32[128,64], f32[64,128]) tuple(t, e)"},
  {"a result of what goes through the tile and of more", IN_TILES | WIDE,
   "x = f32[64,128] parameter(0) y = f32[64,128] parameter(1) e = f32[64,128] negate(x) s = f32[64,128] add(e, y) "
   "t = f32[128,64] transpose(e), dimensions={1,0} ROOT r = (f32[128,64], f32[64,128]) tuple(t, s)"},
  {"both orders in one result", IN_TILES,
   "x = f32[64,64] parameter(0) t = f32[64,64] transpose(x), dimensions={1,0} ROOT r = f32[64,64] add(x, t)"},
  {"a cube of bytes", IN_TILES | WIDE,
   "x = u8[3,64,128] parameter(0) ROOT r = u8[3,128,64] transpose(x), dimensions={0,2,1}"},
  {"packed halves", IN_TILES | WIDE,
   "x = f16[64,128] parameter(0) n = f16[64,128] negate(x) ROOT r = f16[128,64] transpose(n), dimensions={1,0}"},
  {"packed integers", IN_TILES | WIDE,
   "x = s16[128,64] parameter(0) n = s16[128,64] negate(x) ROOT r = s16[64,128] transpose(n), dimensions={1,0}"},
  {"packed bytes", IN_TILES | WIDE,
   "x = s8[128,128] parameter(0) n = s8[128,128] negate(x) ROOT r = s8[128,128] transpose(n), dimensions={1,0}"},
  {"packed, with a result in the other order", IN_TILES | WIDE,
   "x = bf16[64,128] parameter(0) n = bf16[64,128] negate(x) t = bf16[128,64] transpose(n), dimensions={1,0} "
   "ROOT r = (bf16[128,64], bf16[64,128]) tuple(t, n)"},
  {"packed, several results", IN_TILES | WIDE,
   "x = s8[128,128] parameter(0) t = s8[128,128] transpose(x), dimensions={1,0} n = s8[128,128] negate(t) "
   "a = s8[128,128] abs(t) ROOT r = (s8[128,128], s8[128,128]) tuple(n, a)"},
  {"packed, two tiles in one result", IN_TILES | WIDE,
   "x = bf16[64,128] parameter(0) y = bf16[64,128] parameter(1) z = bf16[128,64] parameter(2) "
   "t = bf16[128,64] transpose(x), dimensions={1,0} u = bf16[128,64] transpose(y), dimensions={1,0} "
   "m = bf16[128,64] multiply(t, z) ROOT r = bf16[128,64] add(m, u)"},
  {"truth", IN_TILES | WIDE,
   "x = pred[128,128] parameter(0) n = pred[128,128] not(x) ROOT r = pred[128,128] transpose(n), dimensions={1,0}"},
  {"pairs of bits", IN_TILES | WIDE,
   "x = u2[256,256] parameter(0) ROOT r = u2[256,256] transpose(x), dimensions={1,0}"},
  {"complex numbers", IN_TILES | WIDE,
   "x = c64[32,64] parameter(0) n = c64[32,64] negate(x) ROOT r = c64[64,32] transpose(n), dimensions={1,0}"},
  {"wide complex numbers", IN_TILES | WIDE,
   "x = c128[32,64] parameter(0) n = c128[32,64] negate(x) ROOT r = c128[64,32] transpose(n), dimensions={1,0}"},
  {"a layout", IN_TILES | WIDE,
   "x = f32[64,128]{0,1} parameter(0) ROOT r = f32[64,128] copy(x)"},
  {"a layout behind", IN_TILES | WIDE,
   "x = f32[64,128] parameter(0) y = f32[64,128]{0,1} parameter(1) ROOT r = f32[64,128]{0,1} add(x, y)"},
  {"a bitcast that turns", IN_TILES | WIDE,
   "x = f32[64,128]{0,1} parameter(0) b = f32[128,64] bitcast(x) t = f32[64,128] transpose(b), dimensions={1,0} "
   "ROOT r = f32[64,128] negate(t)"},
  {"reshapes around", IN_TILES | WIDE,
   "x = f32[8,8,128] parameter(0) f = f32[64,128] reshape(x) t = f32[128,64] transpose(f), dimensions={1,0} "
   "ROOT r = f32[2,64,64] reshape(t)"},
  {"behind a slice that data places", IN_TILES,
   "x = f32[100,128] parameter(0) i = s32[] parameter(1) z = s32[] constant(0) "
   "d = f32[64,128] dynamic-slice(x, i, z), dynamic_slice_sizes={64,128} "
   "ROOT r = f32[128,64] transpose(d), dimensions={1,0}"},
  {"in a broadcast", IN_TILES | WIDE,
   "x = f32[64,64] parameter(0) t = f32[64,64] transpose(x), dimensions={1,0} "
   "ROOT r = f32[2,64,64] broadcast(t), dimensions={1,2}"},
  {"narrow before wide", IN_TILES,
   "x = s8[64,128] parameter(0) c = f32[64,128] convert(x) t = f32[128,64] transpose(c), dimensions={1,0} "
   "ROOT r = f32[128,64] negate(t)"},
  {"padded", IN_TILES,
   "x = f32[60,128] parameter(0) z = f32[] constant(7) t = f32[128,60] transpose(x), dimensions={1,0} "
   "ROOT r = f32[128,64] pad(t, z), padding=0_0x1_3"},
  {"a dimension of three inside", IN_TILES,
   "x = f32[64,70,3] parameter(0) ROOT r = f32[70,3,64] transpose(x), dimensions={1,2,0}"},
  {"bits that are read one by one", IN_TILES,
   "x = u1[6,3,44,140] parameter(0) y = u1[6,3,44,10,14] reshape(x) ROOT r = u1[6,3,44,10,14]{2,0,1,4,3} copy(y)"},
};
// clang-format on

#endif
