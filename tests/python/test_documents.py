"""docs/python.md, run as it stands: its blocks one after the other, in one namespace."""
import contextlib
import io
import pathlib
import re
import unittest

import kiln
import numpy as np

try:
    import jax
except ImportError:
    jax = None

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


class Documents(unittest.TestCase):
    @unittest.skipUnless(PAGE.exists(), "docs/ is not beside the tests")
    def test_page(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 5)
        names = {}
        for i, block in enumerate(blocks):
            if jax or "jax" not in block:
                with self.subTest(block=i), contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(block, f"{PAGE.name}, block {i}", "exec"), names)
        self.assertIs(names["kiln"], kiln)
        self.assertIs(names["np"], np)
