# JAX 0.10.2 on CPU. 80 roundings in float32.
in f32[4,6] = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a
 c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54 3d2ce852 3f153361 bf8ce117 3f92864e 3f66cea6 3f00a378
in s32[10] = d5ca8 18a0f 319ed 97648 6ae16 e792b 149d2 8844b d3968 ead07
in pred[4,5] = 0 0 1 1 0*3 1*3 0 1*3 0 1 1 0*3
out near 1.3e-06 1.07e-06 = bf9c0b94
out near 1.2e-06 1.07e-06 = 3f8f924b bea2f645 bcbf7927 bc66150c
out near 1.86e-06 1.07e-06 = 3fdf55fe 3f153361 3f911f5b 3f92864e 3fbb265a 3f00a378
out exact = 0 0 2 3
out near 2.72e-06 1.07e-06 = 400ccd39 40231cab 3fe78650 40160726
out exact = 0
out exact = 1*5
out exact = 437c9
out exact = 5652b9
out near 1.76e-06 1.07e-06 = 3f9133f0 3ebb1433 3f74e3d7 3f8de45d 3eedd180 3fd3645c
out near 5.66e-06 1.07e-06 = 40a9bbd0
out exact = 2 3 3 2
