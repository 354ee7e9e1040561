# JAX 0.10.2 on CPU. 40 roundings in float32.
in f8e4m3fn[1,4,3,16] = 3d b2 b0 b9 36 c1 3e b4 2a a8 3c c0 aa ac 39 b9 a3 b6 13 31 b9 39 36 30 36 b3 a0 b7 a9 30 b3
 ad b3 b6 b3 86 b9 27 3d 34 a4 b6 b4 3e 15 b2 24 40 1f 32 2a ab b9 ab a5 31 35 37 29 36 b4 3a 30 aa 30 9a 39 3c 41 bb
 bc b0 22 36 2a c0 aa 35 27 34 a6 a5 24 2d 25 1f b3 2c 20 39 3a 24 ac b2 2e 1a ab 13 b2 33 ae 3a 2d 31 b9 23 34 b7 a9
 10 bb 2a 36 b6 2b ba 92 bd 39 2d 8d b4 3a 40 bf 3a 3d 2b ba 36 a4 b2 ba 31 35 b2 30 b9 35 14 a4 9d 36 34 30 21 1a 32
 27 33 aa c2 38 41 2e 9d a1 9f 9 b9 b0 b8 28 a9 30 a3 38 26 41 bf b2 36 42 a8 13 a6 3b a9 33 aa ba 2a 30 3a 9e b2 31
 27 29 99 39 2c
