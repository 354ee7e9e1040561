# JAX 0.10.2 on CPU. 100 roundings in float64.
in f64[8] = 3ff9fd5190657c50 bfe393822fb7d9ad bfe0e6c872548fd2 bff12ae1255cb80c 3febb16b5735117d c002698d1ecca259
 3ffbeabfbd8fc605 bfe85bce931aaff6
in c128[3] = bfdaac2920000000 3ffc9e38e0000000 bfaccf0160000000 3fdbefc700000000 c00116ee00000000 3fb8b40ee0000000
out near 1.65e-14 2.22e-15 = 3fc92f5f45b6051d bff0f0f6fef412f8 bfeb590f88a2bbd2 c0048d95037ff419 3fd4821af39b60d7
 c01dc18a08209e3a 3fc605665db0fe0d bff7a0c9ebfe9e79
out near 4.5e-15 2.22e-15 = 3ff9fd5190657c50 3ff0339078898f7a 3fdf00b0fd7d1e44 bfe2d569cbfae0f6 3fd1b8031674610e
 c000328cbbfe1637 bfd1e966e9b199a4 bff0a84103f9be64
out near 3.13e-14 2.22e-15 = 402c39bf091b66ce
out near 7.08e-15 2.22e-15 = 3fe373c7b984fde8 3ffccba30e809e9f bfea4336b38a199a 3ffb2f113db84028
 3fe8524bf389efb4 4008c587fb82f81f
out exact = 10 fffffffffffffff9 fffffffffffffffa fffffffffffffff5 8 ffffffffffffffe8 11 fffffffffffffff8
