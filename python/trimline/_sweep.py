"""Sweeps: a scenario at many points and with several seeds."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

from . import _command, _places, _ray
from ._run import Bar, Runnable, edited
from ._scenario import Scenario
from ._trimline import RunError

if TYPE_CHECKING:
    import pyarrow

#: What runs the jobs of a sweep.
Engine = Literal["local", "slurm", "ray"]

#: Seconds between two looks at what is finished.
_BETWEEN_LOOKS = 0.5


class Sweep:
    """What a sweep has left: means and intervals, and tables of Arrow.

    They are the same whatever has run the jobs. `docs/sweeps.md` says how they are made.
    """

    def __init__(self, out: Path, said: str) -> None:
        #: The directory with the result files.
        self.out = out
        #: `study.json`.
        self.study: dict[str, Any] = json.loads((out / "study.json").read_text())
        #: What the command said: warnings, and jobs without results.
        self.said = said

    @property
    def points(self) -> pyarrow.Table:
        """A row per point and metric: `x`, the other axes (`at`), mean, half of the 95 % interval
        (null with one seed)."""
        import pyarrow

        rows = [
            {
                "x": float(point["x"]),
                "at": curve["label"],
                "metric": figure["id"],
                "mean": float(point["y"]),
                "interval": point["interval"],
            }
            for figure in self.study["figures"]
            for curve in figure["curves"]
            for point in curve["measured"]
        ]
        # Stubs of Arrow say nothing of what types have in common.
        real: Any = pyarrow.float64()
        text: Any = pyarrow.string()
        columns = {"x": real, "at": text, "metric": text, "mean": real, "interval": real}
        return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(columns))

    @property
    def runs(self) -> pyarrow.Table:
        """A row per run: `runs.parquet`."""
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.out / "runs.parquet")

    def __repr__(self) -> str:
        runs = len(self.study["figures"][0]["runs"])
        return f"<Sweep of {self.study['title']!r}, {runs} runs, in {self.out}>"


def sweep(
    scenario: Runnable,
    out: Union[str, os.PathLike[str]],
    *,
    seeds: Union[str, Iterable[int], None] = None,
    until: Optional[str] = None,
    set: Optional[Mapping[str, Any]] = None,
    engine: Engine = "local",
    threads: Optional[int] = None,
    flows: bool = False,
    progress: bool = False,
    keep_errors: bool = False,
) -> Sweep:
    """Run a scenario along the axes of its `[sweep]`, as `trimline sweep` does.

    A `Scenario` is written to `out/scenario.toml`, so files that it reads need absolute paths.

    Jobs leave directories in `out`. Those that are finished there are not run again, so the same
    call goes on with a sweep that was interrupted. `seeds` (`"1-10"` or numbers) and `until`
    (`"5%"`) replace those of the scenario; `flows` keeps the messages of each job.

    `engine` is what runs the jobs: processes of this machine (`threads` at once), an array of
    Slurm (`sbatch --wait`), or tasks of Ray (`pip install 'trimline[ray]'`): of the cluster that
    Ray is connected to or that `RAY_ADDRESS` names, else of a local one. Nodes share `out`.

    Raises `ScenarioError` for a wrong scenario, and `RunError` if jobs have no results: it names
    them. The others stay in `out`; with `keep_errors` their table is returned all the same.
    """
    ready = edited(scenario, dict(set or {}), _places.of_call("sweep"))
    file = file_of(ready, scenario, Path(out) / "scenario.toml")
    if isinstance(scenario, Scenario):
        # Of the table, too.
        ready._document.check_sweep(file)
    words = ["sweep", str(file), "--out", os.fspath(out)]
    if isinstance(scenario, (str, os.PathLike)):
        for path, value in (set or {}).items():
            words += ["--set", f"{path}={value if isinstance(value, str) else json.dumps(value)}"]
    words += seed_words(seeds)
    if not isinstance(until, (str, type(None))):
        raise TypeError(f"until is a text such as '5%', not {until!r}")
    words += ["--until", until] if until is not None else []
    words += ["--flows"] if flows else []
    jobs = Jobs(words, threads)
    with jobs.shown(progress):
        return Sweep(Path(out), jobs.run(engine, keep_errors=keep_errors))


def seed_words(seeds: Union[str, Iterable[int], None]) -> list[str]:
    """The option for these seeds, if there are some."""
    if seeds is None:
        return []
    return ["--seeds", seeds if isinstance(seeds, str) else ",".join(map(str, seeds))]


def file_of(ready: Scenario, given: Runnable, file: Path) -> Path:
    """The file of the scenario: where it was, or `file`, which is written now."""
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    if ready._transport is not None:
        hint = "run_many runs such scenarios"
        raise ValueError(f"jobs are processes, which do not have a transport in Python: {hint}")
    # What is wrong is said with its line in Python.
    ready.check()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(ready.to_toml())
    return file


class Jobs:
    """The jobs of a sweep or a comparison, in its output directory."""

    def __init__(self, words: list[str], threads: Optional[int]) -> None:
        self.words = words
        self.threads = threads

    def listed(self) -> list[dict[str, Any]]:
        """As `--list-jobs --json` has them."""
        ran = _command.run([*self.words, "--list-jobs", "--json"])
        return list(json.loads(ran.stdout))

    def run(self, engine: Engine, *, keep_errors: bool) -> str:
        """Run what is left of them. What the command says of the results."""
        elsewhere: dict[str, Callable[[list[dict[str, Any]]], list[str]]] = {
            "slurm": self._on_slurm,
            "ray": lambda jobs: _ray.run(jobs, self.threads),
        }
        if engine == "local":
            threads = [] if self.threads is None else ["--threads", str(self.threads)]
            return self._results(threads, [], keep_errors=keep_errors)
        if engine not in elsewhere:
            raise ValueError(f"engine is 'local', 'slurm' or 'ray', not {engine!r}")
        failed: list[str] = []
        tried: set[int] = set()
        # A stop rule asks for more seeds when it has seen the first ones.
        while left := [j for j in self.listed() if j["needed"] and j["number"] not in tried]:
            failed += elsewhere[engine](left)
            tried.update(job["number"] for job in left)
        return self._results(["--collect"], failed, keep_errors=keep_errors)

    def _results(self, how: list[str], failed: list[str], *, keep_errors: bool) -> str:
        try:
            return _command.run([*self.words, *how]).stderr
        except RunError as error:
            said = "\n".join([str(error).rstrip(), *failed])
            if keep_errors:
                return said
            raise RunError(said) from None

    def _on_slurm(self, jobs: list[dict[str, Any]]) -> list[str]:
        """Submit an array for what is left, and wait until it has ended."""
        _command.run([*self.words, "--emit", "slurm"])
        script = Path(self.words[self.words.index("--out") + 1]) / "slurm" / "array.sh"
        try:
            ran = subprocess.run(["sbatch", "--wait", script], capture_output=True, text=True)
        except FileNotFoundError:
            hint = "run this where jobs are submitted, or copy what `--emit slurm` writes there"
            raise RunError(f"engine='slurm': there is no sbatch here: {hint}") from None
        # Its code is that of the elements, if there were any.
        if ran.returncode != 0 and "Submitted" not in ran.stdout:
            raise RunError(f"sbatch {script}: {ran.stderr.strip()}")
        logs = f"see {script.parent}/*.log"
        return [logs] if ran.returncode != 0 else []

    @contextlib.contextmanager
    def shown(self, progress: bool) -> Iterator[None]:
        """Show how many are finished, with a bar."""
        if not progress:
            yield
            return
        places = [Path(job["directory"]) / "summary.json" for job in self.listed()]
        ended = threading.Event()
        with Bar(True, len(places), "job") as bar:

            def look() -> None:
                while True:
                    last = ended.wait(_BETWEEN_LOOKS)
                    bar.show(sum(place.exists() for place in places))
                    if last:
                        return

            looking = threading.Thread(target=look)
            looking.start()
            try:
                yield
            finally:
                ended.set()
                looking.join()
