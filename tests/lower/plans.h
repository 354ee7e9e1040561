// What plans must say, why they are refused, and fusions to run. Included once, by plan.c.
#ifndef KL_TEST_PLANS_H
#define KL_TEST_PLANS_H
// clang-format off

// Text: parameters' shapes, a bar, the root; or a whole module. says: parts of the printed plan; "!": must not occur.
static const struct {
  char machine; // 'g' GPU, 'h' host
  uint32_t align; // of the arguments, 0 for the default
  const char *text;
  const char *says[6];
} plan_row[] = {
  // rounds that data says: what is the same in each stands before them, and what they carry is there behind
  {'g', 0, "HloModule m\nc { s = (f32[], f32[512], f32[512]) parameter(0) e = f32[] get-tuple-element(s), index=0 l = f32[] constant(0.5) ROOT r = pred[] compare(e, l), direction=GT }\nb { s = (f32[], f32[512], f32[512]) parameter(0) e = f32[] get-tuple-element(s), index=0 x = f32[512] get-tuple-element(s), index=1 a = f32[512] get-tuple-element(s), index=2 q = f32[] multiply(e, e) n = f32[512] negate(a) y = f32[512] add(x, n) ROOT r = (f32[], f32[512], f32[512]) tuple(q, y, a) }\nf { e = f32[] parameter(0) x = f32[512] parameter(1) a = f32[512] parameter(2) t = (f32[], f32[512], f32[512]) tuple(e, x, a) w = (f32[], f32[512], f32[512]) while(t), condition=c, body=b ROOT y = f32[512] get-tuple-element(w), index=1 }\nENTRY e { e = f32[] parameter(0) x = f32[512] parameter(1) a = f32[512] parameter(2) ROOT r = f32[512] fusion(e, x, a), kind=kLoop, calls=f }\n", {"v9 = f32 negate(v8)  ; n\n", "\n    while v6, carrying v4 = v0, then v7; v5 = v1, then v10; v6 = v3, then v12\n      v7 = f32 multiply(v4, v4)", "\n    store v5 to s3[t * 4] contiguous x4 (16-byte accesses)\n"}},
  // registers need leave room for one block alone where there are no more
  {'g', 0, "f32[1031] | r = f32[1031] negate(p0)", {"grid 3 (2 without bounds checks), block 128, registers for 1 a multiprocessor, 32-bit"}},
  {'g', 0, "f32[8192] | r = f32[8192] negate(p0)", {"grid 16 (16 without bounds checks), block 128, registers for 1 a multiprocessor, 32-bit"}},
  {'g', 0, "f32[8193] | r = f32[8193] negate(p0)", {"grid 17 (16 without bounds checks), block 128, registers for 2 a multiprocessor, 32-bit"}},
  {'g', 0, "f32[32768] | r = f32[32768] negate(p0)", {"grid 64 (64 without bounds checks), block 128, registers for 4 a multiprocessor, 32-bit"}},
  {'g', 0, "f32[32769] | r = f32[32769] negate(p0)", {"grid 65 (64 without bounds checks), block 128, 32-bit"}},
  {'g', 0, "f32[0] | r = f32[0] negate(p0)", {"grid 0 ", "!registers for"}},
  {'h', 0, "f32[1031] | r = f32[1031] negate(p0)", {"!registers for"}},
  // but of sums of tiles that are straight code, without a loop, they are the assembler's
  {'g', 0, "c64[33,16];c64[16,33] | r = c64[33,33] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {"to s4", "!registers for"}},
  {'g', 0, "c64[33,17];c64[17,33] | r = c64[33,33] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {"to s4", "registers for 1 a multiprocessor"}},
  // 16 bytes a thread whatever the type
  {'g', 0, "f32[1048576] | r = f32[1048576] negate(p0)", {"grid 2048 (2048 without bounds checks), block 128, 32-bit", "262144 threads x 4 lanes", "load s0[t * 4] contiguous x4 (16-byte accesses)", "to s1[t * 4] contiguous x4 (16-byte accesses)", "!tail"}},
  {'g', 0, "f64[1048576] | r = f64[1048576] negate(p0)", {"524288 threads x 2 lanes", "load s0[t * 2] contiguous x2 (16-byte accesses)", "to s1[t * 2] contiguous x2 (16-byte accesses)"}},
  {'g', 0, "bf16[1048576] | r = bf16[1048576] negate(p0)", {"131072 threads x 8 lanes", "load s0[t * 8] contiguous x8 (16-byte accesses)", "to s1[t * 8] contiguous x8 (16-byte accesses)"}},
  {'g', 0, "f16[1048576] | r = f16[1048576] negate(p0)", {"131072 threads x 8 lanes", "load s0[t * 8] contiguous x8 (16-byte accesses)"}},
  {'g', 0, "s8[1048576] | r = s8[1048576] negate(p0)", {"65536 threads x 16 lanes", "load s0[t * 16] contiguous x16 (16-byte accesses)", "to s1[t * 16] contiguous x16 (16-byte accesses)"}},
  {'g', 0, "f8e5m2[1048576] | r = f8e5m2[1048576] negate(p0)", {"load s0[t * 16] contiguous x16 (16-byte accesses)"}},
  {'g', 0, "pred[1048576] | r = pred[1048576] not(p0)", {"load s0[t * 16] contiguous x16 (16-byte accesses)"}},
  {'g', 0, "s4[1048576] | r = s4[1048576] negate(p0)", {"32768 threads x 32 lanes", "load s0[t * 32] contiguous x32 (16-byte accesses)", "to s1[t * 32] contiguous x32 (16-byte accesses)"}},
  {'g', 0, "s2[1048576] | r = s2[1048576] negate(p0)", {"16384 threads x 64 lanes", "load s0[t * 64] contiguous x64 (16-byte accesses)", "to s1[t * 64] contiguous x64 (16-byte accesses)"}},
  {'g', 0, "u1[1048576] | r = u1[1048576] not(p0)", {"8192 threads x 128 lanes", "load s0[t * 128] contiguous x128 (16-byte accesses)", "to s1[t * 128] contiguous x128 (16-byte accesses)"}},
  {'g', 0, "s1[1025] | r = s1[1025] negate(p0)", {"tail: 129 threads x 8 lanes from element 0", "to s1[t * 8] contiguous x8 (1-byte accesses)"}},
  {'g', 0, "c64[1048576] | r = c64[1048576] negate(p0)", {"524288 threads x 2 lanes", "load s0[t * 2] contiguous x2 (16-byte accesses)"}},
  {'g', 0, "c128[1048576] | r = c128[1048576] negate(p0)", {"1048576 threads x 1 lanes", "load s0[t]  ;", "to s1[t]\n"}},
  // where types are of several widths a warp asks for whole sectors of each, 16 bytes a thread
  {'g', 0, "s8[1048576] | r = f32[1048576] convert(p0)", {"reg v < 16, lane bit1 < 2, lane bit0 < 2", "load s0[block * 2048 + warp * 128 + lane * 16 + bit1 * 1024 + bit0 * 512] contiguous x16 (16-byte accesses)", "exchange v / 8 with bit1", "s0: 2048 requests, 32768 sectors of 32768", "contiguous x4 (16-byte accesses), 4 chunks", "s1: 8192 requests, 131072 sectors of 131072"}},
  {'g', 0, "f32[4096] | r = bf16[4096] convert(p0)", {"= bf16 exchange v / 4 with bit0", "s0: 32 requests, 512 sectors of 512", "s1: 16 requests, 256 sectors of 256", "contiguous x8 (16-byte accesses)\n", "!tail"}},
  {'g', 0, "f32[4096] | r = f8e5m2[4096] convert(p0)", {"= f8e5m2 exchange v / 8 with bit1", "s0: 32 requests, 512 sectors of 512", "s1: 8 requests, 128 sectors of 128", "contiguous x16 (16-byte accesses)\n"}},
  {'g', 0, "s4[8192] | r = bf16[8192] convert(p0)", {"load s0[block * 4096 + warp * 256 + lane * 32 + bit1 * 2048 + bit0 * 1024] contiguous x32 (16-byte accesses)", "s0: 8 requests, 128 sectors of 128", "s1: 32 requests, 512 sectors of 512"}},
  {'g', 0, "pred[4096];bf16[4096];bf16[4096] | r = bf16[4096] select(p0, p1, p2)", {"= pred exchange v / 8 with bit0", "s0: 8 requests, 128 sectors of 128", "s1: 16 requests, 256 sectors of 256", "s3: 16 requests, 256 sectors of 256", "!bit1"}},
  {'g', 0, "f64[4096] | r = s16[4096] convert(p0)", {"exchange v / 4 with bit1", "s0: 64 requests, 1024 sectors of 1024", "s1: 16 requests, 256 sectors of 256", "contiguous x8 (16-byte accesses)\n"}},
  {'g', 0, "f32[4096];bf16[4096] | r = (bf16[4096], f32[4096]) tuple(p1, p0)", {"store v0 to s2[", "s1: 16 requests, 256 sectors of 256", "s2: 16 requests, 256 sectors of 256"}},
  {'g', 4, "f32[4096] | r = bf16[4096] convert(p0)", {"(4-byte accesses)", "!exchange"}},
  {'g', 0, "s1[16384] | r = f32[16384] convert(p0)", {"512 threads x 32 lanes", "contiguous x32 (4-byte accesses)", "!exchange"}},
  {'h', 0, "f32[1048576] | r = f32[1048576] negate(p0)", {", host, 32-bit", "65536 threads x 16 lanes", "load s0[t * 16] contiguous x16", "!grid", "!tail"}},
  {'h', 0, "s4[1048576] | r = s4[1048576] negate(p0)", {"65536 threads x 16 lanes", "load s0[t * 16] contiguous x16 (8-byte accesses)"}},
  // the arguments' own alignment
  {'g', 4, "f32[65536] | r = f32[65536] negate(p0)", {"aligned to 4\n", "load s0[t * 4] contiguous x4 (4-byte accesses)", "to s1[t * 4] contiguous x4 (4-byte accesses)"}},
  {'g', 8, "f32[65536] | r = f32[65536] negate(p0)", {"aligned to 8\n", "load s0[t * 4] contiguous x4 (8-byte accesses)"}},
  {'g', 256, "f32[65536] | r = f32[65536] negate(p0)", {"aligned to 256\n", "load s0[t * 4] contiguous x4 (16-byte accesses)"}},
  {'g', 1, "s4[65536] | r = s4[65536] negate(p0)", {"load s0[t * 32] contiguous x32 (1-byte accesses)"}},
  // the rest behind whole blocks
  {'g', 0, "f32[1000] | r = f32[1000] negate(p0)", {"grid 5 (1 without bounds checks)", "main: 128 threads x 4 lanes from element 0", "tail: 488 threads x 1 lanes from element 512", "load s0[t + 512]  ;", "!g0"}},
  {'g', 0, "f32[515] | r = f32[515] negate(p0)", {"grid 2 (1 without bounds checks)", "tail: 3 threads x 1 lanes from element 512"}},
  {'h', 0, "f32[515] | r = f32[515] negate(p0)", {"main: 32 threads x 16 lanes from element 0", "tail: 3 threads x 1 lanes from element 512"}},
  {'g', 0, "s4[1025] | r = s4[1025] negate(p0)", {"grid 5 (0 without bounds checks)", "tail: 513 threads x 2 lanes from element 0", "g0 = 0 <= t * 2 + lane <= 1024 (same for 1 lane)", "load s0[t * 2], 2 chunks if g0", "to s1[t * 2] contiguous x2 (1-byte accesses) keeping g0", "!main"}},
  {'g', 0, "f32[] | r = f32[] negate(p0)", {"grid 1 (0 without bounds checks)", "tail: 1 threads x 1 lanes", "load s0[0]  ;", "to s1[0]\n"}},
  {'h', 0, "f32[] | r = f32[] negate(p0)", {"tail: 1 threads x 1 lanes", "load s0[0]  ;"}},
  {'g', 0, "f32[0] | r = f32[0] negate(p0)", {"over 0 elements, grid 0 (0 without", "!main", "!tail"}},
  {'h', 0, "f32[7,0] | r = f32[7,0] negate(p0)", {"over 0 elements", "!main", "!tail"}},
  // the same order in memory is no index arithmetic, whatever the shape
  {'g', 0, "f32[700,5,2] | r = f32[700,5,2] negate(p0)", {"load s0[t * 4] contiguous x4 (16-byte accesses)"}},
  {'g', 0, "f32[700,5,2]{0,2,1} | r = f32[700,5,2]{0,2,1} negate(p0)", {"load s0[t * 4] contiguous x4 (16-byte accesses)", "load s0[t + 6656]  ;"}},
  {'g', 0, "f32[512,1024] | r = f32[1024,512]{0,1} transpose(p0), dimensions={1,0}", {"load s0[t * 4] contiguous x4 (16-byte accesses)"}},
  {'g', 0, "f32[35,6,64] | r = f32[64,210] reshape(p0)", {"load s0[t * 4] contiguous x4 (16-byte accesses)"}},
  {'g', 0, "f32[128,128]{0,1};s8[16384] | r = (f32[128,128]{0,1}, s8[16384]) tuple(p0, p1)", {"grid 8 ", "s0: 128 requests, 2048 sectors of 2048", "s1: 32 requests, 512 sectors of 512", "s2: 128 requests, 2048 sectors of 2048", "s3: 32 requests, 512 sectors of 512", "store v1 to s3["}},
  // lanes for the narrowest array, if it is not small, and 128 bytes of the widest
  {'g', 0, "s2[65536] | r = f64[65536] convert(p0)", {"4096 threads x 16 lanes", "load s0[t * 16] contiguous x16 (4-byte accesses)"}},
  {'g', 0, "HloModule m\nENTRY e {\n  p = s8[32768] parameter(0)\n  b = s8[32768,2] broadcast(p), dimensions={0}\n  ROOT r = f32[32768,2] convert(b)\n}\n", {"broadcast x2, 8 chunks"}},
  {'g', 0, "HloModule m\nENTRY e {\n  p = s8[4096] parameter(0)\n  b = s8[4096,16] broadcast(p), dimensions={0}\n  ROOT r = f32[4096,16] convert(b)\n}\n", {"16384 threads x 4 lanes"}},
  // rows and columns broadcast, of even and odd length
  {'g', 0, "f32[64] | r = f32[4096,64] broadcast(p0), dimensions={1}", {"load s0[(t mod 16) * 4] contiguous x4 (16-byte accesses)"}},
  {'g', 0, "f32[1048576] | r = f32[1048576] negate(p0)", {"s0: 8192 requests, 131072 sectors of 131072 that would do", "s1: 8192 requests, 131072 sectors of 131072 that would do"}},
  {'g', 0, "f32[512,1024] | r = f32[1024,512] transpose(p0), dimensions={1,0}", {"s0: 4096 requests, 65536 sectors of 65536 that would do", "s1: 4096 requests, 65536 sectors of 65536"}},
  {'g', 0, "f32[2048,2048];f32[] | r = f32[2048,2050] pad(p0, p1), padding=0_0x1_1", {"s1: "}},
  {'g', 0, "s4[1048576] | r = s4[1048576] reverse(p0), dimensions={0}", {"s0: 1024 requests, 16384 sectors of 16384"}},
  {'g', 0, "f32[63] | r = f32[4096,63] broadcast(p0), dimensions={1}", {"load s0[(t * 4) mod 63], 4 chunks"}},
  {'g', 0, "f32[4096] | r = f32[4096,64] broadcast(p0), dimensions={0}", {"load s0[t / 16]  ;", "!broadcast"}},
  {'g', 0, "f32[4096] | r = f32[4096,63] broadcast(p0), dimensions={0}", {"load s0[(t * 4) / 63], 4 chunks"}},
  {'g', 0, "f32[4096] | r = f32[4096,2] broadcast(p0), dimensions={0}", {"load s0[t * 2] broadcast x2, 2 chunks"}},
  {'g', 0, "f32[] | r = f32[4096] broadcast(p0), dimensions={}", {"load s0[0]  ;", "!broadcast"}},
  // transposes
  {'g', 0, "f32[512,1024] | r = f32[1024,512] transpose(p0), dimensions={1,0}", {"transpose over", "tile_x < 8, block tile_y < 16", "shared f32[4160]", "contiguous x4 (16-byte accesses) along v, 4 chunks  ; p0", "contiguous x4 (16-byte accesses) along a", "sync"}},
  {'g', 0, "bf16[2048,4096] | r = bf16[4096,2048] transpose(p0), dimensions={1,0}", {"32-bit indices", "shared bf16[8320]", "contiguous x8 (16-byte accesses) along v, 8 chunks  ; p0", "contiguous x8 (16-byte accesses) along a"}},
  {'g', 0, "f32[1024,512]{0,1} | r = f32[1024,512] copy(p0)", {"transpose over", "contiguous x4 (16-byte accesses) along v, 4 chunks  ; p0"}},
  {'g', 0, "f32[512,64,4] | r = f32[64,512,4] transpose(p0), dimensions={1,0,2}", {"] contiguous x4 (16-byte accesses)  ; p0"}},
  {'g', 0, "bf16[512,64,4] | r = bf16[64,512,4] transpose(p0), dimensions={1,0,2}", {"] contiguous x4 (8-byte accesses), 2 chunks  ; p0"}},
  // reversed
  {'g', 0, "f32[65536] | r = f32[65536] reverse(p0), dimensions={0}", {"load s0[-t * 4 + 65532] contiguous x4 (16-byte accesses) reversed"}},
  {'h', 0, "f32[65536] | r = f32[65536] reverse(p0), dimensions={0}", {"load s0[-t * 16 + 65520] contiguous x16 (16-byte accesses) reversed"}},
  {'g', 0, "s4[65536] | r = s4[65536] reverse(p0), dimensions={0}", {"load s0[-t * 32 + 65504] contiguous x32 (16-byte accesses) reversed"}},
  // slices, aligned and not
  {'g', 0, "f32[65540] | r = f32[65536] slice(p0), slice={[4:65540]}", {"load s0[t * 4 + 4] contiguous x4 (16-byte accesses)"}},
  {'g', 0, "f32[65540] | r = f32[65536] slice(p0), slice={[2:65538]}", {"load s0[block * 512 + warp * 128 + lane * 4] contiguous x4 (16-byte accesses)", "s0: 1024 requests, 8704 sectors of 8704", "of lane + 1"}},
  {'g', 0, "f32[65540] | r = f32[65536] slice(p0), slice={[1:65537]}", {"load s0[block * 512 + warp * 128 + lane * 4] contiguous x4 (16-byte accesses)", "load s0[block * 512 + warp * 128 + 128] contiguous x4 (16-byte accesses)", "of lane + 1", "s0: 1024 requests, 8704 sectors of 8704"}},
  {'g', 0, "bf16[65540] | r = bf16[65536] slice(p0), slice={[1:65537]}", {"load s0[block * 1024 + warp * 256 + lane * 8] contiguous x8 (16-byte accesses)", "load s0[block * 1024 + warp * 256 + 256]  ;", "of lane + 1"}},
  {'g', 0, "bf16[65544] | r = bf16[65536] slice(p0), slice={[6:65542]}", {"load s0[block * 1024 + warp * 256 + lane * 8 + 8] contiguous x8 (16-byte accesses)", "load s0[block * 1024 + warp * 256] contiguous x8 (16-byte accesses)", "of lane + 31"}},
  // what may lie anywhere, the same for a warp; the last vector of an array that is no whole one; rows within a warp
  {'g', 0, "f32[64,2051] | r = f32[64,2048] slice(p0), slice={[0:64],[1:2049]}", {"contiguous x4 (16-byte accesses)", "of lane + 1", "choose(g1 ? ", "!(4-byte"}},
  {'g', 0, "f32[65537] | r = f32[65536] slice(p0), slice={[1:65537]}", {"load s0[block * 512 + warp * 128 + 128]  ;", "of lane + 1", "s0: 1024 requests, 8704 sectors of 8704"}},
  {'g', 0, "f32[512,68] | r = f32[512,64] slice(p0), slice={[0:512],[1:65]}", {"contiguous x4 (4-byte accesses)", "!of lane"}},
  // each lane's own: rows that are padded, or have others beside them; both rows' elements lie in two vectors, or apart
  {'g', 0, "f32[1024,1024];f32[] | r = f32[1024,1026] pad(p0, p1), padding=0_0x1_1", {"s0: 16416 requests, 152542 sectors", "of lane + 1", "!chunks"}},
  {'g', 0, "bf16[512,1022];bf16[] | r = bf16[512,1027] pad(p0, p1), padding=0_0x1_4", {"contiguous x8 (16-byte accesses) if g", "of lane + 1", "!, 8 chunks"}},
  {'g', 0, "f32[512,300];f32[512,1] | r = f32[512,301] concatenate(p0, p1), dimensions={1}", {"load s0[", "contiguous x4 (16-byte accesses) if g", "of lane + 1"}},
  {'g', 0, "f32[512,1026] | r = f32[512,1023] slice(p0), slice={[0:512],[1:1024]}", {"contiguous x4 (16-byte accesses)", "of lane + 1", ", 4 chunks if g"}},
  {'g', 0, "bf16[512,1026] | r = bf16[512,1023] slice(p0), slice={[0:512],[1:1024]}", {"s0: 8192 requests, 43426 sectors", "of lane + 1", "bf16 slide v by"}},
  {'g', 0, "f32[512,103];f32[512,200] | r = f32[512,303] concatenate(p0, p1), dimensions={1}", {"load s1[", "contiguous x4 (16-byte accesses) if g", "of lane + 1", "4 chunks if g"}},
  {'g', 0, "f32[512,100];f32[512,201] | r = f32[512,301] concatenate(p0, p1), dimensions={1}", {"load s1[", "contiguous x4 (16-byte accesses) if g", "4 chunks if g", "!of lane"}},
  {'g', 0, "s4[65568] | r = s4[65536] slice(p0), slice={[8:65544]}", {"load s0[t * 32 + 8] contiguous x32 (4-byte accesses)", "!of lane"}},
  {'g', 0, "f32[65540] | a = f32[65536] slice(p0), slice={[1:65537]} b = f32[65536] slice(p0), slice={[0:65536]} r = f32[65536] add(a, b)", {"s0: 1024 requests, 8704 sectors of 8704", "of lane + 1"}},
  {'g', 0, "s4[65540] | r = s4[65536] slice(p0), slice={[2:65538]}", {"load s0[t * 32 + 2] contiguous x32 (1-byte accesses)"}},
  {'g', 0, "s4[65540] | r = s4[65536] slice(p0), slice={[1:65537]}", {"load s0[t * 32 + 1], 32 chunks"}},
  {'g', 0, "f32[262144] | r = f32[65536] slice(p0), slice={[1:262144:4]}", {"load s0[t * 16 + 1] stride 4 x4"}},
  // guards
  {'g', 0, "f32[65536];f32[] | r = f32[65544] pad(p0, p1), padding=4_4", {"g0 = 0 <= t * 4 + lane - 4 <= 65535 (same for 4 lane)", "load s0[t * 4 - 4] contiguous x4 (16-byte accesses) if g0", "choose(g0 ? v0, v1)", "!g1"}},
  {'g', 0, "f32[1984];f32[] | r = f32[1988] pad(p0, p1), padding=2_2", {"load s0[block * 512 + warp * 128 + lane * 4 - 4] contiguous x4 (16-byte accesses) if g1", "load s0[block * 512 + warp * 128 + 124] contiguous x4 (16-byte accesses)  ;", "of lane + 1"}},
  {'g', 0, "f32[65536];f32[] | r = f32[131071] pad(p0, p1), padding=0_0_1", {"g0 = 0 <= lane mod 2 <= 0 (same for 1 lane)", "load s0[t * 2] broadcast x2, 2 chunks  ;", "!if g0"}},
  {'g', 0, "f32[65536];f32[] | r = f32[65532] pad(p0, p1), padding=-2_-2", {"load s0[block * 512 + warp * 128 + lane * 4] contiguous x4 (16-byte accesses)", "of lane + 1"}},
  {'g', 0, "f32[4,64];f32[8,64] | r = f32[12,64] concatenate(p0, p1), dimensions={0}", {"g0 = 0 <= t / 16 <= 3 (same for 4 lane)", "load s0[t * 4] contiguous x4 (16-byte accesses) if g0", "load s1[t * 4 - 256] contiguous x4 (16-byte accesses) if g1", "choose(g0 ? v0, v1)", "!g2"}},
  {'g', 0, "f32[4,4096];f32[8,4096] | r = f32[12,4096] concatenate(p0, p1), dimensions={0}", {"part of results [0:4] in dimension 0, blocks from 0 on (32 ", "load s0[t * 4] contiguous x4 (16-byte accesses)", "part of results [4:12] in dimension 0, blocks from 32 on (64 ", "load s1[t * 4] contiguous x4 (16-byte accesses)", "to s2[t * 4 + 16384] contiguous x4 (16-byte accesses)", "!g0"}},
  {'g', 0, "f32[4099];f32[5000] | r = f32[9099] concatenate(p0, p1), dimensions={0}", {"part of results [0:4096] in dimension 0", "part of results [4096:4104] in dimension 0", "part of results [4104:9099] in dimension 0", "load s1[block * 512 + warp * 128 + lane * 4 + 4] contiguous x4 (16-byte accesses)", "to s2[block * 512 + warp * 128 + lane * 4 + 4104] contiguous x4 (16-byte accesses)"}},
  {'g', 0, "f32[4096,6];f32[4096,10] | r = f32[4096,16] concatenate(p0, p1), dimensions={1}", {"] contiguous x2 (8-byte accesses), 2 chunks if g0", "] contiguous x2 (8-byte accesses), 2 chunks if g1", "(same for 2 lane)", "!g2"}},
  {'g', 0, "f32[4096,8];f32[4096,0];f32[4096,8] | r = f32[4096,16] concatenate(p0, p1, p2), dimensions={1}", {"load s0", "!load s1", "load s2", "!g2"}},
  // parts of bytes are not read as a whole, wherever they start
  {'g', 0, "HloModule m\nENTRY e {\n  p = s2[4096,4] parameter(0)\n  x = s2[4096,2] slice(p), slice={[0:4096], [0:2]}\n  ROOT r = f32[4096,2] convert(x)\n}\n", {"reg v < 32", ", 32 chunks  ; p", "!load s0[block * 8192 + warp * 1024 + lane * 64 + bit0 * 32] contiguous"}},
  // both bodies read one constant
  {'g', 0, "HloModule m\nENTRY e {\n  c = f32[3] constant({1, 2, 3})\n  ROOT r = f32[1000,3] broadcast(c), dimensions={1}\n}\n", {"main", "tail", "s1: constant f32[3]", "!s2"}},
  // the same element twice is one load
  {'g', 0, "f32[4096] | r = f32[4096] add(p0, p0)", {"v1 = f32 add(v0, v0)"}},
  // 32 bits until they end
  {'g', 0, "s8[2147483647] | r = s8[2147483647] not(p0)", {"32-bit indices"}},
  {'g', 0, "s8[2147483648] | r = s8[2147483648] not(p0)", {"32-bit indices", "grid 1048576 (1048576 without"}},
  {'h', 0, "s8[2147483649] | r = s8[2147483649] not(p0)", {"64-bit indices", "from element 2147483648", "load s0[2147483648]  ;"}},
  {'g', 0, "s8[3000000000] | r = s8[3000000000] not(p0)", {"64-bit indices", "grid 1464855 (1464843 without", "187499904 threads x 16 lanes", "1536 threads x 1 lanes from element 2999998464", "load s0[t * 16] contiguous x16 (16-byte accesses)"}},
  {'g', 0, "s8[1500000000,2] | r = s8[3000000000] reshape(p0)", {"64-bit indices", "load s0[t * 16] contiguous x16 (16-byte accesses)"}},
  {'g', 0, "s8[3000000000] | r = s8[16] slice(p0), slice={[2999999984:3000000000]}", {"64-bit indices", "load s0[t + 2999999984]"}},
  {'g', 0, "s8[3000000000] | r = s8[16] slice(p0), slice={[2147483632:2147483648]}", {"32-bit indices", "load s0[t + 2147483632]"}},
  // results of one size are one domain, each with blocks of its own and lanes for what it reads
  {'g', 0, "f32[1048576];s4[4096];f32[0] | r = (f32[1048576], s4[4096], f32[0], f32[1048576]) tuple(p0, p1, p2, p0)", {"over 1052672 elements, grid 2049 (2049 without", "part of 1048576 elements, blocks from 0 on (2048", "part of 4096 elements, blocks from 2048 on (1 without", "128 threads x 32 lanes", "load s1[t * 32] contiguous x32 (16-byte accesses)", "!tail"}},
  {'h', 0, "f32[64];f32[5] | r = (f32[64], f32[5]) tuple(p0, p1)", {"part of 64 elements:\n  main: 4 threads x 16 lanes", "part of 5 elements:\n  tail: 5 threads x 1 lanes"}},
  {'g', 0, "f32[0];f32[0,4] | r = (f32[0], f32[0,4]) tuple(p0, p1)", {"over 0 elements, grid 0", "!main", "!tail"}},
  // tiles: one index in memory, padding by guards, whole tiles without any
  {'g', 0, "f32[1024,1024]{1,0:T(8,128)} | r = f32[1024,1024]{1,0:T(8,128)} negate(p0)", {"load s0[t * 4] contiguous x4 (16-byte accesses)", "to s1[t * 4] contiguous x4", "!g0"}},
  {'g', 0, "f32[1024,1000]{1,0:T(8,128)} | r = f32[1024,1000]{1,0:T(8,128)} negate(p0)", {"load s0[t * 4] contiguous x4 (16-byte accesses)", "(same for 4 lane)", "to s1[t * 4] contiguous x4 (16-byte accesses)\n"}},
  // only what stands under a floor is too large
  {'g', 0, "HloModule m\nENTRY e {\n  p = s8[131072] parameter(0)\n  b = s8[131072,1048577] broadcast(p), dimensions={0}\n  x = s8[137439084544] reshape(b)\n  ROOT r = s8[131073] slice(x), slice={[0:137439084544:1048573]}\n}\n", {"64-bit indices", "load s0[(t * 16777168) / 1048577]"}},
};

static const struct {
  char machine; // '*' both
  uint32_t align;
  const char *text;
  kiln_status status;
  const char *why;
} refused_row[] = {
  {'*', 0, "HloModule m\nc { s = (f32[], f32[512], f32[512]) parameter(0) e = f32[] get-tuple-element(s), index=0 l = f32[] constant(0.5) ROOT r = pred[] compare(e, l), direction=GT }\nb { s = (f32[], f32[512], f32[512]) parameter(0) e = f32[] get-tuple-element(s), index=0 x = f32[512] get-tuple-element(s), index=1 a = f32[512] get-tuple-element(s), index=2 q = f32[] multiply(e, e) n = f32[512] negate(a) y = f32[512] reverse(x), dimensions={0} ROOT r = (f32[], f32[512], f32[512]) tuple(q, y, a) }\nf { e = f32[] parameter(0) x = f32[512] parameter(1) a = f32[512] parameter(2) t = (f32[], f32[512], f32[512]) tuple(e, x, a) w = (f32[], f32[512], f32[512]) while(t), condition=c, body=b ROOT y = f32[512] get-tuple-element(w), index=1 }\nENTRY e { e = f32[] parameter(0) x = f32[512] parameter(1) a = f32[512] parameter(2) ROOT r = f32[512] fusion(e, x, a), kind=kLoop, calls=f }\n", KILN_E_UNSUPPORTED, "while inside of a fusion or a map is not compiled: expected one that makes each element of"},
  {'*', 0, "s4[8]{0:E(12)} | r = s4[8] negate(p0)", KILN_E_UNSUPPORTED, "a layout with E(12) is not supported for s4"},
  {'*', 0, "c64[8]{0:E(128)} | r = c64[8] negate(p0)", KILN_E_UNSUPPORTED, "a layout with E(128) is not supported for c64"},
  {'*', 0, "f32[8]{0:M(64)} | r = f32[8] negate(p0)", KILN_E_UNSUPPORTED, "layouts with a metadata prefix (M) are not supported"},
  {'*', 0, "s4[8]{0:E(8)} | r = s8[8] bitcast(p0)", KILN_E_UNSUPPORTED, "bitcast of elements that lie apart (E, M) is not supported"},
  {'*', 0, "s4[3,5]{1,0:T(2,2)} | r = s4[24] bitcast(p0)", KILN_E_UNSUPPORTED, "bitcast: not every element of the result is known to lie on elements"},
  {'*', 0, "f32[8]{0:D(C)} | r = f32[8] negate(p0)", KILN_E_UNSUPPORTED, "a sparse layout (D) is not supported"},
  {'*', 0, "f32[8]{0:SC(0:4)} | r = f32[8] negate(p0)", KILN_E_UNSUPPORTED, "a layout of split dimensions (SC) is not supported"},
  {'*', 0, "f32[8]{0:P(f32[9])} | r = f32[8] negate(p0)", KILN_E_UNSUPPORTED, "a layout with a physical shape of its own (P) is not supported"},
  {'*', 0, "s4[5] | r = s4[6] bitcast(p0)", KILN_E_UNSUPPORTED, "bitcast: not every element of the result is known to lie on elements"},
  {'*', 0, "f32[<=8] | r = f32[<=8] negate(p0)", KILN_E_UNSUPPORTED, "dimension 0 is dynamic (<=8): only static sizes are compiled"},
  {'*', 0, "f32[2,<=8] | r = f32[2,<=8] negate(p0)", KILN_E_UNSUPPORTED, "dimension 1 is dynamic (<=8): only static sizes are compiled"},
  {'*', 0, "f32[4] | r = f32[4] frobnicate(p0)", KILN_E_UNSUPPORTED, "frobnicate is not compiled: it is no HLO op that is known"},
  {'*', 0, "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  x = f32[4] frobnicate(p)\n  ROOT r = f32[4] negate(x)\n}\n", KILN_E_UNSUPPORTED, "frobnicate is not compiled: it is no HLO op that is known"},
  {'*', 0, "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  x = f32[4] frobnicate(p)\n  ROOT r = f32[4] negate(p)\n}\n", KILN_E_UNSUPPORTED, "frobnicate is not compiled: it is no HLO op that is known"},
  {'*', 0, "HloModule m\nf {\n  p = f32[4] parameter(0)\n  x = f32[4] frobnicate(p)\n  ROOT y = f32[4] negate(p)\n}\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] fusion(p), kind=kLoop, calls=f\n}\n", KILN_E_UNSUPPORTED, "frobnicate is not compiled: it is no HLO op that is known"},
  {'*', 0, "f32[?,4] | r = f32[?,4] negate(p0)", KILN_E_UNSUPPORTED, "dimension 0 is of unknown size (?)"},
  {'*', 0, "HloModule m\nf {\n  p = f32[4] parameter(0)\n  ROOT x = f32[4] frobnicate(p)\n}\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] fusion(p), kind=kLoop, calls=f\n}\n", KILN_E_UNSUPPORTED, "frobnicate is not compiled: it is no HLO op that is known"},
  {'*', 0, "HloModule m\nf {\n  p = f32[4] parameter(0)\n  ROOT x = f32[4] negate(p)\n}\nENTRY e {\n  p = f32[4] parameter(0)\n  g = f32[4] fusion(p), kind=kLoop, calls=f\n  ROOT r = f32[4] abs(g)\n}\n", KILN_E_UNSUPPORTED, "abs beside a fusion in ENTRY cannot be part of one"},
  {'*', 0, "HloModule m\nf {\n  p = f32[4] parameter(0)\n  ROOT x = f32[4] negate(p)\n}\nENTRY e {\n  p = f32[4] parameter(0)\n  g = f32[4] fusion(p), kind=kLoop, calls=f\n  ROOT r = f32[4] frobnicate(g)\n}\n", KILN_E_UNSUPPORTED, "frobnicate is not compiled: it is no HLO op that is known"},
  {'*', 0, "f32[4];token[] | r = f32[4] negate(p0)", KILN_E_UNSUPPORTED, "parameter of type token cannot be part of a kernel"},
  {'*', 2, "f32[4] | r = f32[4] negate(p0)", KILN_E_INVALID, "arguments are declared aligned to 2 bytes: f32 needs 4"},
  {'*', 4, "f32[4] | r = f64[4] convert(p0)", KILN_E_INVALID, "arguments are declared aligned to 4 bytes: f64 needs 8"},
  {'*', 4, "c128[4] | r = c128[4] negate(p0)", KILN_E_INVALID, "arguments are declared aligned to 4 bytes: c128 needs 8"},
  {'*', 0, "HloModule m\nENTRY e {\n  i = s8[576460752303423488] iota(), iota_dimension=0\n  x = s8[2,288230376151711744] reshape(i)\n  z = s8[] parameter(0)\n  ROOT r = s8[112,4] pad(x, z), padding=100_10x0_-288230376151711740\n}\n", KILN_E_UNSUPPORTED, "an index of this fusion does not fit 64 bits"},
  {'*', 0, "f32[2,2] | r = f32[2,2] shuffle(p0)", KILN_E_UNSUPPORTED, "shuffle is not compiled"},
  {'g', 0, "s8[8796093022208] | r = s8[8796093022208] not(p0)", KILN_E_UNSUPPORTED, "8796093022208 elements need 4294967296 blocks: a grid has at most 2^31-1"},
};

// Fusions to run in full.
static const char *const by_hand[] = {
  // loops whose rounds data says: of scalars and elements; in each other, reading what does not change where a round says
  "HloModule m\n"
  "cond { s = (f32[], f32[40,3], f32[40,3], s32[]) parameter(0)\n"
  "e = f32[] get-tuple-element(s), index=0 lim = f32[] constant(0.001)\n"
  "ROOT c = pred[] compare(e, lim), direction=GT }\n"
  "body { s = (f32[], f32[40,3], f32[40,3], s32[]) parameter(0)\n"
  "e = f32[] get-tuple-element(s), index=0\n"
  "x = f32[40,3] get-tuple-element(s), index=1\n"
  "a = f32[40,3] get-tuple-element(s), index=2\n"
  "k = s32[] get-tuple-element(s), index=3\n"
  "one = s32[] constant(1)\n"
  "k2 = s32[] add(k, one)\n"
  "half = f32[] constant(0.5)\n"
  "hb = f32[40,3] broadcast(half), dimensions={}\n"
  "q = f32[40,3] divide(a, x)\n"
  "t = f32[40,3] add(x, q)\n"
  "x2 = f32[40,3] multiply(t, hb)\n"
  "e2 = f32[] multiply(e, half)\n"
  "ROOT r = (f32[], f32[40,3], f32[40,3], s32[]) tuple(e2, x2, a, k2) }\n"
  "fused { e = f32[] parameter(0) a = f32[40,3] parameter(1)\n"
  "z = s32[] constant(0)\n"
  "one = f32[] constant(1)\n"
  "x = f32[40,3] broadcast(one), dimensions={}\n"
  "t = (f32[], f32[40,3], f32[40,3], s32[]) tuple(e, x, a, z)\n"
  "w = (f32[], f32[40,3], f32[40,3], s32[]) while(t), condition=cond, body=body\n"
  "y = f32[40,3] get-tuple-element(w), index=1\n"
  "k = s32[] get-tuple-element(w), index=3\n"
  "ROOT r = (f32[40,3], s32[]) tuple(y, k) }\n"
  "ENTRY m { e = f32[] parameter(0) a = f32[40,3] parameter(1)\n"
  "ROOT f = (f32[40,3], s32[]) fusion(e, a), kind=kLoop, calls=fused }\n",
  "HloModule m\n"
  "ic { s = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] get-tuple-element(s), index=2 ROOT r = pred[] compare(i, n), direction=LT }\n"
  "ib { s = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] get-tuple-element(s), index=2 x = f16[6,5] get-tuple-element(s), index=1 t = f16[64] get-tuple-element(s), index=3\n"
  "b = pred[6,5] get-tuple-element(s), index=4\n"
  "o = s32[] constant(1) j = s32[] add(i, o) d = f16[1] dynamic-slice(t, i), dynamic_slice_sizes={1} e = f16[] reshape(d) eb = f16[6,5] broadcast(e), dimensions={}\n"
  "y = f16[6,5] add(x, eb) sn = f16[6,5] sine(y) q = pred[6,5] compare(sn, eb), direction=GT bb = pred[6,5] xor(b, q) z = f16[6,5] select(bb, y, sn)\n"
  "ROOT r = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) tuple(j, z, n, t, bb) }\n"
  "oc { s = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) parameter(0) n = s32[] get-tuple-element(s), index=2 z = s32[] constant(6) ROOT r = pred[] compare(n, z), direction=LT }\n"
  "ob { s = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] get-tuple-element(s), index=2 x = f16[6,5] get-tuple-element(s), index=1 t = f16[64] get-tuple-element(s), index=3\n"
  "b = pred[6,5] get-tuple-element(s), index=4\n"
  "z = s32[] constant(0)\n"
  "u = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) tuple(z, x, n, t, b)\n"
  "w = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) while(u), condition=ic, body=ib\n"
  "x2 = f16[6,5] get-tuple-element(w), index=1 b2 = pred[6,5] get-tuple-element(w), index=4 j = s32[] get-tuple-element(w), index=0\n"
  "o = s32[] constant(1) k = s32[] add(n, o) nx = f16[6,5] negate(x2) m = s32[] add(i, j)\n"
  "ROOT r = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) tuple(m, nx, k, t, b2) }\n"
  "f { q = s32[] parameter(0) p = f16[6,5] parameter(1) t = f16[64] parameter(2) b = pred[6,5] parameter(3) m = s32[] constant(7) n = s32[] and(q, m)\n"
  "z = s32[] constant(0)\n"
  "g = f16[64] exponential(t)\n"
  "s = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) tuple(z, p, n, g, b)\n"
  "ROOT w = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) while(s), condition=oc, body=ob }\n"
  "ENTRY e { q = s32[] parameter(0) p = f16[6,5] parameter(1) t = f16[64] parameter(2) b = pred[6,5] parameter(3)\n"
  "ROOT r = (s32[], f16[6,5], s32[], f16[64], pred[6,5]) fusion(q, p, t, b), kind=kLoop, calls=f }\n",
  // calls of calls, tuples in and out
  "HloModule m\n"
  "half {\n"
  "  a = f32[6,4] parameter(0)\n"
  "  b = f32[4,6] parameter(1)\n"
  "  t = f32[6,4] transpose(b), dimensions={1,0}\n"
  "  s = f32[6,4] add(a, t)\n"
  "  ROOT r = (f32[6,4], f32[4,6]) tuple(s, b)\n"
  "}\n"
  "fused {\n"
  "  p = (f32[6,4], (f32[4,6], s32[24])) parameter(0)\n"
  "  x = f32[6,4] get-tuple-element(p), index=0\n"
  "  q = (f32[4,6], s32[24]) get-tuple-element(p), index=1\n"
  "  y = f32[4,6] get-tuple-element(q), index=0\n"
  "  k = s32[24] get-tuple-element(q), index=1\n"
  "  c = (f32[6,4], f32[4,6]) call(x, y), to_apply=half\n"
  "  u = f32[6,4] get-tuple-element(c), index=0\n"
  "  v = f32[4,6] get-tuple-element(c), index=1\n"
  "  d = (f32[6,4], f32[4,6]) call(u, v), to_apply=half\n"
  "  w = f32[6,4] get-tuple-element(d), index=0\n"
  "  rk = s32[24] reverse(k), dimensions={0}\n"
  "  g = (s32[24], f32[4,6]) tuple(rk, v)\n"
  "  ROOT r = (f32[6,4], (s32[24], f32[4,6])) tuple(w, g)\n"
  "}\n",
  // constants in memory: both bodies, sub-byte, complex, read in another order
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = s4[5,7] parameter(0)\n"
  "  c = s4[5] constant({1, -2, 3, -4, 5})\n"
  "  b = s4[5,7] broadcast(c), dimensions={0}\n"
  "  ROOT r = s4[5,7] add(p, b)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = c64[3,600] parameter(0)\n"
  "  c = c64[3]{0} constant({(1, 2), (3, 4), (5, 6)})\n"
  "  v = c64[3] reverse(c), dimensions={0}\n"
  "  b = c64[3,600] broadcast(v), dimensions={0}\n"
  "  ROOT r = c64[3,600] add(p, b)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[600,2,3] parameter(0)\n"
  "  c = f32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})\n"
  "  b = f32[600,2,3] broadcast(c), dimensions={1,2}\n"
  "  ROOT r = f32[600,2,3] add(p, b)\n"
  "}\n",
  // constants that are not the same everywhere, if only by a sign
  "HloModule m\n"
  "ENTRY e {\n"
  "  c = s32[5] constant({1, 1, 1, 1, 2})\n"
  "  z = f32[3] constant({0, -0, 0})\n"
  "  a = s32[5,3] broadcast(c), dimensions={0}\n"
  "  b = f32[5,3] broadcast(z), dimensions={1}\n"
  "  ROOT r = (s32[5,3], f32[5,3]) tuple(a, b)\n"
  "}\n",
  // guards that change at an odd lane, read backwards
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[1023] parameter(0)\n"
  "  z = f32[] constant(7)\n"
  "  a = f32[1024] pad(p, z), padding=1_0\n"
  "  b = f32[1024] pad(p, z), padding=0_1\n"
  "  v = f32[1024] reverse(a), dimensions={0}\n"
  "  w = f32[1024] reverse(b), dimensions={0}\n"
  "  ROOT r = f32[1024] add(v, w)\n"
  "}\n",
  // pads and concatenates inside each other, off-guard loads from small arrays
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = s8[3] parameter(0)\n"
  "  q = s8[2000] parameter(1)\n"
  "  z = s8[] constant(7)\n"
  "  a = s8[2000] pad(p, z), padding=16_1981\n"
  "  ROOT r = s8[2000] add(a, q)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[40,60] parameter(0)\n"
  "  z = f32[] constant(7)\n"
  "  a = f32[44,68] pad(p, z), padding=2_2x4_4\n"
  "  n = f32[44,68] negate(a)\n"
  "  b = f32[88,68] concatenate(n, a), dimensions={0}\n"
  "  c = f32[88,136] concatenate(b, b), dimensions={1}\n"
  "  v = f32[88,136] reverse(c), dimensions={1}\n"
  "  ROOT r = f32[93,141] pad(v, z), padding=1_4x4_1\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = bf16[9,16] parameter(0)\n"
  "  q = bf16[9,5] parameter(1)\n"
  "  o = bf16[9,0] parameter(2)\n"
  "  a = bf16[9,42] concatenate(q, o, p, p, q), dimensions={1}\n"
  "  ROOT r = bf16[42,9] transpose(a), dimensions={1,0}\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[0,4] parameter(0)\n"
  "  z = f32[] parameter(1)\n"
  "  ROOT r = f32[3,6] pad(p, z), padding=1_2x1_1\n"
  "}\n",
  // roots of several widths and layouts over one domain
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = s2[37,9] parameter(0)\n"
  "  q = f64[9,37]{0,1} parameter(1)\n"
  "  t = s2[9,37] transpose(p), dimensions={1,0}\n"
  "  u = f64[37,9] transpose(q), dimensions={1,0}\n"
  "  k = u4[37,9] iota(), iota_dimension=1\n"
  "  c = u4[333] reshape(k)\n"
  "  ROOT r = (s2[9,37]{0,1}, f64[37,9], u4[333]) tuple(t, u, c)\n"
  "}\n",
  // results of many sizes, none among them, of bytes that several elements share
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[100,24] parameter(0)\n"
  "  q = s4[777] parameter(1)\n"
  "  b = f32[] parameter(2)\n"
  "  n = f32[100,24] negate(p)\n"
  "  s = f32[3,24] slice(n), slice={[5:8], [0:24]}\n"
  "  z = f32[0,24] slice(n), slice={[5:5], [0:24]}\n"
  "  h = s4[259] slice(q), slice={[0:777:3]}\n"
  "  u = (f32[3,24], f32[0,24]) tuple(s, z)\n"
  "  ROOT r = (f32[100,24], (f32[3,24], f32[0,24]), s4[777], f32[], s4[259]) tuple(n, u, q, b, h)\n"
  "}\n",
  // joined and taken apart
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = u8[50,4] parameter(0)\n"
  "  q = u64[50] parameter(1)\n"
  "  a = f32[50] bitcast-convert(p)\n"
  "  b = u16[50,4] bitcast-convert(q)\n"
  "  v = u16[50,4] reverse(b), dimensions={1}\n"
  "  w = u64[50] bitcast-convert(v)\n"
  "  s = s32[50] bitcast-convert(a)\n"
  "  ROOT r = (s32[50], u64[50]) tuple(s, w)\n"
  "}\n",
  // down to single bits
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = u64[5] parameter(0)\n"
  "  q = s1[40,8] parameter(1)\n"
  "  b = u1[5,64] bitcast-convert(p)\n"
  "  v = u1[5,64] reverse(b), dimensions={1}\n"
  "  n = u1[320] reshape(v)\n"
  "  x = s1[320] reshape(q)\n"
  "  ROOT r = (u1[320], s1[320]) tuple(n, x)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = u1[5,64] parameter(0)\n"
  "  v = u1[5,64] reverse(p), dimensions={0}\n"
  "  ROOT w = u64[5] bitcast-convert(v)\n"
  "}\n",
  // strides in lanes, rank 0, one element
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[4096,4] parameter(0)\n"
  "  a = f32[4096,1] slice(p), slice={[0:4096], [2:3]}\n"
  "  ROOT r = f32[4096] reshape(a)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = s8[4096] parameter(0)\n"
  "  a = s8[1365] slice(p), slice={[1:4096:3]}\n"
  "  v = s8[1365] reverse(a), dimensions={0}\n"
  "  ROOT r = s8[1365] negate(v)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[] parameter(0)\n"
  "  ROOT r = f32[] negate(p)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = s4[1] parameter(0)\n"
  "  ROOT r = s4[1] negate(p)\n"
  "}\n",
  // places that data says: of every element, of rows, of parts that are computed, known ones
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[9,40] parameter(0)\n"
  "  i = s32[] parameter(1)\n"
  "  j = s32[] parameter(2)\n"
  "  d = f32[4,33] dynamic-slice(p, i, j), dynamic_slice_sizes={4,33}\n"
  "  ROOT r = f32[4,33] negate(d)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = bf16[20,16] parameter(0)\n"
  "  u = bf16[3,16] parameter(1)\n"
  "  i = u8[2] parameter(2)\n"
  "  a = u8[1] slice(i), slice={[1:2]}\n"
  "  k = u8[] reshape(a)\n"
  "  z = u8[] constant(0)\n"
  "  ROOT r = bf16[20,16] dynamic-update-slice(p, u, k, z)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f32[17,64] parameter(0)\n"
  "  i = s64[5,3] parameter(1)\n"
  "  c = s64[5,3] add(i, i)\n"
  "  g = f32[5,3,64] gather(p, c), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,64}\n"
  "  ROOT r = f32[5,3,64] negate(g)\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = s8[23] parameter(0)\n"
  "  i = s16[131,1] parameter(1)\n"
  "  ROOT g = s8[131] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = f16[12,30] parameter(0)\n"
  "  i = s32[40,2] parameter(1)\n"
  "  g = f16[40,2,6] gather(p, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={2,6}\n"
  "  j = s32[] constant(7)\n"
  "  z = s32[] constant(0)\n"
  "  d = f16[20,2,6] dynamic-slice(g, j, z, z), dynamic_slice_sizes={20,2,6}\n"
  "  ROOT r = f16[20,6,2] transpose(d), dimensions={0,2,1}\n"
  "}\n",
  "HloModule m\n"
  "ENTRY e {\n"
  "  p = s32[64] parameter(0)\n"
  "  n = s32[64] iota(), iota_dimension=0\n"
  "  m = s32[64,1] reshape(n)\n"
  "  g = s32[64] gather(p, m), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
  "  v = s32[64,1] reshape(g)\n"
  "  ROOT h = s32[64] gather(p, v), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
  "}\n",
};

#endif
