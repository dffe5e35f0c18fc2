"""The notebook of python/examples runs from its first cell to its last."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
from helpers import ROOT
from nbclient import NotebookClient

NOTEBOOK = ROOT / "python" / "examples" / "loads.ipynb"

#: Less of it than a user runs: `make python` runs the whole.
LESS = "import loads\nloads.LOADS[:] = [0.2, 0.4]\nloads.SEEDS = range(1, 3)\n"


def outputs(notebook: Any) -> str:
    return json.dumps([cell.get("outputs", []) for cell in notebook.cells])


def test_the_notebook_runs_and_plots(tmp_path: Path) -> None:
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    assert outputs(notebook).count("data") == 0, "it is kept without outputs"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(LESS))  # type: ignore[no-untyped-call]
    os.environ.setdefault("IPYTHONDIR", str(tmp_path))
    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(notebook, timeout=300, resources=folder).execute()
    said = outputs(notebook)
    for name in ["NDP", "DCTCP", "Homa", "Swift"]:
        assert f"{name:6} at 40%: p99 slowdown" in said
    assert '"image/png"' in said, "the plot"
    assert "16/16" in said, "the bar"
    assert "IProgress" not in said, "nothing is asked for that is not needed"
