# JAX 0.10.2 on CPU. 40 roundings in float32.
in s32[] = 1b
in f32[3] = 40000000 41100000 3e800000
out exact = 1
out exact = 6f
out near 2.26e-06 7.54e-07 = 3fb504f3 40400000 3f000000
out near 2.04e-05 7.54e-07 = 40c00000 41d80000 3f400000
