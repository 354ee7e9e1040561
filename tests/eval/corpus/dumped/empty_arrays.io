# JAX 0.10.2 on CPU. 0 roundings in float32.
in f32[0,3] =
in f32[0,3] =
out exact =
out exact =
out exact =
out exact = 0*3
out exact =
out exact = 0
