# JAX 0.10.2 on CPU. 2 roundings in float32.
in f32[4,9] = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a
 c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54 3d2ce852 3f153361 bf8ce117 3f92864e 3f66cea6 3f00a378
 3f669e7f bf2f08ca bdfbaddf bf6f8e96 be8928a0 3f07c560 bf3110ae becb2347 bf2fea8d bf585f66 bf2bd6c9 bc4f7f2e
in s32[2,7] = 0 5 0 3 2 3 0 2 1 3 5 2 4 4
out near 2.94e-07 1.69e-07 = 3fdf55fe 3fcfea8d 3f5d8b5b 3fbb265a 3f911f5b be309105 3f92864e 3f66cea6 3f669e7f 3f07c560
 bc4f7f2e be8928a0
out exact = 6 0 4 1 5 7 3 4 6 2 8 1
out exact = 5 3 5 4
out exact = 1 3 3 5
out exact = 6 1 3 2
out exact = 0
out exact = 3 3 4 6 3 6 6
out near 2.94e-07 1.69e-07 = 3fdf55fe 3fcfea8d 3fbb265a 3f911f5b 3f92864e 3f66cea6 3f07c560 bc4f7f2e
out exact = 6 0 1 5 3 4 2 8