in f8e4m3fn[3,3,16,16] = ad 96 c1 3d be b5 30 ba b8 b7 31 41 13 b9 31 b2 8a 39 b4 5 b6 a2 28 b8 ab a7 b2 ba bb a2 a9
 41 c2 1e 2c 3b 30 b6 0 31 aa 34 bf 3e 3c ab 32 14 b5 1b 38 ac ac 9a 2e 3a b2 30 26 bf ad a0 92 2a c0 14 b3 bc 30 34
 b2 35 ac 19 b9 3d c3 9c 33 c0 a4 9a 35 3a ad bb 3b 3a af 2b 2c 31 25 3b be 38 2c a6 39 c1 39 2c b9 2e aa 42 3f 2e b4
 b1 aa b1 b6 b1 a9 b0 b3 b7 42 bc b8 2e aa 2e 35 3a 34 b8 39 be 9f b0 b8 31 a4 38 bc 36 30 20 bb a8 bc c0 45 38 3e ae
 33 33 32 2 a7 c0 32 2e 39 a9 3e ae ba 37 af ba 20 34 27 30 48 35 3c c0 2c 34 ac b6 2d aa b2 39 3b 2a af 30 35 32 bc
 ab 2b 32 37 34 b9 b3 ba 3e 24 31 38 ab b9 ae a1 3c 36 b9 33 34 b8 9e bf 2b aa bb b3 27 b1 2a 31 b5 aa 41 20 b6 17 bb
 39 2c 39 36 2c 38 24 b3 b8 ae c2 3f be 9a bb c0 9b aa a2 31 b2 2c 30 ab a9 31 17 22 c1 17 2c a1 2b 3f 1b 33 b6 b6 af
 b8 84 b7 a3 bb bd b3 b9 b2 b2 ab 38 3b 34 ac 3c bc c0 29 81 a1 10 bd b9 3a 38 b4 3f b9 b1 29 ba b0 a3 ad 36 31 b9 b3
 24 99 b5 2e 35 b2 35 bd bd 30 b5 b8 a8 b3 2a bc ac 45 1e bf 32 31 3b 21 b2 3b 33 be 34 a7 39 ac 35 24 31 8a ad 19 32
 2d 3d 2e 32 40 18 31 b2 13 3d 2a 3c b9 bb 2a bb 43 3a ba a3 b1 2d 97 37 3c a6 b9 31 a3 39 a2 35 2b a4 ae 33 42 35 a0
 33 1f ba 2a 3c aa b9 30 3f 37 38 41 3d 33 a5 21 9d 36 b6 3c 21 ad 35 c0 b5 b3 35 b0 3b ae 30 b3 39 a8 30 b0 b9 a7 39
 b8 bc aa 34 b8 b1 24 ab 29 3a b 98 34 98 b7 b8 b9 3f 94 31 33 b7 32 b1 c0 a6 b9 ab 2b 41 b0 a2 2c 24 a2 b9 b7 a4 b9
 b3 ba 39 bc 3f b1 b8 b9 34 38 b6 2b a2 a8 22 34 bf c1 25 99 33 be b8 3c ba 2c b5 ad bb 39 bf ba b7 39 2a 33 89 27 30
 3c 28 bc 39 1c b9 a3 b8 40 ab c0 2a b5 3a 21 be b0 b9 b4 b2 c0 25 b6 b6 34 3f b2 3e c0 31 b1 99 b8 b2 aa ab 2d 41 b2
 a2 be c2 3b bb b4 b 37 2a 3f a4 bf 21 1f b5 ab b1 3e b2 bb 29 bf 2e 2d b6 b1 b2 3d 2d ba ba 9a 87 b4 29 a5 39 2e 9c
 21 b6 36 2c ad 1f b1 42 ae 30 2c b5 3 aa 28 28 34 35 ad b0 b1 b6 be 32 9a a6 bd bc c2 9d 33 32 9a b9 85 1 33 34 a9 91
 33 2f a3 c1 b3 35 22 37 ab 1a 35 33 2d 39 3b 3b bd b0 ab ac bd 3a b8 1d c2 b0 a8 b7 34 42 b6 b6 3e 31 aa ba 34 26 3c
 b6 a3 aa a6 38 35 b2 9c a7 36 a3 b9 ab 94 37 3a 3a 2c b0 31 a4 b2 29 2d 36 b6 bd 30 b8 38 b9 b1 bf 40 af 9c b1 a8 35
 1b 8f 39 bb 39 3d bb 28 ba c1 b6 30 34 ac b6 af b4 b2 c2 a8 a1 41 33 a2 16 2a b4 c0 b4 a8 1c b4 b7 a9 f 31 a9 2d b8
 35 9a bb a9 1b b9 33 ab 2e b8 29 33 af a6 b1 2a 5 2f 9a ba bb af 2e 41 36 b2 c0 30 81 ba 36 86 ae c0 37 15 a9 b8 ac
 3a 30 40 38 2b 36 22 bc b2 2a b7 b0 ba 3d bb b8 b6 37 39 b1 31 b6 84 42 37 95 bb aa bb c1 32 31 24 38 bd 3b b9 2c 2e
 39 40 2b ac b9 28 b6 bb a5 33 aa b8 21 ba bc 3c 28 40 bc 38 a3 43 a6 ae 2e 24 af 37 33 36 2d b3 b3 31 b7 3e 10 b5 38
 8a 3a 26 3e ac c1 bc bd 31 3e a4 bb 33 2f ac 2d 3 b9 33 b0 b7 a7 3d 40 3b b0 b8 2b a2 21 b9 b6 b9 34 38 b3 31 32 b4 5
 35 b8 3a a5 17 a8 bc 2b 83 ad a6 2d a1 b0 1a 34 11 b5 35 a9 31 a1 b7 ba b6 a7 c1 2c 39 a7 b9 bd 26 2d 17 33 b3 a8 29
 a6 30 30 a9 b7 b4 39 ba 17 b8 41 b2 32 b7 45 bb 2b ba 35 ba ae bd ad 0 3e c1 31 13 b2 a6 2d 92 93 b4 ad 2f b7 b0 19
 2a 2c a5 c0 34 38 3a 2b 35 aa b9 a3 a8 38 35 b0 ae 96 18 3b b0 3a bb b3 3d 2c 1a 31 a7 11 25 25 2b b2 2b b4 31 a4 26
 28 b4 b1 a3 2e 37 9a b3 26 93 34 39 3f bd b0 9c 34 32 11 34 b1 ac 29 b9 3c b5 b9 29 bf ae a4 3a 44 22 ba 27 32 b7 2a
 3c 2f b5 b1 bd ae b1 3b bc bd 23 31 b1 23 32 33 2b 30 bc 34 20 b5 ad aa b1 a4 ad bc 40 2c 41 a9 3d a1 3c 36 34 a4 25
 3a c0 b3 ba b7 32 35 a5 39 b4 b2 1f 2d a1 b9 31 3e ac a b9 84 b7 23 3c 30 b4 35 be 3a 29 b9 ab b7 40 31 b8 b3 21 b1
 26 2c bc 32 3d 2a 32 b0 b0 29 b6 bd 35 b3 25 1d 2d 31 30 aa 35 ac 2b b2 19 b6 3b 2a b4 be b4 3a b2 37 a7 ab b9 28 38
 34 30 b8 19 b9 b6 2b b9 2e ab 3b a5 2e 37 30 31 be 35 bd b4 c2 ad b4 aa b9 a8 b5 a9 34 c1 a1 a8 bd b0 3b 29 b2 32 28
 bb af a1 9a 28 9a 92 b2 af b2 2d a5 b3 33 41 a6 39 b2 22 36 39 40 b0 16 3b 3a b6 87 38 3a b7 2b c1 38 3e b9 a6 bb af
 31 31 2d bb b5 3f 27 ae 28 b1 23 b4 b3 bd 3e 34 32 36 a0 b9 30 33 31 ac bc 35 2d 97 a7 a0 b1 bc 9d ae 2a aa 29 ba 2f
 40 9c 32 36 2b 28 bc b5 3c 25 26 40 be 38 32 c0 b2 2e b3 b4 32 a4 24 a2 21 2a 41 2d b3 2c 28 45 bb 33 28 3c b8 ba 2b
 35 2e 32 93 38 20 b0 3c b6 bd ad a1 98 a9 2c ab b6 3b a3 39 23 30 3c bf 39 19 36 ae 5 a2 b9 98 3e 3a 3b a6 a3 ae c0
 a7 b4 36 37 2e b6 b1 3b 2a 38 ae 38 aa af 29 b4 b9 3b 33 af 89 39 b0 c2 41 bc af c1 c1 2a ba 32 a2 a3 32 32 3b bb b4
 33 34 b1 ba 1 c4 bd 39 ba 40 1f 29 43 36 aa b1 b2 c0 2c b b3 36 b2 be b9 99 29 3f ae 30 38 31 28 b9 ae 41 21 99 ba 26
 3e b2 b7 9d b1 b3 40 34 bc a0 36 ac 34 ba 2f 9f 30 a0 b4 2a 2d 31 bb b1 a9 ab ae 9 3a 3d 39 2f c5 b4 2f b8 38 b4 1b
 b0 25 bc ac b7 b9 be 37 b9 32 a6 2c 9d a1 bb 42 37 36 c1 b5 b5 1a b5 30 86 33 38 b7 b4 b8 33 a6 b1 bb 27 a1 86 af bc
 39 9f 20 b6 3a b7 b1 b8 ba 32 b1 b9 a9 ad 9b b3 1f be b8 31 33 bf 28 a2 38 b9 28 34 bc b4 35 ab 34 16 bc 81 29 b3 37
 bb a2 ae b7 bc c0 bb a9 b3 a8 ab b1 1f 34 bd 22 be 40 b8 af 34 2a 35 3b ad 3f b4 ac 35 c2 b3 aa 34 b5 34 b9 36 33 b1
 ab a8 ae b2 3a 2b 2c bd 9c 38 17 b1 a2 34 a7 c1 b5 1a bd 98 2d 41 3b 2a bf 26 bc b9 38 b5 32 21 36 a8 a5 3c 32 2a 90
 30 a1 31 a0 be be b3 40 3b ad b5 b0 a7 3a b1 bc b0 ba 3c a3 1a 98 c0 26 2f ae 2b ac 9f 35 ad 30 19 85 b0 b4 83 39 2c
 3a a bd 39 96 39 34 36 2f c4 35 29 34 36 2b 33 bc 1e 33 33 b6 bf b2 14 29 3d 3a b4 32 ad 35 b3 3a b1 ab b7 35 18 2e
 34 b5 3d 34 27 1 a8 b0 37 25 89 b1 23 40 2f c0 c1 33 bb 29 32 33 40 ad 27 b1 ba b4 3c 3c b5 35 a2 36 b6 2a 22 b6 b1
 af 10 3d*3 32 38 b7 1b 39 2c b2 30 28 26 b0 33 a0 b4 f 32 3b 39 be 39 32 30 3b 3e 33 96 af 29 2f b2 3e 3d 37 40 38 a9
 38 40 a1 b9 39 bd b7 2e aa 3e 1c 34 3a 21 32 be 40 23 a4 b1 29 b1 28 b2 bb b4 b5 2d 21 b0 2b b2 91 a9 2d b6 a1 90 b9
 15 93 37 b9 bc bd 26 b1 b8 27 36 3f 3a b2 3c b4 2d 34 bc 21 1c 41 b2 34 a3 1b b7 38 3a 39 be bf 99 39 35 a8 b3 3d 3b
 b4 98 9c 40 33 39 b6 29 9d 22 2d 99 b8 39 b7 b5 bf 2b 20 b3 b6 23 a9 b8 2e 36 2c 36 28 3c 37 ab 39 2c b0 b3 a9 c0 b4
 af bc b6 b8 bc a1 25 2b 39 a3 af 3 3a 3d b1 2d a2 31 c2 ad bf c5 2c b7 3a 35 3a 35 af 2c bc ba 30 3e 26 b9 99 32 38
 22 3e 39 2d ab 42 ae aa b7 28 be 31 bd 32 bc ba b5 22 a9 b8 a6 31 bf 3a 97 c3 20 a7 b0 ac af 34 23 32 a7 3a a3 31 a3
 a1 36 36 18 20 ab 32 2c 36 26 5 36 a0 34 38 3c 25 2a 37 23 32 25 b b2 27 32 2b a2 2b 3d 1c b0 3e ac 3d 33 ba 91 99 9b
 9d 35 30 3c 93 1d 36 1e a6 30 b4 b7 a8 34 38 b4 ab 30 2e b2 38 9e 19 af 3a 3a 99 3b 39 35 20 38 b0 ab 9e 33 3b bd b
 b2 31 ba 3f ae 3c b9 31 3e 3b b8 b9 bc 30 bb 3f 36 3c ad 9f 1d ba ba 25 ab 84 b9 32 3b 2e ae 36 36 29 b6 bf 3f 30 ab
 b3 c1 38 98 2a 9d 98 30 ba b2 31 39 2d 30 b6 b2 29 21 a3 4 bd bc 32 10 b4 2a 46 b2 2d 93 b1 b4 39 b0 be 3e b2 34 29
 aa 3e b7 29 2e bc b5 35 40 33 c1 39 bd b6 91 24 a2 a9 42 bc 29 38 33 bd 3b 3b b5 b3 3b 24 b8 30 b5 b8 c1 2c b5 b8 b0
 34 9f 36 a0 39 3d 86 99 bd b1 3e 33 bd b8 b2 10 18 96 2c 89 b2 26 c3 b7 a3 32 31 3a 39 25 21 31 b0 af 25 b9 23 28 3b
 ba b2 3a b2 29 b4 3a bb b1 b5 3a 1a bf 3d bc 24 36 b1 b4 bb bd 42 38 3a be b2 bc 33 3e b3 b5 3b ba 32 b1 34 b1 bd 22
 bc 2e 3f 3a bb bd c3 b9 bc b8 40 2b 1d b3 1f 30 21 36 37 b3 b9 3b bc 2b 29 3d b4 bc 3c b6 c1 bb 95 3a 30 9e b5 14 32
 b5 27 3e a4 a9
