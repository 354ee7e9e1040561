# JAX 0.10.2 on CPU. 60 roundings in float32.
in f32[3,9] = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a
 c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54 3d2ce852 3f153361 bf8ce117 3f92864e 3f66cea6 3f00a378
 3f669e7f bf2f08ca bdfbaddf
in s32[11] = fffffff6 ffffffdd 16 ffffffe4 fffffff9 20 19 ffffffd5 fffffff0 ffffffff 2d
out near 2.75e-06 9.23e-07 = 3fcfea8d 3f819c84 3ef80588 bf16ab4e 3e8dc01a c0019466 be8f4b38 bf854208 bf38d784 be7f5af3
 3f9b3afc bf58ef68 bf95bcac bfc6e55e bed7180c bfc28f40 bfd8a161 c0247f86 3d2ce852 3f2001e6 bef38090 3f2b4c54 3fc90d7d
 4004af9c 403e573c 4012950a 400ab79b
out near 2.41e-06 9.23e-07 = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 becf6480
 bf64faed 3f8b4721 3eb11f83 beaa2b8f c02700a4 bff5a52d 3e066754 be8f657d bc8c13bc bf057401 bf994ab8 3ecac1ca be996c80
 bfa7d5eb bfdd4a7c bdb7ca7f 3d0cf9e6
out near 1.61e-06 9.23e-07 = 3fcfea8d*6 3fdf55fe*3 be7f5af3 3fbb265a*8 3d2ce852 3f153361 3f153361 3f92864e*6
out exact = fffffff6 ffffffdd*6 ffffffd5*4
out exact = fffffff0 ffffffc3 ffffffc4 ffffffd4 ffffffff ffffffe6 ffffffc6 ffffffcd ffffffe9 ffffffd3 fffffff6
out near 1.81e-06 9.23e-07 = 3fcfea8d bf7e635d 3f065c53 bf102a2c bef985c4 3f8f924a 3ffa8151 bfbeafae bef35871 be7f5af3
 bebaadb1 3f404abe be77fe31 3dbe7c4c 3dd7f778 bded8a35 3ca3d594 bc8fd2c4 3d2ce852 3cc98bd7 bcddd35f bcfdedd9 bce4f0ab
 bc66150d bc4f455d 3c0db788 ba8b5333
out near 3.99e-06 9.23e-07 = 3fcfea8d bfcd7fb7 3ea3bb1c bfb5426f beb85d5f bfbc842c bf532dd9 be0878e3 3e8d93fa be7f5af3
 3f8c7aee c08a46d8 3f890fd1 bf4b98a5 3e6da7ab bfad75de 3d7ad649 bf6e7e85 3d2ce852 3f1b7fc0 bfe273ad bf61667e 3ddcb4f1
 3f0e8065 3fb37f0a bfd23e67 3da1b616
out near 2.59e-06 9.23e-07 = 3fcfea8d 3fdce9d1 3fe9b0bb 3ff08e24 400c167b 400ccd39 402c3d68 402e3c35 4033c653 be7f5af3
 3fd0668c 3fd39029 3fe4310e 3ff21293 4011a4dd 4013cbcd 4018ef37 401b53e6 3d2ce852 3f855847 3f938cf6 3febc2f2 400afad2
 40160726 40239874 40260ded 402a25b3
out near 3.49e-06 9.23e-07 = bf38d784 c0162b27 bfde0846 bf9a6d24 be08b0d4 bf7fb790 3fa6bd0a bee263d2 3ea35918 c0247f86
 c01489d6 c0721d03 bfdc8756 bfb3425e bf8219ad c0099c84 bf866fcb bf60bb54 400ab79b 400803f9 3fc56e43 402927ad 3fbfc90b
 3f18c372 3dc0ffc9 bf4e7e86 bdfbaddf
