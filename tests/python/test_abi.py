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
            "KILN_E_INTERNAL": abi.INTERNAL, "KILN_E_DEVICE": abi.DEVICE, "KILN_NOTE": abi.NOTE,
            "KILN_TEXT_EXPLAIN_JSON": abi.TEXT_EXPLAIN_JSON, "KILN_TEXT_PTX": abi.TEXT_PTX,
            "KILN_KEEP_PLAN": abi.KEEP_PLAN, "KILN_KEEP_LLVM": abi.KEEP_LLVM, "KILN_KEEP_EXPLAIN": abi.KEEP_EXPLAIN,
            "KILN_NUMERICS_FAST": abi.FAST, "KILN_ARGUMENT_COUNT": abi.ARGUMENT_COUNT,
            "KILN_WHEN_IN_PLACE": abi.WHEN_IN_PLACE, "KILN_SIM_CHECK_ALL": abi.CHECK_ALL,
            "KILN_CLASS_COUNT": abi.CLASS_COUNT, "KILN_ACCESS_COUNT": abi.ACCESS_COUNT,
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
