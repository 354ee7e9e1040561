# JAX 0.10.2 on CPU. 30 roundings in float32.
in f8e4m3fn[16,32] = 3d b2 b0 b9 36 c1 3e b4 2a a8 3c c0 aa ac 39 b9 a3 b6 13 31 b9 39 36 30 36 b3 a0 b7 a9 30 b3 ad
 b3 b6 b3 86 b9 27 3d 34 a4 b6 b4 3e 15 b2 24 40 1f 32 2a ab b9 ab a5 31 35 37 29 36 b4 3a 30 aa 30 9a 39 3c 41 bb bc
 b0 22 36 2a c0 aa 35 27 34 a6 a5 24 2d 25 1f b3 2c 20 39 3a 24 ac b2 2e 1a ab 13 b2 33 ae 3a 2d 31 b9 23 34 b7 a9 10
 bb 2a 36 b6 2b ba 92 bd 39 2d 8d b4 3a 40 bf 3a 3d 2b ba 36 a4 b2 ba 31 35 b2 30 b9 35 14 a4 9d 36 34 30 21 1a 32 27
 33 aa c2 38 41 2e 9d a1 9f 9 b9 b0 b8 28 a9 30 a3 38 26 41 bf b2 36 42 a8 13 a6 3b a9 33 aa ba 2a 30 3a 9e b2 31 27
 29 99 39 2c 3f 39 33 bd 32 2d 35 38 ad 35 b1 40 bb be bd b6 b9 40 aa bb 39 b1 ba 36 32 ae 3b 20 3d 30 3c 1e ba 42 b1
 a5 b3 a5 28 25 33 3e 9f ba b9 b3 bd 35 b0 aa 81 bb b6 33 32 ae 3e ba ab a7 c3 40 2c b8 40 31 2e b2 1e bc 35 ac 21 3a
 29 28 29 b4 35 3c 34 36 b6 b6 bc 3a a8 3b b5 ae 1c 37 18 26 8 23 b9 1a a4 97 30 b3 9b aa 2d 35 b7 31 40 bc b5 b6 a9
 3d 7 b3 32 b2 39 2a 3b b3 44 35 32 95 b4 b6 a1 b5 29 b5 32 37 b3 3a a7 39 2e 39 b8 9e 3c b2 c0 c0 c2 c0 ad 3a ae 2a
 9e 4 a3 a3 2f b9 38 37 a4 35 b3 b1 22 a4 ae b3 b1 37 c0 2b a7 34 30 c3 31 2a b af 36 ad 3f 31 41 b5 be 33 36 11 bc ae
 32 a4 9f a3 b7 b1 bb 3e af 2f b8 35 bf 37 91 40 ba 1a 2c 3a ae 1b c1 b5 2e 39 a9 40 3e 98 c2 be b4 39 2a c0 a7 3d ac
 b4 40 16 af 2b 9 ae 3a 39 35 9d 39 95 2f 38 35 3e 2e bd b9 3b ab 2c b6 38 ac 3c b1 39 33 b4 39 b6 b5 34 b2 b2 ab b8
 38 32 99 9e 2e 3e 36 b0 34 9f a5 3f ad af c0 bb 2e b3 30 b9 b4 33 3c 31 3a 3e 38 b7 9d 32 ad 2e bd b5 30 c1 b9 89 be
 17 b5 a9 a8 24 b1 1b b2 31 3e 25
