# JAX 0.10.2 on CPU. 0 roundings in float32.
in s8[8,16] = a5 6b c c8 7f 9 4b 5 cf 40 10 1 4c c7 6d 7c 6 99 32 94 7e e5 12 54 b 7c 6a 1c 1d e b2 c4 57 57 69 71 77
 5e e0 d6 d 69 9 87 bf bd 96 b9 81 0 bc 51 88 58 d f3 2f 6a f9 48 9e c7 3 46 15 b1 b9 83 44 98 71 ab cc 9a b4 d0 ed f3
 a9 52 8f c0 44 99 ef 62 57 7 9a 19 e8 96 89 43 67 fe 97 fd e4 1b 25 b9 d3 26 8 a0 22 8a 97 f 6f d7 99 47 73 dc ca 3e
 ae 20 58 17 37 c1 f1 cd 83 0
in s8[16,12] = 28 8f 6d c8 96 ab 52 cb e8 87 22 31 df cb 55 af bf 9f 5a 14 fc f4 a5 27 43 e6 84 2a eb b3 e7 a6 6a a1
 ba fc 7f c3 c5 d8 44 ae 46 df 53 f9 9f 42 d0 b4 6e 4c b2 4 5a bf 4f b1 a7 7f 2e 8 32 6d 7a 8f 69 6d 8 77 11 16 78 7a
 f5 c9 39 e9 ee 7c 5a 3e d3 e0 ab a0 9a 72 8 cc 7e a a8 a2 bc 9 76 65 c6 d6 46 93 b8 52 1 c4 28 d1 bd 46 79 fd 65 e1
 12 54 5a d7 16 ab b4 65 4a 48 5a 63 5b 60 90 75 b7 fb 15 ab 5d 50 28 c6 4a 25 bb 91 f 1e 4d 9a a7 6b bf 6f 14 73 16
 3b 31 e4 7a 7f 9b 80 be 28 3a 75 dc a4 bf cb ee b2 49 7 31 79 d2 1 4f 5b 6e 60 67 b1 a8 ec ae 3b c9 6b ce 5e ee df
in s8[2,5,4,4] = 1 fa ff f7 1 2 0 1 fd f7 3 fe 5 8 f9 f9 f8 fc ff 5 f8 1 fe 2 f8 6 7 fc 8 5 f7 f7 0 fc fe fc 5 f8 8 f8
 1 2 fb fa 7 7 f7 7 2 f7 4 fc 7 f8 8 f9 fb ff 3 7 1 7 fb 8 8 ff fe f7 7 0 f8 6 2 1 7 7 3 fb 3 3 7 f9 fe f8 fa 4 f8 f9
 fa 8 2 fe f8 2 f7 7 2 ff ff 5 3 fb 0 fc 0 1 8 0 f7 4 3 fe fb 1 ff 3 8 f7 fe f7 f8 6 2 0 8 fe 4 fb 0 4 4 f7 6 fb 1 fd
 3 6 5 1 2 fa 8 ff f9 2 fb f7 4 fe f8 f9 f9 5 1 fe 3 2 fe 8
in s8[3,3,4,8] = 5 fc f8 ff ff 0 fe 4 ff fb 3 fd 1 fa f7 0 fd fd f9 5 ff 8 f9 f7 ff 1 4 f8 f7 4 fa 6 f9 8 7 8 0 7 3 fa
 2 fd fe 4 1 fe 0 7 6 fb 2 ff fc ff fe f7 fb 2 ff fb ff 8 5 0 fb fa fb fe fd ff f7 fa 2 3 1 8 f8 2 6 4 f7 1 ff fe fd 6
 ff f7 f8 5 1 8 fa f8 fa 1 7 fe 1 fe 0 6 0 fa 1 f9 fd fe 0 2 f7 fc f7 fc fe fc 0 1 fb f9 7 fa 3 7 3 3 ff fd 6 fe 4 8
 fb ff fa 3 f7 5 fd 8 7 fa 8 6 6 fa f9 3 3 f9 6 0 5 fc 0 6 ff 3 2 f9 f8 7 3 ff fc 5 1 4 0 8 fc fb 6 fc 8 7 fc f9 f7 fc
 ff fc fe ff 1 0 7 fe 6 7 fe fe 2 8 fa 7 fe 3 fc f8 fc 3 fa 6 7 0 5 8 fe 6 5 fa fe f9 fe ff 2 0 5 8 f9 0 7 fc ff f8 f9
 fa 7 fd 4 f7 fc 1 0 3 f8 f8 0 1 ff 8 6 0 f8 f7 2 7 7 6 3 0 7 0 1 f8 fc 3 4 fc 3 1 fa 2 2 4 fa fd 1 1 fb f9 ff fc fe
 fd 3 f9 ff f9 fd 8 7 f7 fe 7 4 7
