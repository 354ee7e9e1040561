# JAX 0.10.2 on CPU. 40 roundings in float32.
in f32[2,4,4] = 3f4fea8d be9c9c11 be873644 bf095709 3edd8b5b bf934c69 3f5f55fe bec2de75 3e235918 bdff5af3 3f3b265a
 bf83d958 be2513de be44a2c6 3f111f5b bf0cc93d bdb09105 bee0bb54 3cace852 3e953361 bf0ce117 3f12864e 3ee6cea6 3e80a378
 3ee69e7f beaf08ca bd7baddf beef8e96 be0928a0 3e87c560 beb110ae be4b2347
in f32[2,4,3] = bed56149 bd66780b c008b770 3fd1f465 bfe58f4c bf577cc1 3f00bcd6 bf9f659a bf876afa bf68b4b9 3f0d2c18
 4012b389 3d2a2536 bf8f182e 3f09ffba bf189dec bc9cb78f 3f966671 bf3f7478 3c13dea5 bf60cbae be203047 3e835d34 bf7d20a0
out near 7.29e-07 7.54e-07 = bddfe4b2 bc71d300 bf0f73e0 3f699efe bf77644d bea5ec3f 3e2e0851 bebb1930 be8a7523 beb127c6
 3e6e81c8 3f6f9574 3c6992aa bec47017 3e3d715b be28a32f bd840270 3eb6fee4 be8d3bd8 3d5ebf86 be923a2c bd96c516 3db03b11
 bed38aff
out near 7.24e-07 7.54e-07 = bddfe4b2 3f75bb23 3e9d391e beb4ee9b bc71d300 bf75c1bf bef72d68 3ea3c5b6 bf0f73e0 bda71c7f
 be43cc9e 3f703217 3c6992aa be209a96 beabf94e be15c9e0 bec47017 be8d1aa1 3e082c29 3e1d6b7d 3e3d715b 3eeb1f2c be590686
 bf155da7
