"""Comparisons: which of several scenarios is better, with intervals."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _places
from ._run import Runnable, edited
from ._scenario import Scenario
from ._sweep import Engine, Jobs, file_of, seed_words

if TYPE_CHECKING:
    import pyarrow


class Comparison:
    """What a comparison has left. `docs/sweeps.md` says how it is made."""

    def __init__(self, out: Path, said: str) -> None:
        #: The directory with the result files.
        self.out = out
        #: `comparison.json`.
        self.comparison: dict[str, Any] = json.loads((out / "comparison.json").read_text())
        #: What the command said: warnings, and jobs without results.
        self.said = said

    @property
    def means(self) -> pyarrow.Table:
        """A row per metric and variant: mean, half of its 95 % interval, how many seeds."""
        import pyarrow

        return pyarrow.Table.from_pylist(
            [
                {"metric": metric["metric"], "label": label, **value}
                for metric in self.comparison["metrics"]
                for label, value in zip(self.comparison["labels"], metric["values"])
                if value is not None
            ]
        )

    @property
    def differences(self) -> pyarrow.Table:
        """A row per metric and variant but the first: what it is above the first, seed by seed.

        `order` says `lower`, `higher`, `equal`, `undecided` or `unknown`; with 95 % no `lower` or
        `higher` among them is wrong. `more_seeds` would about decide what is undecided.
        """
        import pyarrow

        rows = []
        for metric in self.comparison["metrics"]:
            for label, found in zip(self.comparison["labels"][1:], metric["differences"]):
                estimate = found["estimate"] or {}
                rows.append(
                    {
                        "metric": metric["metric"],
                        "label": label,
                        "mean": estimate.get("mean"),
                        "interval": estimate.get("interval"),
                        "joint_interval": found["joint_interval"],
                        "order": found["order"],
                        "more_seeds": found["more_seeds"],
                    }
                )
        return pyarrow.Table.from_pylist(rows)

    @property
    def runs(self) -> pyarrow.Table:
        """A row per run: `runs.parquet`."""
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.out / "runs.parquet")

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.comparison['labels'])}, in {self.out}>"


def compare(
    scenarios: Union[Runnable, Iterable[Runnable]],
    out: Union[str, os.PathLike[str]],
    *,
    seeds: Union[str, Iterable[int]] = "1-5",
    metrics: Iterable[str] = (),
    baseline: Optional[str] = None,
    engine: Engine = "local",
    threads: Optional[int] = None,
    flows: bool = False,
    progress: bool = False,
    keep_errors: bool = False,
) -> Comparison:
    """Compare scenarios, or the variants of one, as `trimline compare --seeds` does.

    A `Scenario` is written to `out`, so files that it reads need absolute paths.

    All are compared with the first, or with `baseline`. `metrics` are names or formulas of
    `docs/studies.md`, `out`, `engine` and the others those of `sweep`.
    """
    place = _places.of_call("compare")
    if isinstance(scenarios, (str, os.PathLike, Mapping, Scenario)):
        scenarios = [scenarios]
    files = [
        str(file_of(edited(scenario, {}, place), scenario, Path(out) / f"scenario-{n}.toml"))
        for n, scenario in enumerate(scenarios)
    ]
    words = ["compare", *files, "--out", os.fspath(out), *seed_words(seeds)]
    for metric in metrics:
        words += ["--metric", metric]
    words += ["--baseline", baseline] if baseline is not None else []
    words += ["--flows"] if flows else []
    jobs = Jobs(words, threads)
    with jobs.shown(progress):
        return Comparison(Path(out), jobs.run(engine, keep_errors=keep_errors))