in f32[1,4,3,16] = 3fe4f1c7 3edf7e38 3dc5a077 bfee86ee be8e05d4 beb5a2f8 bda9745e bf20831e bd337aae bef455ec bfa82cb8
 3f62769d 3f619e0f 3fdad34a 3d4cf014 becf31e1 bf0b9cb6 bfc5f2f8 3f7b7c6f bf8cefc9 bf97af9b be5295e3 3fbe3a1c 3e7265c0
 bf830b64 bf3686b9 3f20100e be245d9d bf44d276 be6b8d2c 3f3ebc02 3ffcf133 bf9f3f6f bf205cdc bf4dc39d c01ad242 bf6c7da2
 bf830e5c 3f8fde82 be071486 bfcfc7d1 3f258c86 beb6691f bfdf1f3f bf18be08 bf16ae1f bf5fb6c0 3cf36a63 c00fe375 be891815
 3f81afff 3f5a50f6 3f8dd917 3f8f4831 3fbe67d0 bf8f247a 3f58888a bfee31a1 bf1a56ae bff50d6b 3f8629b3 3faab7ec be4a2713
 3fe32792 bf2cbaf1 3e1a3b4f 3e1c9dcc bf88378d 3ee03a8a 3ff83072 bf8330ef 3f663b0b be1e370b 3fe28326 3ef7b31b 3f2d1c85
 3f24a659 3e7f1096 bfb2a861 3fb22203 bfaf7215 3e7449e9 3f1d3428 bf56816b 3e148b74 3f957d2b bcc576bd bf637f0d c03a9b73
 bf78ca8a bf1750f0 bf0433ee bf75c24f 3ec12cd7 bf132017 bde02998 3f2dd7a3 bf5afdee be99b49c 400a1f1e 3f5fd130 bfa5929c
 bda34f38 3f10821f 3f9de261 3e188fe4 bf07d43b bf3b03cb 3f2522c8 3ea04973 bf04430a be419c01 bed517e8 3f39832a bf30a143
 3ef90b51 3f59fd25 3ef8f5ac bf5590be 3fac28b6 bf2d9f59 3eda55b3 bf40da8d bfdf3f01 3e672b14 3e92f646 bd9e995e 3e8d58da
 bf25fe42 bf3cca7f be2c1fd0 3ff4632f 3f5097b0 bf051e2e 3f0f07d4 bef4ec36 beea1e16 3f5bfa09 bf0677be bfd67b32 bf681009
 3db51308 3e03147b 3f9eed4a bf374d77 3f3b4157 3eda1850 be189711 3f55f9de 3efbf702 bf5cc040 3f892cf0 bf9c4684 3d742f50
 3b202e3c 3ed969da bf39b602 bd0f20cc be0ffeb2 3f7f412f bf4bc111 3d94fb9c be85c150 bfa62664 402b456d bd91db48 bfbe4ad0
 3fb44de3 bf8908f2 3ebde2ab 3f5ce290 bf25ffa4 bedc9d9f bf0a4f27 be047736 bfcfaccf bf9e2957 be102a52 3f84fc62 3f21b9fd
 3fdd5d8d 3f31ad69 bf02d95a bdfb9553 c001f1f8 bf75f55c bf829b22 3e8a8b39 3f25d82c bf0f74a2 bf16a80b bfc5f58b
