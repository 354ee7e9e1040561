# JAX 0.10.2 on CPU. 30 roundings in float32.
in f32[6,3] = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a
 c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54
in s32[4] = 1 4 9 1
in f32[4,3] = 3fe4f1c7 3edf7e38 3dc5a077 bfee86ee be8e05d4 beb5a2f8 bda9745e bf20831e bd337aae bef455ec bfa82cb8
 3f62769d
out near 1.43e-06 6.53e-07 = 3fcfea8d bf1c9c11 bf073644 3e742a18 bc43be00 bfa9037c 3fdf55fe bf42de75 3ea35918 be7f5af3
 3fbb265a c003d958 c00be5f3 bf29544d 3f476d3a bf8cc93d be309105 bf60bb54
out near 1.35e-06 6.53e-07 = 3fcfea8d bf1c9c11 bf073644 3fe4f1c7 3f5d8b5b 3f62769d 3fdf55fe bf42de75 3ea35918 be7f5af3
 3fbb265a c003d958 bea513de be8e05d4 3f911f5b bf8cc93d be309105 bf60bb54
out near 1.5e-06 6.53e-07 = 3fcfea8d bf1c9c11 bf073644 bfa82cb8 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3
 3fbb265a c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54
out near 1.96e-06 6.53e-07 = 3fcfea8d bf1c9c11 40400000 bf895709 3f5d8b5b 40400000 3fdf55fe bf42de75 40400000 be7f5af3
 3fbb265a 40400000 bea513de bec4a2c6 40400000 bf8cc93d be309105 40400000
out near 1.35e-06 6.53e-07 = 3fcfea8d bf1c9c11 bf073644 3f6a7518 befe1e33 be492ef2 3fdf55fe bf42de75 3ea35918 be7f5af3
 3fbb265a c003d958 3f19cf7a 3dda2d88 becdef1c bf8cc93d be309105 bf60bb54
out near 1.17e-06 6.53e-07 = 3fcfea8d bf1c9c11 bf073644 3fe4f1c7 3edf7e38 3dc5a077 3fdf55fe bf42de75 3ea35918 3fe4f1c7
 3edf7e38 3dc5a077 3fe4f1c7 3edf7e38 3dc5a077 bf8cc93d be309105 bf60bb54
out near 1.5e-06 6.53e-07 = 3fcfea8d 3f96a3be bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3
 3f7c21be c003d958
out near 1.5e-06 6.53e-07 = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3
 3fbb265a c003d958 bea513de 3fe4f1c7 3edf7e38 bf8cc93d bfee86ee be8e05d4
