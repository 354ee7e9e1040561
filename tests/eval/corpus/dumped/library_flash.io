# JAX 0.10.2 on CPU. 60 roundings in bfloat16.
in bf16[2,6,2,8] = 3fd0 bf1d bf07 bf89 3f5e c013 3fdf bf43 3ea3 be7f 3fbb c004 bea5 bec5 3f91 bf8d be31 bf61 3d2d 3f15
 bf8d 3f93 3f67 3f01 3f67 bf2f bdfc bf70 be89 3f08 bf31 becb bf30 bf58 bf2c bc4f bf8f 3e70 3fd4 3f3e be44 bf63 bf3f
 3fd9 3d50 bf23 3e43 4006 3df6 3f1e 3e9a beb4 bf92 beb3 be56 3f16 3f57 3f6e 3e92 3f63 bf41 3fa0 3f03 be99 3efa bd9b
 3f91 3fc3 400c bfb3 bfb9 bf01 3e24 3f60 3ea2 c001 be9d 3f54 3e6c 3f43 be64 be4e 3e3f 3ed2 3e4b 3df4 bf2c 3ec1 3df9
 3f91 3f99 3e3e bec0 bf24 3ed9 3d9e beb0 3d33 bf1f 3f33 bee5 3f9d 3ecf 3f18 bf8c 3e2d 3f3e bf74 be88 3d06 bfb0 3ea1
 3f59 bf5c 3eb3 bfa8 bd1e bfcf 3f90 3ed1 bcca bf46 3fa3 3ffc bfee 3f9e 3fd0 3ead bf9a 3f5d be39 bf1b bf9d 3f0d 3f4b
 bf20 3f05 bf92 3f4d 3d3f be3f bdd0 3f5e 3f40 3f08 3e0d 3d9f 3f1e 3e6e 3f2f be9f c01c 3f85 400c 3ee2 bdcd be0c bdf4
 3c8f bf90 bf04 bf7f 3e7f be98 3efe be33 3f7d 3e5b 400c bff3 bf26 3f67 4022 be7f 3d33 be68 3faa be93 3f2e bea4 bfa3
 3ea1 3f01 3fa6 bde2 bf1e 3f10 3e77 3e90 bd96 3f95 3ebd
in bf16[2,10,2,8] = bed5 bd66 c009 3fd2 bfe6 bf57 3f01 bf9f bf87 bf69 3f0d 4013 3d2a bf8f 3f0a bf19 bc9d 3f96 bf3f
 3c14 bf61 be20 3e83 bf7d bead be72 bf23 bf98 bfb6 be1d be8a 400f c01c 3de7 3ebe 3fae 3f00 bf58 3724 3f0b bea1 3f45
 bfef 3fde 3fbc beac 3f1d 3d44 bf54 3db4 3f80 bec3 bec0 bd99 3ede 3fa4 bf22 3f02 3e5d bfee bed7 be08 bd22 3ea7 c003
 3d3d bf2d bfb8 3f06 3f3c bf27 3f58 bec3 3d88 bf8d 3fcb c02a bdbb 3f32 c002 be42 bd9e 3f53 3fa0 becf bfb1 3faf 3f9c
 beed 3eb4 3ec4 3f11 3e51 3fb4 bfde 3f85 3ec3 be5e 3f96 c016 3f95 3ec6 bf91 3ede be9c 4025 3feb 3ee2 bf38 bf15 bea6
 bf0f bf67 bf17 be8d bf04 bf33 bf6e 4023 bfbd bf83 3edd bea6 3ed9 3f4d 3fa2 3f41 bf7e 3f8e bfe2 bdea beff bf88 3f17
 be3c 3f83 bfbe 3f59 3eff 3e02 bfb6 be81 bfc6 c005 4052 3f79 3fe5 bedc 3f32 3f33 3f1a 3b70 be6a c004 3f1c 3ed9 3f8f
 be8c 3fdf bee5 bfa1 3f70 bef0 bfa1 3e00 3f42 3e77 3eff 4083 3f52 3fc4 bffe 3ebb 3f46 bebb bf60 3ecb bea1 bf18 3f93
 3fab 3e9b bee9 3f04 3f54 3f21 bfba bead 3eb8 3f1f 3f76 3f42 bf91 bf35 bf9c 3fe7 3e39 3f0e 3f84 bea8 bf93 beda be18
 3fc0 3f5f bf8b 3f2a 3f3c bf88 bdde bfed 3ea9 bea2 bfad bf33 3e76 bf0e 3e99 3f0d bf57 bea0 4009 3df8 bf59 3d78 bfab
 3f91 3ebe 3f8b 3f67 3ec8 3f7a 3e44 bf2a bf83 bee5 c020 3fea bfdb bd9d bfa9 c002 bda8 be9c be24 3f0d bf1e 3ec2 3f03
 beab be91 3f0a 3d6a 3e23 c018 3d70 3ec1 be0b 3eac 3ff4 3daf 3f2a bf5a bf5a bef6 bf83 bbf9 bf6f be33 bfb8 bfd3 bf2d
 bf89 bf27 bf1d beb4 3f86 3faf 3f3a beb8 3fc0 bfc4 c001 3e89 bb11 be0f 3d05 bfd2 bf94 3f9e 3f84 bf39 3ff7 bf89 bf12
 3e96 bf99 befa be31 beca 3f5f 3f18 bf8d bf2e 3e38 bd89 bf4a 3ed9 3f52 bf22 3f4a bfd0 bfce 3f00 bf56 bf7f be87 bf2d
 3ea7 bfba
