"""The package's structs and functions beside the C headers, as a C compiler sees them."""
import ctypes
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from kiln import abi
from kiln.library import library

HEADERS = pathlib.Path(__file__).resolve().parents[2] / "include"


class Abi(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cc") and HEADERS.is_dir(), "no C compiler, or no headers beside the tests")
    def test_structs_lie_as_in_c(self):
        lines = []
        for name, struct in abi.STRUCTS.items():
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            for field, kind in struct._fields_:
                lines.append(
                    f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));'
                )
        values = {
            "KILN_MAX_RANK": abi.MAX_RANK, "KILN_HASH_SIZE": abi.HASH_SIZE, "KILN_NO_SLOT": abi.NO_SLOT,
            "KILN_E_INTERNAL": abi.INTERNAL, "KILN_E_CANCELLED": abi.CANCELLED, "KILN_E_DEVICE": abi.DEVICE, "KILN_NOTE": abi.NOTE,
            "KILN_TEXT_HLO": abi.TEXT_HLO, "KILN_KEEP_HLO": abi.KEEP_HLO,
            "KILN_TEXT_EXPLAIN_JSON": abi.TEXT_EXPLAIN_JSON, "KILN_TEXT_PTX": abi.TEXT_PTX,
            "KILN_KEEP_PLAN": abi.KEEP_PLAN, "KILN_KEEP_LLVM": abi.KEEP_LLVM, "KILN_KEEP_EXPLAIN": abi.KEEP_EXPLAIN,
            "KILN_NUMERICS_FAST": abi.FAST, "KILN_ARGUMENT_COUNT": abi.ARGUMENT_COUNT,
            "KILN_WHEN_IN_PLACE": abi.WHEN_IN_PLACE, "KILN_SIM_CHECK_ALL": abi.CHECK_ALL,
            "KILN_JOB_CANCELLED": abi.JOB_CANCELLED, "KILN_CLASS_COUNT": abi.CLASS_COUNT, "KILN_ACCESS_COUNT": abi.ACCESS_COUNT,
            "KILN_DTYPE_COUNT": len(abi.DTYPES),
        }  # fmt: skip
        lines += [f'printf("{name} %llu\\n", (unsigned long long){name});' for name in values]
        expected = []
        for name, struct in abi.STRUCTS.items():
            expected.append(f"{name} {ctypes.sizeof(struct)}")
            for field, _ in struct._fields_:
                d = getattr(struct, field)
                expected.append(f"{name}.{field} {d.offset} {d.size}")
        expected += [f"{name} {value}" for name, value in values.items()]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "abi.c"
            source.write_text(
                "#include <kiln/kiln.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
            )
            subprocess.run(["cc", f"-I{HEADERS}", "-o", f"{folder}/abi", str(source)], check=True)
            found = subprocess.run([f"{folder}/abi"], check=True, capture_output=True, text=True).stdout.split("\n")
        self.assertEqual(expected, found[:-1])

    @unittest.skipUnless(HEADERS.is_dir(), "no headers beside the tests")
    def test_functions_are_those_of_the_headers(self):
        text = "".join(p.read_text() for p in sorted((HEADERS / "kiln").glob("*.h")))
        text = re.sub(r"//[^\n]*", "", text)
        declared = dict(re.findall(r"KILN_API\s[^;(]*?(\w+)\(([^;]*?)\);", text))
        for name, (_, arguments) in abi.FUNCTIONS.items():
            with self.subTest(name):
                self.assertIn(name, declared)
                listed = [a for a in declared[name].split(",") if a.strip() != "void"]
                self.assertEqual(len(listed), len(arguments))

    def test_names_of_types(self):
        lib = library()
        for i, name in enumerate(abi.DTYPES):
            self.assertEqual(lib.kiln_dtype_name(i).decode(), name)


