# JAX 0.10.2 on CPU. 0 roundings in float32.
in s32[] = 2a
out exact = 6d3e048f 1022172d 3d7b32d add083f4
out exact = 87bf2d4d 503881c0 e6cab0b5 b2c5f2aa 9e398d98 9f31b2ff b7be41a1
out exact = 6 fffffffb ffffffff 3