in f32[] = 3f000000
in f32[] = 40800000
in f32[] = 3d800000
out near 34.8 0.791 = 55 c6 d1 bf c7 4c 3b e2 d5 c3 d9 d0 d5 ca 5d 56 ca 63 c9 52 d9 40 da 5b 52 50 c0 59 2f da e0 51
 3c df 41 c2 49 53 a6 c0 da d3 b6 55 4d d4 c1 5a 63 d5 de d6 b8 5b d4 52 d6 34 58 e2 d7 37 52 5b bf e2 d2 d8 d3 54 4f
 ca 51 51 62 48 b6 50 58 e3 da 57 54 ca d4 df 52 5d 5a 51 28 53 4b 48 d0 d1 b3 dd d0 5a 58 53 df c4 4d d8 5a cd 5c 53
 da 4c cb d2 53 d1 56 c2 dc c0 e0 e1 dd dd 56 41 50 d1 56 4a dd cb aa d6 da d2 5f d8 49 2c 53 ce 5b df 5a d7 48 ce 4b
 da 45 c9 57 d7 d3 5b 33 d5 d5 db 53 51 d4 b5 d8 de 55 57 cc c7 d6 da 5a c8 d8 5f 48 d8 ca c8 cd 57 dd d3 61 57 49 4d
 e3 5a ca 5a