# Fields of XLA's structs by the names that src/jit/xla/abi.h has for them.
XLA = {
    "extension": ("Extension_Base", "struct_size type next"),
    "version": ("Api_Version", "struct_size extension:extension_start major:major_version minor:minor_version"),
    "metadata": ("Metadata", "struct_size version:api_version traits"),
    "metadata_extension": ("Metadata_Extension", "base:extension_base metadata"),
    "error_args": ("Error_Create_Args", "struct_size extension:extension_start message code:errc"),
    "message_args": ("Error_GetMessage_Args", "struct_size extension:extension_start error message"),
    "stream_args": ("Stream_Get_Args", "struct_size extension:extension_start context:ctx stream"),
    "allocate_args": (
        "DeviceMemory_Allocate_Args",
        "struct_size extension:extension_start context:ctx size alignment data",
    ),
    "free_args": ("DeviceMemory_Free_Args", "struct_size extension:extension_start context:ctx size data"),
    "api": (
        "Api",
        "struct_size extension:extension_start version:api_version internal:internal_api"
        " error_create:XLA_FFI_Error_Create error_message:XLA_FFI_Error_GetMessage stream_get:XLA_FFI_Stream_Get"
        " allocate:XLA_FFI_DeviceMemory_Allocate free:XLA_FFI_DeviceMemory_Free",
    ),
    "buffer": ("Buffer", "struct_size extension:extension_start dtype data rank dims"),
    "list": ("Args", "struct_size extension:extension_start size types items:args"),
    "scalar": ("Scalar", "dtype value"),
    "name": ("ByteSpan", "text:ptr size:len"),
    "attributes": ("Attrs", "struct_size extension:extension_start size types names items:attrs"),
    "call": (
        "CallFrame",
        "struct_size extension:extension_start api context:ctx stage arguments:args results:rets attributes:attrs",
    ),
}
CONSTANTS = {
    "XLA_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata",
    "XLA_STAGE_EXECUTE": "XLA_FFI_ExecutionStage_EXECUTE",
    "XLA_ATTRIBUTE_SCALAR": "XLA_FFI_AttrType_SCALAR",
    "XLA_TYPE_S64": "XLA_FFI_DataType_S64",
    "XLA_ARGUMENT_BUFFER": "XLA_FFI_ArgType_BUFFER",
    "XLA_ARGUMENT_BUFFER + 0": "XLA_FFI_RetType_BUFFER",
    "XLA_TRAIT_COMMAND_BUFFER": "XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE",
    "XLA_INVALID_ARGUMENT": "XLA_FFI_Error_Code_INVALID_ARGUMENT",
    "XLA_RESOURCE_EXHAUSTED": "XLA_FFI_Error_Code_RESOURCE_EXHAUSTED",
    "XLA_UNIMPLEMENTED": "XLA_FFI_Error_Code_UNIMPLEMENTED",
    "XLA_INTERNAL": "XLA_FFI_Error_Code_INTERNAL",
}


class XlaAbi(unittest.TestCase):
    """src/jit/xla beside the header that jaxlib ships."""

    def setUp(self):
        try:
            import jaxlib
        except ImportError:
            self.skipTest("jaxlib is not installed")
        self.folder = pathlib.Path(jaxlib.__file__).parent / "include"
        self.header = self.folder / "xla/ffi/api/c_api.h"
        self.sources = HEADERS.parent / "src"
        if not shutil.which("cc") or not self.header.exists() or not self.sources.is_dir():
            self.skipTest("no C compiler, or no header in jaxlib, or no sources beside the tests")

    def test_structs_and_numbers(self):
        lines = [f'_Static_assert((int){ours} == (int){theirs}, "{ours}");' for ours, theirs in CONSTANTS.items()]
        for ours, (theirs, fields) in XLA.items():
            for field in fields.split():
                mine, _, its = field.partition(":")
                a, b = f"xla_{ours}, {mine}", f"XLA_FFI_{theirs}, {its or mine}"
                lines.append(f'_Static_assert(offsetof({a}) == offsetof({b}), "{a}");')
                sizes = [f"sizeof((({x.split(', ')[0]} *)0)->{x.split(', ')[1]})" for x in (a, b)]
                if field not in ("metadata", "version:api_version"):
                    lines.append(f'_Static_assert({sizes[0]} <= {sizes[1]}, "{a}");')
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "xla.c"
            source.write_text('#include <xla/ffi/api/c_api.h>\n#include "jit/xla/abi.h"\n' + "\n".join(lines) + "\n")
            command = ["cc", "-fsyntax-only", f"-I{self.folder}", f"-I{self.sources}", str(source)]
            done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")

    def test_types(self):
        text = (self.sources / "jit/xla/call.c").read_text()
        ours = {name: int(n) for name, n in re.findall(r"\[KILN_(\w+)\] = (\d+)", text)}
        theirs = {
            name: int(n) for name, n in re.findall(r"XLA_FFI_DataType_(\w+) = (\d+)", self.header.read_text()) if int(n)
        }
        known = {name: n for name, n in ours.items() if name in theirs}
        self.assertEqual(known, {name: theirs[name] for name in known})
        self.assertLessEqual(set(theirs), set(ours))
        # Types that older versions of the header lack.
        self.assertLessEqual(set(ours) - set(theirs), {"S1", "U1", "S2", "U2", "F4E2M1FN", "F8E8M0FNU"})
