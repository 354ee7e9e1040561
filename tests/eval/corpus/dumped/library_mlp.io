# JAX 0.10.2 on CPU. 40 roundings in bfloat16.
in bf16[6,16] = 3f50 be9d be87 bf09 3ede bf93 3f5f bec3 3e23 bdff 3f3b bf84 be25 be45 3f11 bf0d bdb1 bee1 3cad 3e95
 bf0d 3f13 3ee7 3e81 3ee7 beaf bd7c bef0 be09 3e88 beb1 be4b beb0 bed8 beac bbcf bf0f 3df0 3f54 3ebe bdc4 bee3 bebf
 3f59 3cd0 bea3 3dc3 3f86 3d76 3e9e 3e1a be34 bf12 be33 bdd6 3e96 3ed7 3eee 3e12 3ee3 bec1 3f20 3e83 be19 3e7a bd1b
 3f11 3f43 3f8c bf33 bf39 be81 3da4 3ee0 3e22 bf81 be1d 3ed4 3dec 3ec3 bde4 bdce 3dbf 3e52 3dcb 3d74 beac 3e41 3d79
 3f11 3f19 3dbe be40 bea4 3e59 3d1e
in bf16[16,24] = bdd5 bc66 bf09 3ed2 bee6 be57 3e01 be9f be87 be69 3e0d 3f13 3c2a be8f 3e0a be19 bb9d 3e96 be3f 3b14
 be61 bd20 3d83 be7d bdad bd72 be23 be98 beb6 bd1d bd8a 3f0f bf1c 3ce7 3dbe 3eae 3e00 be58 3624 3e0b bda1 3e45 beef
 3ede 3ebc bdac 3e1d 3c44 be54 3cb4 3e80 bdc3 bdc0 bc99 3dde 3ea4 be22 3e02 3d5d beee bdd7 bd08 bc22 3da7 bf03 3c3d
 be2d beb8 3e06 3e3c be27 3e58 bdc3 3c88 be8d 3ecb bf2a bcbb 3e32 bf02 bd42 bc9e 3e53 3ea0 bdcf beb1 3eaf 3e9c bded
 3db4 3dc4 3e11 3d51 3eb4 bede 3e85 3dc3 bd5e 3e96 bf16 3e95 3dc6 be91 3dde bd9c 3f25 3eeb 3de2 be38 be15 bda6 be0f
 be67 be17 bd8d be04 be33 be6e 3f23 bebd be83 3ddd bda6 3dd9 3e4d 3ea2 3e41 be7e 3e8e bee2 bcea bdff be88 3e17 bd3c
 3e83 bebe 3e59 3dff 3d02 beb6 bd81 bec6 bf05 3f52 3e79 3ee5 bddc 3e32 3e33 3e1a 3a70 bd6a bf04 3e1c 3dd9 3e8f bd8c
 3edf bde5 bea1 3e70 bdf0 bea1 3d00 3e42 3d77 3dff 3f83 3e52 3ec4 befe 3dbb 3e46 bdbb be60 3dcb bda1 be18 3e93 3eab
 3d9b bde9 3e04 3e54 3e21 beba bdad 3db8 3e1f 3e76 3e42 be91 be35 be9c 3ee7 3d39 3e0e 3e84 bda8 be93 bdda bd18 3ec0
 3e5f be8b 3e2a 3e3c be88 bcde beed 3da9 bda2 bead be33 3d76 be0e 3d99 3e0d be57 bda0 3f09 3cf8 be59 3c78 beab 3e91
 3dbe 3e8b 3e67 3dc8 3e7a 3d44 be2a be83 bde5 bf20 3eea bedb bc9d bea9 bf02 bca8 bd9c bd24 3e0d be1e 3dc2 3e03 bdab
 bd91 3e0a 3c6a 3d23 bf18 3c70 3dc1 bd0b 3dac 3ef4 3caf 3e2a be5a be5a bdf6 be83 baf9 be6f bd33 beb8 bed3 be2d be89
 be27 be1d bdb4 3e86 3eaf 3e3a bdb8 3ec0 bec4 bf01 3d89 ba11 bd0f 3c05 bed2 be94 3e9e 3e84 be39 3ef7 be89 be12 3d96
 be99 bdfa bd31 bdca 3e5f 3e18 be8d be2e 3d38 bc89 be4a 3dd9 3e52 be22 3e4a bed0 bece 3e00 be56 be7f bd87 be2d 3da7
 beba bdbe 3f4a 3ce1 bef5 3e1a 3e0d 3eb1 3d18 be27 3eb4 3e36 bee6 3e3f bd6e 3e8e bdbf 3e49 3d47 3e16 bba7 bdd4 3c8a
 3e22 3dd6 3ecf 3dda 3e23 3f07 3c87 3e09 be1a 3c2c 3ed2 3da0 3eba be88 beb3 3d9d beaf 3f2b 3ea0 be9f bd2b be14 3dd5
 bc6d 3e6f 3ebc bd63 be96 3e10 bd28 3e93 bd1c 3e54 3dac bd42 bde6 3e37 3f22 3e56 bd07 3e35 3cea
