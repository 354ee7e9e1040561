# JAX 0.10.2 on CPU. 3000 roundings in float32.
in f32[4,4] = 3ca5ae3c 3e4cc7b2 becbf64f 3e8e0c8a be2b5618 bf2242be be84a67d 3e752d28 3e0816f1 beeb00d3 3e7d6838
 bd102864 3e2e1c12 3e081744 beecea7d 3e0fc4b8
in f32[4,8] = be2ab43a bcb86009 bf5abf19 3f27f6b7 bf37a5d6 beac63ce 3e4dfaf0 beff08f6 bed8ab2a beba2a2e 3e61e026
 3f6ab8dc 3c881dc5 bee4f37d 3e5ccc5d be742fe0 bbfabf4b 3ef0a3e7 be9929fa 3b6c976f beb3d625 bd8026a0 3dd22eb9 beca8080
 be0ac80f bdc17b62 be82977d bef33916 bf11885b bd7b7c8d bddc6956 3f647df1
in f32[3,4] = 3fe4f1c7 3edf7e38 3dc5a077 bfee86ee be8e05d4 beb5a2f8 bda9745e bf20831e bd337aae bef455ec bfa82cb8
 3f62769d
in f32[3,8] = 3fcfea8d bf1c9c11 bf073644 bf895709 3f5d8b5b c0134c69 3fdf55fe bf42de75 3ea35918 be7f5af3 3fbb265a
 c003d958 bea513de bec4a2c6 3f911f5b bf8cc93d be309105 bf60bb54 3d2ce852 3f153361 bf8ce117 3f92864e 3f66cea6 3f00a378
in f32[5,2,3] = 3ee1e892 bea967d0 401b91c1 be811238 3de07b20 3fca8ebe bf68c374 bf177580 3e401b0f bea8e4b7 bf98ac83
 be51cb26 beb7b86e 3f1a7d1d bfd517ca bf333eef 3f9360c8 3fedbd06 bfc16e55 3f2514ba bf7b091e bf5b5aba bf5f3379 bed852f6
 3f7f16ae 3f36613e 3d72413c beba03e2 3b5789a1 bdd8f20f
out near 3.06e-06 6.53e-06 = 3e92ee1d 3de8299a be0b8eb2 be2f7f52 3ea76254 3de26cbb be61ab19 be7a8a8a bd3ca00f bc808aa4
 3c6c8a64 3d806b47 bef00886 be1334b9 3e861756 3edd2c75
out near 1.9e-06 6.53e-06 = be951a82 bd966f67 bb084dee bc390ae3 bbe08770 3cbcc40d bb0fd59a 3c856673 bda4875b bd82a4b9
 3c3ead59 bcea0ba2 bbd3f190 3c7053f1 ba42b21d 3c4c3243 3cfb68b6 3c65ec2c 3c9d93cf 3ced8235 bb6a450a bc259eaf 3ae09cf4
 bbb0ee28 3e39f95a 3db2d917 3bd01a3c 3cdb9920 3aecc3c0 bcc97a06 3b153083 bc9b82aa
out near 2.34e-06 6.53e-06 = 3eb7c88d 3dfa620e be74aac9 be8d498a 3d9bea29 bd0cbdfb be707ed7 bd584c9c 3e259e81 3bdf3a68
 bdcf0ce3 bd5e4a73
out near 2.37e-06 6.53e-06 = 3eb973b2 bd2e7b51 3c0fcc04 be105106 bbac7a85 3c342136 b9a9db80 3c00dee6 3e19c0cf bd00c24f
 3d6ff2a4 bcf4bcfa bc1a3bf1 bb499702 3a7527d6 3ba56e9e 3d109742 bd58d760 3d762ff0 bc94ef1a bbd705ff 3b8f790a b8522f77
 3b4d270f