in f8e4m3fn[32,16] = ad 96 c1 3d be b5 30 ba b8 b7 31 41 13 b9 31 b2 8a 39 b4 5 b6 a2 28 b8 ab a7 b2 ba bb a2 a9 41 c2
 1e 2c 3b 30 b6 0 31 aa 34 bf 3e 3c ab 32 14 b5 1b 38 ac ac 9a 2e 3a b2 30 26 bf ad a0 92 2a c0 14 b3 bc 30 34 b2 35
 ac 19 b9 3d c3 9c 33 c0 a4 9a 35 3a ad bb 3b 3a af 2b 2c 31 25 3b be 38 2c a6 39 c1 39 2c b9 2e aa 42 3f 2e b4 b1 aa
 b1 b6 b1 a9 b0 b3 b7 42 bc b8 2e aa 2e 35 3a 34 b8 39 be 9f b0 b8 31 a4 38 bc 36 30 20 bb a8 bc c0 45 38 3e ae 33 33
 32 2 a7 c0 32 2e 39 a9 3e ae ba 37 af ba 20 34 27 30 48 35 3c c0 2c 34 ac b6 2d aa b2 39 3b 2a af 30 35 32 bc ab 2b
 32 37 34 b9 b3 ba 3e 24 31 38 ab b9 ae a1 3c 36 b9 33 34 b8 9e bf 2b aa bb b3 27 b1 2a 31 b5 aa 41 20 b6 17 bb 39 2c
 39 36 2c 38 24 b3 b8 ae c2 3f be 9a bb c0 9b aa a2 31 b2 2c 30 ab a9 31 17 22 c1 17 2c a1 2b 3f 1b 33 b6 b6 af b8 84
 b7 a3 bb bd b3 b9 b2 b2 ab 38 3b 34 ac 3c bc c0 29 81 a1 10 bd b9 3a 38 b4 3f b9 b1 29 ba b0 a3 ad 36 31 b9 b3 24 99
 b5 2e 35 b2 35 bd bd 30 b5 b8 a8 b3 2a bc ac 45 1e bf 32 31 3b 21 b2 3b 33 be 34 a7 39 ac 35 24 31 8a ad 19 32 2d 3d
 2e 32 40 18 31 b2 13 3d 2a 3c b9 bb 2a bb 43 3a ba a3 b1 2d 97 37 3c a6 b9 31 a3 39 a2 35 2b a4 ae 33 42 35 a0 33 1f
 ba 2a 3c aa b9 30 3f 37 38 41 3d 33 a5 21 9d 36 b6 3c 21 ad 35 c0 b5 b3 35 b0 3b ae 30 b3 39 a8 30 b0 b9 a7 39 b8 bc
 aa 34 b8 b1 24 ab 29 3a b 98 34 98 b7 b8 b9 3f 94 31 33 b7 32 b1 c0 a6 b9 ab 2b 41 b0 a2 2c 24 a2 b9 b7 a4 b9 b3 ba
 39 bc 3f b1 b8 b9 34 38 b6 2b a2 a8 22 34 bf c1 25 99 33 be b8 3c ba 2c b5 ad bb 39 bf ba b7 39 2a 33 89 27 30 3c 28
 bc 39 1c b9 a3 b8 40 ab c0 2a b5
in f32[] = 3f000000
in f32[] = 3fa00000
in f32[] = 3d000000
out near 241 0.685 = 6b e4 56 f4 e0 71 f0 61 71 62 78 72 f2 e6 d4 ee 50 f7 57 e1 6d 4f e6 5d 6a 6d c3 6a d1 db f0 68
 f5 62 ea e4 3a e9 e1 db df eb e4 64 ea 31 6b f3 6e 45 e8 e6 ee eb e1 69 64 64 5d e7 61 e6 de 72 e5 6a 5f e8 5b d5 ed
 d9 75 72 6e fa e8 6c f5 69 e6 fa e3 72 58 63 ec 6a f4 6b ed 75 eb e9 ee e9 5a 68 e9 e3 61 61 6d f2 df 5a f2 75 5a ee
 7a e1 7a db 60 f5 f3 72 e3 6b 72 6b 72 59 de 5f f0 7a 6b f5 e7 69 d6 70 e1 e8 6e f3 e8 7b e8 f2 e1 e9 69 62 69 f1 6c
 71 57 6a 6a ee eb 69 63 f2 77 63 6e ea 6d 6b ef e4 70 6d 6f 69 c2 73 de 78 70 6c 73 77 77 e9 e9 6b 71 70 e7 e5 68 ce
 dc e9 71 6e f1 69 d1 ee 59 f3 75 f7 4f e6 5a e2 6a 5c d6 f5 6d eb 72 5f 4f 65 71 74 e3 31 e8 77 e9 e4 fa 59 52 71 67
 f0 6c 44 ec dc db 56 60 f5 e2 63 cf 6f 63 f5 f2 69 f3 ed e8 e5 f4 78 6a 6b f1 54 b7 ea
out near 6.87e-06 6.53e-07 = 41284300
