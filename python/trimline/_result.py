"""Results of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    import pyarrow


class Result:
    """What a run has left: a summary, and tables of Arrow.

    `result.flows.to_pandas()` is a frame of pandas, `polars.from_arrow(result.flows)` one of
    polars. `docs/results.md` explains every key and column.
    """

    def __init__(self, dir: Path, *, out: Optional[Path]) -> None:
        """The results in `dir`. They stay there if it is `out`, else they are read now."""
        #: The directory with the result files, if one was asked for.
        self.out = out
        #: `summary.json`.
        self.summary: dict[str, Any] = json.loads((dir / "summary.json").read_text())
        #: `manifest.json`: what was run, and how to run it again.
        self.manifest: dict[str, Any] = json.loads((dir / "manifest.json").read_text())
        self._files: dict[str, bytes] = {}
        self._tables: dict[str, pyarrow.Table] = {}
        if out is None:
            self._files = {file.name: file.read_bytes() for file in dir.glob("*.parquet")}

    @property
    def digest(self) -> str:
        """The fingerprint of the run: equal for equal scenario, seed and engine."""
        return str(self.summary["digest"])

    @property
    def warnings(self) -> list[str]:
        """What a reader should know before trusting the numbers."""
        return list(self.summary["warnings"])

    @property
    def flows(self) -> pyarrow.Table:
        """A row per message."""
        return self.table("flows")

    @property
    def links(self) -> pyarrow.Table:
        """A row per link and direction."""
        return self.table("links")

    @property
    def series(self) -> pyarrow.Table:
        """Rows over time."""
        return self.table("series")

    @property
    def jobs(self) -> Optional[pyarrow.Table]:
        """A row per job; `None` if the traffic has none."""
        return self.table("jobs") if self._has("jobs") else None

    def table(self, name: str) -> pyarrow.Table:
        """The table of the result file `name.parquet`."""
        import pyarrow
        import pyarrow.parquet

        if name not in self._tables:
            if not self._has(name):
                raise KeyError(f"this run has no {name}.parquet")
            if self.out is None:
                source: Any = pyarrow.BufferReader(self._files[f"{name}.parquet"])
            else:
                source = self.out / f"{name}.parquet"
            self._tables[name] = pyarrow.parquet.read_table(source)
        return self._tables[name]

    def _has(self, name: str) -> bool:
        file = f"{name}.parquet"
        return file in self._files or (self.out is not None and (self.out / file).exists())

    def __repr__(self) -> str:
        name, seed = self.summary["scenario"], self.summary["seed"]
        return f"<Result of {name!r}, seed {seed}, digest {self.digest}>"
