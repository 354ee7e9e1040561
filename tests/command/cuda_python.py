#!/usr/bin/env python3
"""cuda_python.py: a kernel in PTX through cuda-python's bindings of the driver API, whatever libcuda.so.1 is. Prints what it
did; exit status 77 where the bindings are not installed.
"""
import ctypes
import struct
import sys

try:
    from cuda.bindings import driver
except ImportError:
    print("cuda-python is not installed")
    sys.exit(77)

PTX = b"""
.version 7.0
.target sm_70
.address_size 64

.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [n];
  setp.ge.u32 %p, %r4, %r5;
  @%p ret;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mul.wide.u32 %rd5, %r4, 4;
  add.u64 %rd6, %rd3, %rd5;
  add.u64 %rd7, %rd4, %rd5;
  ld.global.f32 %f1, [%rd6];
  ld.global.f32 %f2, [%rd7];
  ld.param.f32 %f3, [a];
  fma.rn.f32 %f4, %f3, %f1, %f2;
  st.global.f32 [%rd7], %f4;
  ret;
}
\0"""
COUNT = 1003


def check(answer):
    """The values of an answer whose status is that all went well."""
    status, *values = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        sys.exit(f"{driver.cuGetErrorName(status)[1].decode()}")
    return values[0] if len(values) == 1 else values


def main():
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    name = check(driver.cuDeviceGetName(64, device)).split(b"\0")[0].decode()
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    stream = check(driver.cuStreamCreate(0))
    module = check(driver.cuModuleLoadData(PTX))
    kernel = check(driver.cuModuleGetFunction(module, b"axpy"))

    x = bytearray(struct.pack(f"{COUNT}f", *(float(i) for i in range(COUNT))))
    y = bytearray(struct.pack(f"{COUNT}f", *(1.0 for _ in range(COUNT))))
    buffers = []
    for host in (x, y):
        address = check(driver.cuMemAlloc(len(host)))
        held = (ctypes.c_char * len(host)).from_buffer(host)
        check(driver.cuMemcpyHtoDAsync(address, ctypes.addressof(held), len(host), stream))
        buffers.append((address, held))
    arguments = ((int(buffers[0][0]), int(buffers[1][0]), 2.0, COUNT),
                 (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_float, ctypes.c_uint32))
    check(driver.cuLaunchKernel(kernel, (COUNT + 127) // 128, 1, 1, 128, 1, 1, 0, stream, arguments, 0))
    address, held = buffers[1]
    check(driver.cuMemcpyDtoHAsync(ctypes.addressof(held), address, len(y), stream))
    check(driver.cuStreamSynchronize(stream))
    wrong = sum(v != 2.0 * i + 1.0 for i, v in enumerate(struct.unpack(f"{COUNT}f", y)))
    print(f"{name}: {COUNT - wrong} of {COUNT} elements are right")
    for address, _ in buffers:
        check(driver.cuMemFree(address))
    check(driver.cuModuleUnload(module))
    check(driver.cuStreamDestroy(stream))
    check(driver.cuDevicePrimaryCtxRelease(device))
    sys.exit(1 if wrong else 0)


main()
