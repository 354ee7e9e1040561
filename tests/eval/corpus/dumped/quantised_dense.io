# JAX 0.10.2 on CPU. 0 roundings in float32.
in s8[4,16] = a5 6b c c8 7f 9 4b 5 cf 40 10 1 4c c7 6d 7c 6 99 32 94 7e e5 12 54 b 7c 6a 1c 1d e b2 c4 57 57 69 71 77
 5e e0 d6 d 69 9 87 bf bd 96 b9 81 0 bc 51 88 58 d f3 2f 6a f9 48 9e c7 3 46
in s8[16,5] = 28 8f 6d c8 96 ab 52 cb e8 87 22 31 df cb 55 af bf 9f 5a 14 fc f4 a5 27 43 e6 84 2a eb b3 e7 a6 6a a1 ba
 fc 7f c3 c5 d8 44 ae 46 df 53 f9 9f 42 d0 b4 6e 4c b2 4 5a bf 4f b1 a7 7f 2e 8 32 6d 7a 8f 69 6d 8 77 11 16 78 7a f5
 c9 39 e9 ee 7c
in s32[] = 3
out exact = a0 7f a8 74 4f 7f 34 aa 80 7f 2a 80 80 a2 80*3 96 80 83