in bf16[24] = 3fe5 3edf 3dc6 bfef be8e beb6 bda9 bf21 bd33 bef4 bfa8 3f62 3f62 3fdb 3d4d becf bf0c bfc6 3f7b bf8d bf98
 be53 3fbe 3e72
in bf16[24,16] = 3c26 3dcd be4c 3e0e bdab bea2 be05 3df5 3d88 be6b 3dfd bc90 3dae 3d88 be6d 3d90 bdf9 3e9e 3e14 3c17
 be49 3c32 3d03 be78 3ee4 3da2 3ead be64 3ea8 be8b be05 3dde 3c1d bef1 be62 3e2c 3ed6 3e3b bd62 3e23 be6a 3dd1 be8a
 baf5 bcd6 3e24 bd78 3e76 bd21 3e2b 3e21 bebd 3bf6 3beb be1f 3d13 be95 3de4 3dd1 3d76 3efe 3d90 3c5d be16 3d73 be45
 3e82 be05 3d02 3ecc 3e6e 3d47 3e8d bc33 3e23 3b7a be39 3db0 3e3f bd8e be61 bdd8 bef4 bdf9 be5c 3ecf bde7 be9e 3e32
 bd10 3c1f 3d1b 3d2b bd99 3e44 3dd6 bdcb bd0c be41 3d66 3e17 3e05 3dfc bccf 3ea2 bd2a 3bc5 bd8a 3c85 bd45 3ed0 3dae
 beac bdb2 be91 3e34 3e8d bdb9 3dfb bd2c 3da7 3eb1 bd8f be7d 3e13 3dd4 3e0a 3e52 be0b bec9 3e55 bda7 be77 be6f 3e67
 3d14 3d78 3e2e be0b be66 be2f be62 bd6e be36 3bfd bdc5 bc83 3e05 3e8f 3e9f 3cbc 3d2e bdd0 3e4e 3e9d bdf3 3e1c bd87
 bd0c 3d17 bda4 3e37 be99 be0e bcc4 be56 3d94 be9b 3c35 be93 bcee 3dd0 3ee2 3e5d 3ea6 3c5f 3ed9 bd46 bd4f be83 3d36
 3e58 be02 bd98 bdbe bd88 bdf2 be8a 3e8d beca be3e 3d8d 3e4f bd2b bd68 3c22 bd56 3e34 bdc6 be4a bdc2 3c9e 3e7c 3ea4
 bda4 be96 be8e 3eda bda5 3dbc 3ec4 be0b bd1f bdee be60 3e24 3e5a bec0 3e49 bd41 3d16 3d22 be86 bd7f be4b 3ec4 3ee0
 3c8a be71 3e6d bd1c 3eb3 3eca 3eab bda2 be4c be08 bc9e be3d 3e74 3e07 bbdf bda4 3e05 3e8d bec6 3d40 bd76 be18 bd8c
 3cdc 3ebf 3c3b bdb0 be7b 3e1f be1a bcba 3e12 3c2c bd9e bd0d 3e38 bb81 3d47 3dad bd89 3d86 bd63 3e68 3dce beb1 bd2a
 3e63 bd2e bdad 3e4c be5e 3c55 3df2 3e2e be54 be7f 3e99 be1f bc93 3ef9 bdbf bee1 3f0f 3e4f 3d93 3f0e bc77 3e94 3b23
 bd62 3e02 3e35 3e83 3e75 bdcc bc84 3ec6 3df9 3ca0 3e8a 3e8f 3e84 bde0 bd9e 3e1a 3e74 be75 bdba bd3c 3e4e be5e 3f0a
 3c94 3dfe 3ee4 3e01 3e1b bd0d 3dc3 be57 bc64 3c11 be49 3e50 3dbc bebe 3e23 be3c 3df2 be22 bd8f 3daf 3ec7 be9a bd8a
 bd88 3e62 bd41 3dae 3e89 3e1f bda7 bdad bd52 3d07 be2d bc10 3df0 bdbb bdbf 3d72 3e26 be88 be48 3e84 bb46 be60 3cd0
 3ea3 bdfa be43 bd48 3ea4 be05 3ddb 3e4e 3dff bd8b 3e06 3d0a 3e26 3da1 3cec beb1 3e04 bcba bed4
