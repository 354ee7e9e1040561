# JAX 0.10.2 on CPU. 24 roundings in bfloat16.
in bf16[8,16] = 3f20 3e11 3eb1 3f4b 3f29 beb1 3eac bd5b bd15 3e15 3d51 3f04 3e8a 3d30 3e21 3df2 3f07 bd95 3de3 be9b
 bf67 3e6d 3e9c be86 3f4d bf04 3c85 bd88 3f0b 3f05 3d60 3e09 bea1 bf33 bdfc 3d62 3edf 3eda be0c bddb bebe bf01 bf1a
 3f31 be39 be1f bee3 3e8d bf12 bd9a bea2 3e0c be39 bed6 bc23 3e1b 3cc1 3ddb be66 be03 be73 be02 be93 bf1c 3d80 be11
 bf14 3e28 bea4 3c96 3e84 3d3b 3ece bee0 3e12 be78 be9e be52 bde2 3ca3 bed3 3ea3 3e29 bf0b 3f07 3f2c 3ed5 bd82 bec2
 3ebf be12 3edd 3d97 3eb1 3e01 3e80 3b73 3f22 3d38 3e12 3f2a bef4 bee6 3eaf bed4 3f30 be16 be87 3f2e 3f06 3f29 3ea4
 be9c 3f2d bdc2 3e91 3eab bd60 3e5e 3ea7 3e08 bec7 3dd8 3ef0 be7b bd59 be1e 3f27
in bf16[16] = be20 bb4b bd7e be16 3e11 bd43 bda0 3ddb be03 be08 3c4f 3db1 3d8f bd09 bdcc 3e24
in bf16[16,4] = 3ed0 be1d be07 be89 3e5e bf13 3edf be43 3da3 bd7f 3ebb bf04 bda5 bdc5 3e91 be8d bd31 be61 3c2d 3e15
 be8d 3e93 3e67 3e01 3e67 be2f bcfc be70 bd89 3e08 be31 bdcb be30 be58 be2c bb4f be8f 3d70 3ed4 3e3e bd44 be63 be3f
 3ed9 3c50 be23 3d43 3f06 3cf6 3e1e 3d9a bdb4 be92 bdb3 bd56 3e16 3e57 3e6e 3d92 3e63 be41 3ea0 3e03 bd99
in bf16[4] = bcee 3c38 3e00 be0b
in bf16[5,8] = 3fd8 beef 3d06 3ed1 bf4a 3b07 ba69 bfe1 3f82 3f1a bf20 be30 3f01 be86 be79 bfba 3f0e 3dfe 3e8d bfc3
 3fd3 3e1e bec6 4002 bd3a bfba becf c012 3f86 bed5 bf3e 3f89 bfd3 3f09 c004 bf2a bf9a 3fbb 3fe2 bea9
out near 0.111 0.0383 = 3a70 bdad 3f69 be0b 3ef2 bde3 bda2 be2b bdfc be0a 3f0e 3da1 bdce bd92 3e3e 3dfd be14 be29 403a
 3e39
