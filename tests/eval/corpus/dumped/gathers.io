# JAX 0.10.2 on CPU. 2 roundings in float32.
in f32[5,6] = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a
 c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54 3d2ce852 3f153361 bf8ce117 3f92864e 3f66cea6 3f00a378
 3f669e7f bf2f08ca bdfbaddf bf6f8e96 be8928a0 3f07c560
in s32[3] = 1 6 1
in s32[4] = 2 0 1 3
out near 3.47e-07 1.69e-07 = 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a c003d958 3f669e7f bf2f08ca bdfbaddf bf6f8e96
 be8928a0 3f07c560 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a c003d958
out near 2.94e-07 1.69e-07 = bf073644 3fcfea8d bf1c9c11 bf895709 3ea35918 3fdf55fe bf42de75 be7f5af3 3f911f5b bea513de
 bec4a2c6 bf8cc93d bf8ce117 3d2ce852 3f153361 3f92864e bdfbaddf 3f669e7f bf2f08ca bf6f8e96
out near 2.94e-07 1.69e-07 = 3ea35918 3fdf55fe bf42de75 be7f5af3 bdfbaddf 3f669e7f bf2f08ca bf6f8e96 3ea35918 3fdf55fe
 bf42de75 be7f5af3
out near 3.88e-07 1.69e-07 = c0134c69 bf895709 bf1c9c11 c003d958 be7f5af3 bf42de75 bf60bb54 bf8cc93d bec4a2c6 3f00a378
 3f92864e 3f153361 3f07c560 bf6f8e96 bf2f08ca
out near 1.18e-06 1.69e-07 = bf42de75 40e00000 bf42de75
out near 3.88e-07 1.69e-07 = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fcfea8d bf1c9c11 bf073644 bf895709
 3f5d8b5b c0134c69
out near 2.94e-07 1.69e-07 = 3fdf55fe bf42de75 3ea35918 bea513de bec4a2c6 3f911f5b
out near 3.47e-07 1.69e-07 = bf1c9c11 c003d958 bec4a2c6
