# JAX 0.10.2 on CPU. 20 roundings in float32.
in s32[] = 5
in pred[] = 1
in f32[4] = 3fcfea8d bf1c9c11 bf073644 bf895709
out near 5.32e-07 5.33e-07 = 3f7fa20f bf1305bb bf010333 bf60ed5e
out near 1.41e-06 5.33e-07 = 4028dd27 3ebf9d28 3e8ed48e 3f935c8a
out near 5.72e-07 5.33e-07 = bf1c9c11 bf073644 bf895709
out near 3.14e-07 5.33e-07 = bf16ab4e