in bf16[2,10,2,8] = 3fe5 3edf 3dc6 bfef be8e beb6 bda9 bf21 bd33 bef4 bfa8 3f62 3f62 3fdb 3d4d becf bf0c bfc6 3f7b
 bf8d bf98 be53 3fbe 3e72 bf83 bf37 3f20 be24 bf45 be6c 3f3f 3ffd bf9f bf20 bf4e c01b bf6c bf83 3f90 be07 bfd0 3f26
 beb6 bfdf bf19 bf17 bf60 3cf3 c010 be89 3f82 3f5a 3f8e 3f8f 3fbe bf8f 3f59 bfee bf1a bff5 3f86 3fab be4a 3fe3 bf2d
 3e1a 3e1d bf88 3ee0 3ff8 bf83 3f66 be1e 3fe3 3ef8 3f2d 3f25 3e7f bfb3 3fb2 bfaf 3e74 3f1d bf57 3e15 3f95 bcc5 bf63
 c03b bf79 bf17 bf04 bf76 3ec1 bf13 bde0 3f2e bf5b be9a 400a 3f60 bfa6 bda3 3f11 3f9e 3e19 bf08 bf3b 3f25 3ea0 bf04
 be42 bed5 3f3a bf31 3ef9 3f5a 3ef9 bf56 3fac bf2e 3eda bf41 bfdf 3e67 3e93 bd9f 3e8d bf26 bf3d be2c 3ff4 3f51 bf05
 3f0f bef5 beea 3f5c bf06 bfd6 bf68 3db5 3e03 3f9f bf37 3f3b 3eda be19 3f56 3efc bf5d 3f89 bf9c 3d74 3b20 3ed9 bf3a
 bd0f be10 3f7f bf4c 3d95 be86 bfa6 402b bd92 bfbe 3fb4 bf89 3ebe 3f5d bf26 bedd bf0a be04 bfd0 bf9e be10 3f85 3f22
 3fdd 3f32 bf03 bdfc c002 bf76 bf83 3e8b 3f26 bf0f bf17 bfc6 be03 3e7e 3ee4 bf48 3fff 3f99 bdc3 bf07 bea5 3e1b bc99
 3ef8 3f45 3faf 3f93 bde2 3ec7 bec6 bf16 3ff5 beeb 3fff beb3 3e81 3f8b 3cc4 3ec9 be77 bef3 be2a bf26 3fd1 be2c 3fdd
 c02c 3c97 3f10 be96 3f8c 3f24 be8d 3edf 4034 3e81 3e99 bee1 3e09 bfa5 be4b 401d 3f89 3f24 3f8d 3ff1 3f18 4005 3f89
 3e2b 3fdc c017 bf12 3e88 bf69 be20 bf24 bf28 402e 3f21 bd5d 3fa8 be73 3f63 3eb4 3fd0 bfb6 3f44 3dfa bf94 3f88 bf5f
 3fcf 3f03 3f32 3da5 3f68 bfef 3d99 bf21 3e91 bd41 3f1e bf56 3feb 4014 be55 bc75 3e93 3fa2 3ff3 bf9a bf1d bf88 bf8e
 bfd2 3eba bf94 3fc0 3f69 bf84 bf84 bf1d 3fb3 bf59 bfbf bd4a 3ebf bf28 3fcf 3e76 3ee8 bf5b bd23 be20 c011 3e93 bfe6
 bcec bfbd
