# JAX 0.10.2 on CPU. 0 roundings in float32.
in s32[6,4] = fffffffc 2 3 ffffffff 0 2 fffffffc 6 fffffff7 7 fffffff8 3 fffffffe 4 fffffffd fffffffc 2 1 5 fffffffb 0
 8 fffffff7 4
in s32[4,4] = 3 3 1 fffffffd 3 2 fffffffd fffffffc 0 ffffffff ffffffff 0 2 fffffffe 1 ffffffff
out exact = 25
out exact = 0 1 1 0 1
