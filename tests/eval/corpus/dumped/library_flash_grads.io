# JAX 0.10.2 on CPU. 120 roundings in bfloat16.
in bf16[1,6,2,8] = 3fd0 bf1d bf07 bf89 3f5e c013 3fdf bf43 3ea3 be7f 3fbb c004 bea5 bec5 3f91 bf8d be31 bf61 3d2d 3f15
 bf8d 3f93 3f67 3f01 3f67 bf2f bdfc bf70 be89 3f08 bf31 becb bf30 bf58 bf2c bc4f bf8f 3e70 3fd4 3f3e be44 bf63 bf3f
 3fd9 3d50 bf23 3e43 4006 3df6 3f1e 3e9a beb4 bf92 beb3 be56 3f16 3f57 3f6e 3e92 3f63 bf41 3fa0 3f03 be99 3efa bd9b
 3f91 3fc3 400c bfb3 bfb9 bf01 3e24 3f60 3ea2 c001 be9d 3f54 3e6c 3f43 be64 be4e 3e3f 3ed2 3e4b 3df4 bf2c 3ec1 3df9
 3f91 3f99 3e3e bec0 bf24 3ed9 3d9e
in bf16[1,10,2,8] = bed5 bd66 c009 3fd2 bfe6 bf57 3f01 bf9f bf87 bf69 3f0d 4013 3d2a bf8f 3f0a bf19 bc9d 3f96 bf3f
 3c14 bf61 be20 3e83 bf7d bead be72 bf23 bf98 bfb6 be1d be8a 400f c01c 3de7 3ebe 3fae 3f00 bf58 3724 3f0b bea1 3f45
 bfef 3fde 3fbc beac 3f1d 3d44 bf54 3db4 3f80 bec3 bec0 bd99 3ede 3fa4 bf22 3f02 3e5d bfee bed7 be08 bd22 3ea7 c003
 3d3d bf2d bfb8 3f06 3f3c bf27 3f58 bec3 3d88 bf8d 3fcb c02a bdbb 3f32 c002 be42 bd9e 3f53 3fa0 becf bfb1 3faf 3f9c
 beed 3eb4 3ec4 3f11 3e51 3fb4 bfde 3f85 3ec3 be5e 3f96 c016 3f95 3ec6 bf91 3ede be9c 4025 3feb 3ee2 bf38 bf15 bea6
 bf0f bf67 bf17 be8d bf04 bf33 bf6e 4023 bfbd bf83 3edd bea6 3ed9 3f4d 3fa2 3f41 bf7e 3f8e bfe2 bdea beff bf88 3f17
 be3c 3f83 bfbe 3f59 3eff 3e02 bfb6 be81 bfc6 c005 4052 3f79 3fe5 bedc 3f32 3f33 3f1a 3b70 be6a c004 3f1c 3ed9 3f8f
 be8c 3fdf bee5
in bf16[1,10,2,8] = 3fe5 3edf 3dc6 bfef be8e beb6 bda9 bf21 bd33 bef4 bfa8 3f62 3f62 3fdb 3d4d becf bf0c bfc6 3f7b
 bf8d bf98 be53 3fbe 3e72 bf83 bf37 3f20 be24 bf45 be6c 3f3f 3ffd bf9f bf20 bf4e c01b bf6c bf83 3f90 be07 bfd0 3f26
 beb6 bfdf bf19 bf17 bf60 3cf3 c010 be89 3f82 3f5a 3f8e 3f8f 3fbe bf8f 3f59 bfee bf1a bff5 3f86 3fab be4a 3fe3 bf2d
 3e1a 3e1d bf88 3ee0 3ff8 bf83 3f66 be1e 3fe3 3ef8 3f2d 3f25 3e7f bfb3 3fb2 bfaf 3e74 3f1d bf57 3e15 3f95 bcc5 bf63
 c03b bf79 bf17 bf04 bf76 3ec1 bf13 bde0 3f2e bf5b be9a 400a 3f60 bfa6 bda3 3f11 3f9e 3e19 bf08 bf3b 3f25 3ea0 bf04
 be42 bed5 3f3a bf31 3ef9 3f5a 3ef9 bf56 3fac bf2e 3eda bf41 bfdf 3e67 3e93 bd9f 3e8d bf26 bf3d be2c 3ff4 3f51 bf05
 3f0f bef5 beea 3f5c bf06 bfd6 bf68 3db5 3e03 3f9f bf37 3f3b 3eda be19 3f56 3efc bf5d 3f89 bf9c 3d74 3b20 3ed9 bf3a
 bd0f be10 3f7f
in bf16[1,2,6,10] = 3d4f 3f00 bf7f 3f32 bed6 bfcb bf26 3f19 3eaa bf93 3f1e bdb4 3eda 3eaa bf94 3eb4 bf1b 3fc6 3f39
 3d3d bf7c 3d5f 3e24 bf9b 400e 3eca 3fd9 bf8e 3fd1 bfae bf27 3f0b 3d45 c017 bf8e 3f56 4006 3f6a be8d 3f4c bf92 3f03
 bfac bc19 be06 3f4d be9b 3f9a be49 3f56 3f49 bfec 3d1a 3d13 bf47 3e38 bfba 3f0e 3f03 3e9a 401f 3eb4 3d8a bf3b 3e98
 bf76 3fa3 bf26 3e22 3fff 3f95 3e78 3fb1 bd5f 3f4c 3c9c bf68 3edc 3f6f beb1 bf8c bf07 c018 bf1c bf8a 4001 bf11 bfc5
 3f5f be33 3d47 3e41 3e56 bec0 3f74 3f06 befe be30 bf72 3e90 3f3d 3f27 3f1d be02 3fca be54 3cf6 beac 3da6 be76 4002
 3eda bfd7 bede bfb5 3f61 3fb0 bee7 3f1d be57