in bf16[16] = 3ee2 bea9 401c be81 3de0 3fcb bf69 bf17 3e40 bea9 bf99 be52 beb8 3f1a bfd5 bf33
out near 0.151 0.0494 = 3ee5 3f3c 4023 0 3f27 3fbd 0*6 3ee4 3e8b 0*3 3f46 403e 0 3e04 3f91 0 0 3f52 0*3 3e58 3ea4 0 0
 3e2a 3f1a 4043 0 0 3f84 0 0 3f14 0*3 3db8 3f21 0 3e60 3f23 3ec1 4042 0 0 3fb4 0 0 3ec6 0*4 3e8c 0*3 3f36 4038 0 3f77
 3ffe 0*3 3de8 0 0 3ea4 3f0d 0 0 3eff 3e3e 4036 0 3e09 3fa0 0 0 3e2c 0*3 3db8 3e52 0 0
out near 0.0838 0.0494 = 3ee0 3f11 3eb5 bc72 bde7 bd90 3e1c 3d58 be2d bdee be2f bd1d 3e5c 3fbd bcfb 3cf3 bc28 be28
 3e06 bd82 be10 bd86 3f8a be23 3e88 3ebf 3e86 bd26 be17 bd01 3ed1 3e4d be21 be04 be1a bdbe 3ee7 3fad 3da9 3e5d bbb6
 be1e bd53 bd6f be2b bd8c 3f14 3dc5 3e9c 3eb6 3e3c bd18 be29 bdaa 3efc 3ddc be28 bdb1 be1b be18 3f00 3fb7 3e55 3e3d
 bbb3 be27 3daa bd3e be2c bc2d 3f27 3e1e 3eaa 3eda 3dbe bd93 be2d bd49 3f05 bd67 be2c be2d be1c bda9 3e75 3fb2 3ded
 3e12 bbb3 be2b 3e03 bd26 be04 3cff 3eca bb9f 3e82 3f21 3f23 bbbc bbbe 3dc3 3e33 3d60 be2a 3bc2 be2d be2c 3db0 3fd9
 bc89 3e3a 8000 be27 3e63 bd19 bdfa bd5b 3f7e be2e 3f01 3eee 3e7c bd58 be1e bd85 3eba bd84 be1d be24 be1e bddc 3e5f
 3fc2 3d51 3d66 bc26 be20 3e88 bd17 be05 3d43 3f0e bc6a
out near 0.153 0.0494 = 3f1a 3f3c 3f02 c021 be97 be24 3e82 3dc8 bf4f be9c bf4d bda8 3eae 3fc9 bd84 3d68 c028 bf71 3e64
 bfe8 bf97 be18 3f9c bf0a 3ed0 3f08 3ecc c005 bee6 bd88 3f12 3ea4 bf81 beb6 bf8b be68 3f1e 3fba 3e17 3eaf c036 bf87
 bde8 bfef bf67 be20 3f40 3e2e 3ee8 3f03 3e98 c007 bf18 be4a 3f29 3e40 bf6a be54 bf8a beec 3f2b 3fc3 3ea9 3e99 c033
 bf73 3e18 bffe bf56 bcb0 3f52 3e83 3ef8 3f17 3e28 bfe0 bf34 bddc 3f30 be00 bf2b bf2c bf89 be48 3ebe 3fbf 3e4d 3e76
 c033 bf5f 3e60 c005 bfa3 3d74 3f0e bc20 3ec8 3f4c 3f4f c03c bc40 3e2c 3e92 3dd0 bf19 3c40 bf2c bf24 3e1c 3fe2 bd0d
 3e97 c046 bf6e 3eb2 c008 bfaa bdf2 3f92 bf38 3f2c 3f22 3ec2 bff7 bf02 be17 3f05 be16 befd bf0e bf87 be8c 3eb0 3fcd
 3dc2 3dd4 c026 bf82 3ed0 c006 bfa4 3db6 3f3a bcf0
