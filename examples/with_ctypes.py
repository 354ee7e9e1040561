"""kiln by ctypes alone, without its package: compiles a module for this machine, runs it, shows what is found wrong.

python3 with_ctypes.py [LIBRARY]        libkiln.so.0 by default; needs nothing but Python
"""
import ctypes as c
import sys

kiln = c.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libkiln.so.0")


class Diagnostic(c.Structure):  # kiln_diagnostic
    _fields_ = [("severity", c.c_int), ("status", c.c_int), ("file", c.c_char_p), ("line", c.c_uint32)]
    _fields_ += [("column", c.c_uint32), ("message", c.c_char_p), ("text", c.c_char_p)]


class CompileParams(c.Structure):  # as much of kiln_compile_params as is set; the rest is the default
    _fields_ = [("struct_size", c.c_size_t), ("target", c.c_char_p)]


def call(function, *arguments):  # what returns a status takes the context first, and leaves there what it has found
    if function(cx, *arguments) != 0:
        raise ValueError(kiln.kiln_diagnostics_get(cx, c.c_size_t(0)).contents.text.decode().rstrip())


kiln.kiln_context_create.restype, kiln.kiln_diagnostics_get.restype = c.c_void_p, c.POINTER(Diagnostic)
cx, module, artifact, kernel = c.c_void_p(kiln.kiln_context_create(None)), c.c_void_p(), c.c_void_p(), c.c_void_p()
text = b"HloModule swish  ENTRY e { x = f32[5] parameter(0)  s = f32[5] logistic(x)  ROOT y = f32[5] multiply(x, s) }"
call(kiln.kiln_module_parse, b"swish", text, c.c_size_t(len(text)), c.byref(module))
call(kiln.kiln_compile, module, c.byref(CompileParams(c.sizeof(CompileParams), b"host")), c.byref(artifact))
call(kiln.kiln_kernel_load, artifact, c.byref(kernel))
x, y = (c.c_float * 5)(-2, -1, 0, 1, 2), (c.c_float * 5)()
call(kiln.kiln_kernel_run, kernel, (c.c_void_p * 1)(c.addressof(x)), (c.c_void_p * 1)(c.addressof(y)), None)
print([round(v, 4) for v in y])
try:
    call(kiln.kiln_compile, module, c.byref(CompileParams(c.sizeof(CompileParams), b"sm_1")), c.byref(c.c_void_p()))
except ValueError as finding:
    print(finding)
for name, handle in zip(("kernel", "artifact", "module", "context"), (kernel, artifact, module, cx)):
    getattr(kiln, f"kiln_{name}_destroy")(c.byref(handle))
