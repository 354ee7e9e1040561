# JAX 0.10.2 on CPU. 0 roundings in float32.
in u32[9] = 6ac1f425 ff4780eb b8672f8c eebc1448 77eff 20ccc389 4d65aacb ffc11e85 2591cb4f
in u32[9] = 3c7053c0 17a38090 65865081 2faebfcc 634e1e47 5876aaed ab7479fc 65928d86 ef7f7d19
in s32[9] = 92 fffffcc6 fffffdcf fffffedd 399 fffffd80 26f fffffde0 ffffff4a
out exact = b87f2619 df8b6be0 d1e708c1 ae722d35 a01e8dc5 e81b96ad be0efe17 9bd9d238 aa20a566
out exact = f 13 11 f 11 c 11 12 10
out exact = 2 3 1 2 1 1 0 1 0
out exact = 6ac1f425 80eb0000 70ce5f18 c1448000 3bf7f80 98712000 b0000000 f047a140 9e000000
out exact = 12 ffffff98 ffffffb9 ffffffdb 73 ffffffb0 4d ffffffbc ffffffe9
out exact = 30 fffffeec ffffff45 ffffff9f 133 ffffff2a cf ffffff4a ffffffc3
out exact = 1 4*3 1 0 3 1 3
out exact = 6ac1f425 ff4780eb b8672f8c eebc1448 77eff 20ccc389 4d65aacb ffc11e85 2591cb4f
out exact = 92 0*3 c6 fc ff ff cf fd ff ff dd fe ff ff 99 3 0 0 80 fd ff ff 6f 2 0 0 e0 fd ff ff 4a ff*3
out exact = 49 fffffe63 fffffee7 ffffff6e 1cc fffffec0 137 fffffef0 ffffffa5
out exact = ffffff6d 339 230 122 fffffc66 27f fffffd90 21f b5
out exact = 7ef1f7e5 ffe780fb fde77f8d efbebfcc 634f7eff 78feebed ef75fbff ffd39f87 efffff5f
