# JAX 0.10.2 on CPU. 12 roundings in bfloat16.
in bf16[4,8] = 3fd0 bf1d bf07 bf89 3f5e c013 3fdf bf43 3ea3 be7f 3fbb c004 bea5 bec5 3f91 bf8d be31 bf61 3d2d 3f15
 bf8d 3f93 3f67 3f01 3f67 bf2f bdfc bf70 be89 3f08 bf31 becb
in bf16[8,3] = bed5 bd66 c009 3fd2 bfe6 bf57 3f01 bf9f bf87 bf69 3f0d 4013 3d2a bf8f 3f0a bf19 bc9d 3f96 bf3f 3c14
 bf61 be20 3e83 bf7d
in f16[5] = 3f28 36fc 2e2d bf74 b470
out near 0.213 0.0271 = bf3f bce3 c0fc 3fcf c01b c0e9 c057 404d 3fee beea 3f7f bff4
out near 0.0744 0.0271 = 4140 3630 3790 ac80 3f78 bd30 4180 33a0 3d48 3a00 40f0 bc40 3970 38f0 4040 ae80 3aa0 2fc0
 3c28 3e50 ae80 4050 3fa0 3e00 3fa0 3510 3b00 2c00 39e0 3e20 34f0 38d0
out near 0.0503 0.0271 = 3fe5 3ee0 3dc6 bfee be8e
out exact = 1 0 0 ff 0 fe 1 0*3 1 fe 0 0 1 ff 0*4 ff 1 0*10