out exact = ffffd091 ffff9cb3 55da 5a14 ffffe347 757a 891 6e1a 60cc 92c9 ffffe23a 36c4 ffff79fa 569a 3f5c 9ec9 2124
 1ed0 5857 259e ffffec1d ffff823c ffffce13 ffffcc28 ffffe4c3 fffffe8a 7d2b fffff2df 1cdc ffff05ac 7f0f ffff7891 a414
 ffffa574 ffff702b 41d0 187c 6639 1b61 fffff6f6 f1dc ffffa7b7 ffffcf1d 824c fffff8b9 832a 2284 ffffb2f5 1f2d 2e3e
 ffffdebb ffffa130 ffff44c9 79ec ffff6353 ffffd251 ffffef7a 1adf 1c4d ffffe166 ffffcd82 a9eb ffffd939 fffff5a0 5bd8
 53c7 ffffad20 182a 5c57 8e90 ee5 ffffdedd ffff98f2 3417 ffffca91 ffffcdcd ec4 6ff3 ffffbe38 ffff85ac 1b5 412a
 ffffdfd9 4d43 ffffd037 60f1 ffff8da1 3fae 4607 ffff86a1 fffff2cc 971 ffffd698 101f ffffb4cd ffff9f03
out exact = 5c 77 4c c7 d7 69 d9 48 1f a3 a 43 80 91 d a3 13 72 4a 4 80 bb e3 7f 80 ec cb a8 6c 88 47 7f 3e 80 f3 1e
 69 a6 c3 80 d4 b1 80 c3 7f 80 7f f5 c5 7f b8 80 e5 e0 1e 7f 80 39 80 7e 7f 27 9a 4 d4 80 c8 95 b8 96 be 4b 6b 6c 59
 80 80 e9 7f 7f 5c 7f 7f 80 e5 35 9f 79 90 7a 7f 7f 32 d7 ed 9e 80 80 91 80 9c 7f 80 9f 7f b7 be 80 7f 32 db 80 22 7f
 b1 7f 2b c 7f 9b 82 7f 6c 7f 7f f9 7f 4 b7 36 7f 80 c 7f 80 80 de 7f 59 7f 9d 7f e1 80 7f 80 80 7f ba 53 55 a8 fa a5
 1f fa be 7f b4 d3 7f 3 3d 2 9 c7 bc 8 92 7f a1 80 59 b4 7f 7 27 7f e5 c 49 80 69 2e 80 7f 5e dd 80 e0 9d 39 7f 9 7f
 7f ef 16 c 27 7f 80 80 1d 61 f7 7f 72 7f 2c e9 70 34 80 f9 7f 80*4 7f 80 6f 7f 80 c4 c ef 80 11 e3 1e fa fb b5 80 3b
 e6 80 db ad 7f b9 ea ac 80 7f c5 34 a8 80 13 d8 80 80 5f 8e 80 80 ba fe 1b 80 7f 85 c8 a2 86 30 48 ed c 15 a0 80 4 e1
 29 b 60 2a 80 57 eb 71 e6 9a 80 a6 2b e b2 f c8 a4 2 80 7f e8 3d dc ba c2 cb ab 7b c5 bd 7f 6a 7f db ed a3 fc 35 bb 4
 80 80
