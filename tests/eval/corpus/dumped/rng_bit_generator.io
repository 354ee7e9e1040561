# JAX 0.10.2 on CPU. 0 roundings in float32.
in u32[4] = 1..4
in u32[4] = 5..8
out exact = 1 2 7 4
out exact = 1e8fe864 4d5e0bd7 4b87c9be 2d689201 5273487b 61c05696 a4486574 806fd7ef 9a2c32b7 cf31be40 6b188310
 12a6eb29 2377bf5b bd872c7e d05f168f
out exact = 1 2 7 4
out exact = 4d5e0bd71e8fe864 2d6892014b87c9be 61c056965273487b 806fd7efa4486574 cf31be409a2c32b7 12a6eb296b188310
 bd872c7e2377bf5b
out exact = 5 6 c 8
out exact = d01b3b18 796dd33 91e6b463 8fa78fbc 436ff89f 4314e015 ac7efb51 1e470c56 1b3f4262
