# JAX 0.10.2 on CPU. 0 roundings in float32.
in c64[6] = 3dcccccd 3dcccccd bf800000 0 3f000000 3f000000 bf400000 3e4ccccd 40000000 0 be4ccccd 3f666666
out exact = c c 5 c 2 9
