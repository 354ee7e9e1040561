# JAX 0.10.2 on CPU. 0 roundings in float32.
in u32[4] = 1..4
out exact = 1 5 0 4 3 7 2 6
