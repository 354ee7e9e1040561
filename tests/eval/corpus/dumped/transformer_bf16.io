# JAX 0.10.2 on CPU. 60 roundings in bfloat16.
in bf16[8] = 0*8
in bf16[8] = 0*8
in bf16[16,8] = bea0 bd85 3dc5 bdc5 be8b 3f15 3ddd 3ddd be7b be22 3e14 bd00 3e7b 3ecc be9a beb0 3e87 bc1f 3e2e 3eaa
 3ea4 bee1 3e1d 3ec2 bd49 be51 be72 3d62 be1a bd1c be98 3d99 be73 beec 3e50 be41 bddf 3c42 bd80 3d2b 3e2a 3ed9 3e87
 3d96 be53 3ccf 3d7f 3edc bdc1 bf06 be1a be05 bf0e bdd0 bd98 3d8b bdeb 3dee be84 3d30 3e18 bd9e be6c be34 3e82 3ec4
 3e07 3ed8 3b4e 3e57 bcba 3e84 3df8 bdc8 bcd1 3eed 3e2d beb2 be14 bd7e be06 3df1 be6c bbf8 3ca7 3e85 be9f bcc4 bed9
 3e29 3dbb 3c78 3e0f bedc 3dd2 be1e 3ecf 3d81 3ee4 3ede bdf0 be20 be1f 3dfa 3ecc be2d bd43 bee2 3eb0 3daa 3f47 be11
 bd0b be2a 3d9f bca1 3e81 bc46 bda7 be73 bd89 be48 bda4 be09 3e3f 3e9c be57 3e1c
in bf16[8] = 3f80*8
in bf16[8] = 3f80*8
in bf16[8,8] = 3f75 3e63 3ea4 3e36 3e6c bde7 be9a 3e5b bf37 3e86 3e3f be55 3d89 be89 bea9 3ead 3d8a 3f33 3f6c 3e77
 3ddb 3f19 bf1a bed2 bd43 3e0d 3d72 3d86 3e92 3cd3 3e67 3def be34 be89 beab 3e2f bd29 3f2c 3dac 3f35 beb4 3d8e bece
 3908 3eba bd63 bc37 3e6b 3f43 be5d be89 bdfb 3d55 be2e 3e4a 3eba bea8 3f29 becd 3e5d 3e0c 3f3d be08 3da7
in bf16[8,24] = bf1e 3df8 3ed1 bdb7 3eb2 3e3a 3da0 bec2 bd89 3db9 be26 3e1e be53 3e94 3e74 bd17 be40 3eba be1f beca
 3f13 3f0c bdb6 be98 3d86 3eaa 3e84 3ef6 bdec 3ca1 3da1 bf03 be89 3e94 3e88 be25 3ed7 bf19 bef6 bedf be45 be72 3b29
 be5e 3eeb bf1d beb2 3e01 bf12 3f05 bed7 be47 beaa be96 3d1e 3e38 be9c 3ee2 bce7 bea1 bea0 3bd8 3dac 3b9d bf14 bebd
 3e5e 3e85 3eba bf02 bf27 3e05 bdf0 be7a 3f38 be47 3e88 beed 3e52 bec8 3e7a 3e79 bf0e 3ea4 3e8d 3e1b 3d1e 3c24 be52
 bed9 bf1a 3e06 3f2a be08 3f26 3a8c bcdc 3ab7 bd86 bf61 bf1a bece bf87 3c41 bdb4 be23 3d40 3c01 3de6 be88 beeb 3d0a
 be19 bed7 be04 bee6 3f10 3e7b bf31 bd43 bf0b 3f39 befd bec7 bdad bf01 3eac bbe1 3ea2 3e8a bf08 bed8 3eeb 3eac bedc
 bd64 bf08 3d1c 3e87 3e1c bf00 be68 3e8d be1f 3f3c bdf9 be5f 3e8a 3d8c bdfc 3f50 bd6f 3e29 3dc3 bde8 bed0 3f1a be83
 3ec6 bda6 bb4e be45 3e88 bf12 3f30 bf03 3d3d 3eac bf36 bce6 3dda bf18 3da1 be78 bd37 3f34 3e3d bbbd be17 bef6 be3a
 bd9c 3e19 bec6 3ee0 bda7 be7f be56 3e85 3e1e 3f21 3e3a
in bf16[8,16] = 3f17 3ea8 3ec0 bea7 3eeb 3df0 be39 bea3 bd3c bf4b 3eb0 bc0c be30 bec9 be4a 3ebd bf1b 3d45 be28 3c94
 3f03 3e57 be89 be63 3ea0 3d6c bf63 3e15 3e84 3c29 bdd3 3de4 3eb5 3f9b be51 bd94 bf29 3f03 3e12 be7a 3ed4 bf0e 3e91
 be4f 3f0d 3e7e 3eb8 bd2b bec1 3ed5 3ef4 be90 bee8 3e4a bc8c 3daa beb2 3ec6 bee3 3f06 bda5 bcb9 bd7f bf45 bf10 beea
 be46 bb4c be2d be02 3e5d 3ebc 3d0f bec9 be89 3eb8 bf1e bef4 3c44 3e1a be1b bda2 3da8 bea2 beb5 3ed4 3e8e 3e4c bee6
 bdce 3dc2 be88 3e2e 3f2f be7f bda7 bb9d be32 3d62 be12 3dca bcba 3ee7 3ea5 bd87 3caa 3e8f 3eb1 bf70 bdde be82 3d2a
 be27 beaa bf21 3e40 3e96 bdbb 3d72 be57 be4c 3ea0 3de2 be99 3e97 3efc 3e1c 3e51
in bf16[2,5,8] = bed5 bd66 c009 3fd2 bfe6 bf57 3f01 bf9f bf87 bf69 3f0d 4013 3d2a bf8f 3f0a bf19 bc9d 3f96 bf3f 3c14
 bf61 be20 3e83 bf7d bead be72 bf23 bf98 bfb6 be1d be8a 400f c01c 3de7 3ebe 3fae 3f00 bf58 3724 3f0b bea1 3f45 bfef
 3fde 3fbc beac 3f1d 3d44 bf54 3db4 3f80 bec3 bec0 bd99 3ede 3fa4 bf22 3f02 3e5d bfee bed7 be08 bd22 3ea7 c003 3d3d
 bf2d bfb8 3f06 3f3c bf27 3f58 bec3 3d88 bf8d 3fcb c02a bdbb 3f32 c002
out near 0.22 0.0605 = 3f93 c001 c058 3fee bfd4 bff8 3fb2 3f66 3e40 c00e bfb5 403e 3d96 bfd6 3fb8 3f81 3f43 bf8b bfc8
 be5a bf93 3c28 3f83 3f2c 3f4d c002 bfb2 bfe3 bfb1 3f96 3e8e 405f bf62 bf01 bee2 401e 3f76 bfe1 3dce 3f49 3f50 bfa4
 c069 400a 3fdb bfc4 3f93 3fcf 3f35 bf4c 3f40 bf38 bee4 4004 3f30 3fe6 3e9e be86 3f46 bff2 bf58 3fe2 bf0d 3f77 3eb0
 3fae 3fa3 bf1c 3f36 3f97 bf44 3e87 3f98 bf66 bfac 4005 c026 bf54 3fc1 bf70