out near 2.15e-06 7.54e-07 = 4036a820
out near 1.6e-05 7.54e-07 = 410692d9 0*4 402187a1 3f1b2174 0*7 414d0470 40cf5de2 0 41aa48f0 0 4073e91c 0 3f4a0887 0
 412cb3d7 4071ba4e 40558e52 0 410fdf0a 0*3 40caceed 0 0 3ea560c6 0 3fb8992f 4089ae69 3f822e82 0*4 40990030 402e147e 0
 0 411e1e75 41a2a255 0*3 3f18ca2e 4148cf06 0 4070a503 0 0 40e55caa 0 0 3fe67e6c 409440c7 41481dc2 0*5 40f8a11c
 402df688 0 4083a848 40c8de4a 419eca40 402db221 3e42d964 408c2005 40cc13e8 0 0 40f6f0ef 40db050d 0*3 40a33009 4140cc0f
 40db3366 40564b3e 0 40984682 3fda5a58 4014c39b 0 0 3ea82d46 0 0 413d0ae8 4113e683 4080aad9 0 0 408e6ad8 0 4119c7ec 0
 41439c0c 40b4bb17 0 403a68c0 0 0 409cfcd8 0 40f64705 0 0 3eb778d8 0*4 40e38259 3fb26b92 4081db9b 0 40d126f8 3fdb2ac0
 0 0 3f2843b0 0*3 417023df 0 3fdd3a21 0 40984abf 0 41393e12 0 4118fc39 0 4019b30a 0 406703f8 0 3f51c3c0 0 40cdbfdf 0 0
 4138ca4f 0*4 409d5d7e 4091306e 0*4 40a35e5c 4112679c 0*4 4118e4b3 0 0 415cf326 3f35fd52 0*4 41035a17 0 0 418484a1
 40ca7dd4 3f996ade 40622f67 0 41192bb6 0 4107550f