out near 0.234 0.0856 = bebf bed8 3e8a bef0 3e31 bea2 3f98 bf0d 3c2f bf36 be6b bdc1 3e79 3d97 3e92 3d3f bc70 bf24 bd30
 3de4 be22 bdc2 3e7a 3e3d 3ec7 3f3d bf51 c02f bf5e 3f55 bf74 3ff4 bf13 be06 3c40 bc90 3e83 3c94 bd7f 3eae 3ea8 3f94
 be74 be8a 3f53 4002 c006 3fa3 3da6 3d48 3fac bff0 3f9c 3f38 bf63 3f25 3e4a 3d58 bf80 be8c bfa5 3e17 3ec4 bf70 bf4a
 3e3a 3f7e 3fe6 3f77 bf47 3e83 3e70 be75 3d18 3f06 c026 3f15 3dae be07 3e78 bf39 3e51 3f7a 3ea6 3f1c be8e 3cda 3f34
 3d0b 3f15 3f1a bf4d 3e50 bd3c bdde 3e40
out near 0.186 0.0856 = bece be99 beda bdac bec8 3f85 3f1a bd83 bf68 3f1b 3e90 be68 3ef0 befd 3e70 bf38 be41 3f3a 3e17
 be55 3d54 3e04 bf6f bcfc 3efd bf46 be28 bebe 3cb5 3e06 bf26 bf74 3eb1 bddc 3f8f 3fc5 4002 bfa6 bfc9 be90 3b58 bead
 be6f 3f04 3d27 bdf9 bd39 3e52 be9d 3d02 beb9 bef8 bf8c 3f38 3eea 3eca 3edc 3fc0 3f4c c00b bf1f 3f86 3eef 3f34 be6a
 bdee bee4 bee5 bf49 3ed0 3f41 3e5d 3ea1 3e82 bc70 3f60 be80 3f08 3e55 bef0 bd81 be13 3d4c 3e80 3eb0 3cdc be0d bd90
 be80 bf88 bf50 3fcf 3e10 bf42 3db6 4003 bd05 3e9a bd1e bec0 bf47 3dfa 3da8 3e92 be53 bd16 bdef 3f1f 3e33 bec8 be75
 bc8d 3f57 becc be91 bf05 3eb3 bf8c 3f83 bebe bd34 bda9 bcbd bcb2 3d5e bdae bd59 bd40 bd9d 3d43 3d47 3d53 be33 3e73
 bd87 3d64 3e02 be07 bd06 be81 bc43 3dfe be07 be51 3de6 bd3e 3e44 3e90 3eea be8e be63 be09 3d20 3d92 3ea2 bf18 bca1
 3c8b 3dfa bf0c
out near 0.776 0.0856 = 4098 3d92 3f6e c111 bfee bfc2 3fdb c018 c002 bfdf c070 3f08 3fdc 4099 beb2 3fa3 be14 bf1e 3eff
 c022 bef2 be75 3f9a beed c052 c040 beca c017 bf39 3fe3 3f3d 40c6 c00c bf92 bdc6 c088 bf66 bf01 400b bf26 bfca bedc
 bf56 bf99 bc10 3f63 bef2 3fb3 bfaf bf0c 3eaf bfb1 bcd0 3e5f 3f91 bebf bf72 bfe5 bf03 c005 3e92 3fad be10 4057 bf86
 beaa 3d9c bf22 3e8c 3f02 3e89 bd0c bf8a 3f05 be8c bf12 3e6b 3f32 bf84 3fd4 bf90 be11 3e64 bea1 3f1b 3ede 3d9b 3e54
 c04f bf5f bf4c bf55 bf53 3f5a bf52 3f89 becd be7b 3da3 3ec5 3efb bd9c bd39 3eaf 3e9a bd05 bf70 bf2d 3f0c 3f78 bf17
 3f20 bf8e 3efa bf03 3f16 3fb3 3f1d bf12 3fb0 be7d 3daa bd9b be47 bb92 3e08 be31 3ec4 bf75 be17 bd29 3dfc 3f43 3efb
 ba1c 3e3d bed1 3bb7 be7f bee4 bd5b 3e8f be53 3f19 bf67 3dd1 3e75 bdb5 3f21 3eac be3b 3ece bf6c bdce bee2 be03 be7a
 3efc beaa 3f67
out near 0.239 0.0856 = bed9 bf1b bcdf be13 3a54 bd93 bd62 3fbd be3e 3d14 bf08 bd8b bdd1 3e4f 3a9a 3ba4 bb04 3e85 3e63
 3c74 be41 bd8a bdff 3d3a 3eff 3da0 bdca 3aa1 be14 39e7 be06 be6e be16 3a1b bd23 bf01 3f8c bcb3 3db3 bde1 bd32 be1d
 be1f 3d78 3d26 3e6a beea bafc bd59 3f09 beb2 3b8d 3e94 3ea5 3b1a 3e39 bdc0 bdf2 be35 bd84 bd73 3d08 ba23 3d28 3bf1
 3b73 bef3 bb81 3cea 3eda bed6 3c99 3e08 3dcb be84 3de1 bd8d 3d02 3ed0 bd59 bf5c bf26 bdb1 bdf0 be53 4033 be11 bd45
 be2e bf03 be6a bde9 bd6e bda4 3fbc be97 bed9 be30 bcf0 bd92 bda5 3f11 bdbb 3f5f beb6 bdf1 bf1d bdc7 bd0f bd46 3e01
 be32 bc28 3d4e bc89 be59 3ef2 bc1f be24 bd88
