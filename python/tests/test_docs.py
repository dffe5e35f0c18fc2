"""Every block of Python in docs/python.md runs, and prints what the page shows.

With UPDATE_DOCS in the environment what is printed now is written into the page.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
from typing import Any

import pytest
from helpers import ROOT

PAGE = ROOT / "docs" / "python.md"
FILE = "example.py"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```output\n(.*?)```\n)?", re.DOTALL)


def test_the_page_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text, names = PAGE.read_text(), dict[str, Any](__name__="__main__")
    updated = text
    for found in BLOCK.finditer(text):
        code, shown = found.groups()
        # Errors show lines of the block, as if it were a file.
        linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, FILE, "exec"), names)
        if "UPDATE_DOCS" in os.environ and shown is not None:
            block = found.group(0)
            old = f"```output\n{shown}```"
            new = f"```output\n{printed.getvalue()}```"
            updated = updated.replace(block, block.replace(old, new))
        else:
            line = 1 + text[: found.start(1)].count("\n")
            assert printed.getvalue() == (shown or ""), f"docs/python.md, line {line}"
    if updated != text:
        PAGE.write_text(updated)