in bf16[1,2,6,10] = 3d4f 3f00 bf7f 3f32 bed6 bfcb bf26 3f19 3eaa bf93 3f1e bdb4 3eda 3eaa bf94 3eb4 bf1b 3fc6 3f39
 3d3d bf7c 3d5f 3e24 bf9b 400e 3eca 3fd9 bf8e 3fd1 bfae bf27 3f0b 3d45 c017 bf8e 3f56 4006 3f6a be8d 3f4c bf92 3f03
 bfac bc19 be06 3f4d be9b 3f9a be49 3f56 3f49 bfec 3d1a 3d13 bf47 3e38 bfba 3f0e 3f03 3e9a 401f 3eb4 3d8a bf3b 3e98
 bf76 3fa3 bf26 3e22 3fff 3f95 3e78 3fb1 bd5f 3f4c 3c9c bf68 3edc 3f6f beb1 bf8c bf07 c018 bf1c bf8a 4001 bf11 bfc5
 3f5f be33 3d47 3e41 3e56 bec0 3f74 3f06 befe be30 bf72 3e90 3f3d 3f27 3f1d be02 3fca be54 3cf6 beac 3da6 be76 4002
 3eda bfd7 bede bfb5 3f61 3fb0 bee7 3f1d be57
out near 0.13 0.0605 = becd 3ec9 beb5 3e9c 3f24 3eae bee3 3f67 bee4 bd04 bea1 3d0d be06 3eb4 be38 3f28 bef0 3d27 bde3
 3e4e 3ef9 3e0d 3d5c 3db5 bf32 3e03 be94 bf43 be37 3e98 be80 3f6b bf23 be6a 3cf0 3de5 3ee7 3f0a bdc8 3dd3 c00a bf34
 bee5 beb4 bf36 3eb8 beb3 3e80 be48 beb6 3d44 3f0b 3ed7 be8d 3c2a 3ea4 bf10 3f47 bcae bd8d 3e5e 3e8b bf58 3f53 bf4d
 3e45 3ea0 be71 3ee7 3ece be68 3e9d bed3 bf20 3b9c bf3a bdaf 3e9a 3db0 3fb4 bf15 bda0 3d30 beb2 3e8c 3dd6 3e81 be30
 3f10 bd01 bf29 bedc 3ef7 3f19 bea1 bcd3 3dd4 3e71 3eae 3e61 3f7d 3e03 be8e 3d80 beb1 3ef0 3da2 bf06 bc49 bf86 3e5c
 bf7e 3e4b 3efd 3f13 bd78 3f0b 3d00 bea1 bcfd be4d 3df4 3f79 3e07 3ebe 3ebb 3ea1 bebf be21 3f47 3f0a be67 3f05 3e74
 be1d 3e11 3ee1 bd00 3f91 bf97 bec0 be20 bf13 be0c bf03 bf10 3ff9 3ef9 3d9c 3f8f be0a 3f27 bf48 3e6b 3f47 bf31 be4f
 bef4 be2d bfa3 3e86 3f34 3ec9 3e87 3f2d 3dfa 3e24 3ea9 bee8 3d94 3f10 befe 3f01 3f0c bdba bf44 be00 3f2f 3d7c be41
 3f8d 3ea3 be7d 3f20 bef0 3e52 3e90 be95 bdf8 bf03 bd8c bf55
out near 0.162 0.0605 = 3fe5 3edf 3dc6 bfef be8e beb6 bda9 bf21 bd33 bef4 bfa8 3f62 3f62 3fdb 3d4d becf 3f83 be5f 3ec7
 bfcf bf14 be9d 3ede beb0 bf4b bf29 3e2f 3dad bec4 3e66 3f15 3fb6 3f0b be70 3d34 bfed bf20 befe 3f0b bea8 bf67 be09
 bed2 bebf be04 3ea2 bdb7 3ede bfb6 bf4d 3f17 bf15 be28 3e27 3fb4 bed5 bf4d bec6 be27 bfb0 be4d 3cc4 be88 3f82 bfac
 befa bed6 bfe1 beec bec4 3f76 be3b 3f1d bfba bf04 bfde 3f69 3f91 bea5 3fd1 bfb4 3d21 3f14 bebb 3f12 3fb8 3dd7 be9c
 bef5 bec1 be65 bf28 3ec5 3f36 bf35 3f93 bf4c 3d95 be86 bfa6 402b bd92 bfbe 3fb4 bf89 3ebe 3f5d bf26 bedd bf0a be04
 bfd0 bf7d bcad 3e9f bee5 4010 3e88 bf87 3f3b bfda bf02 bec4 bd29 3e90 bf0d bede bfc9 bf20 3de0 3d71 bf7c 4019 3ec2
 bf7b 3f31 bf86 bd44 3d89 bc2a 3e8b 3e09 3e54 bf89 bed6 bb83 3eec 3e54 3fba 3f96 be93 be79 beb6 beb7 be6f 3d74 3e0f
 be02 bec9 3dfb bd3e 3f51 bf9c 3dec 3f5a 3f28 3ed2 3e2d be12 3e27 3e9b 3ebf 3f12 3f81 3f54 bbb4 bdbd 3fcf bfa0 3efc
 3f11 3f33 3f3a 3f81 3f47 3e1f 3fa5 bf31 bea7 bde9 bf0b 3f01
