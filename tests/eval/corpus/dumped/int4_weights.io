# JAX 0.10.2 on CPU. 30 roundings in float32.
in f32[3,8] = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a
 c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54 3d2ce852 3f153361 bf8ce117 3f92864e 3f66cea6 3f00a378
in s4[8,5] = 0 7 5 0 e 3 a 3 0 f a 9 7 3 d 7*3 2 c 4 c d f b e c 2 3 b f e 2 9 2 4 7 b d 0
in f32[5] = 3fe4f1c7 3edf7e38 3dc5a077 bfee86ee be8e05d4
out near 3.5e-05 6.53e-07 = c0a618ac 4063ca60 beee6544 421fbe1b c076eff7 c2569c82 c144067a 3ee49ac2 411b0e14 c0247cda
 c0fb4e54 40830dca 3f0e5411 406d8520 bdc56548
out exact = 0 e a 0 c 6 4 6 0 e 4 2 e 6 a e*3 4 8*3 a e 6 c 8 4 6 6 e c 4 2 4 8 e 6 a 0
out exact = 0 5 f 0 a 9 e 9 0 d e b 5 9 7 5*3 6 4 c 4 7 d 1 a 4 6 9 1 d a 6 b 6 c 5 1 7 0
