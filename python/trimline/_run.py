"""Runs."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Optional, Union, overload

from . import _places, _trimline
from ._result import Result
from ._scenario import Scenario

#: What can be run: a scenario, its tables, or the path of one.
Runnable = Union[Scenario, Mapping[str, Any], str, "os.PathLike[str]"]


def run(
    scenario: Runnable,
    *,
    seed: Optional[int] = None,
    threads: Optional[int] = None,
    set: Optional[Mapping[str, Any]] = None,
    out: Union[str, os.PathLike[str], None] = None,
    trace: Union[str, Sequence[str]] = (),
    progress: bool = False,
) -> Result:
    """Run one scenario.

    `seed` and `set` change keys of this run only: `set={"transport.initial_window": 23}`.
    `threads` changes no result; without it as many are used as pay. `out` is a directory for the
    files of `trimline run`, report and traces included; `trace` names these as `--trace` does
    (`"queues"`, `"packets@host:0"`, `"flows@3:0"`). `progress` shows a bar (with tqdm).

    Other Python threads go on meanwhile. Ctrl-C stops the run; partial results, which say so, are
    then in `out`, if that is given. Raises `ScenarioError` for a
    wrong scenario and `RunError` for a failed run. What a transport in Python raises is raised.
    """
    edits = dict(set or {})
    if seed is not None:
        edits["seed"] = seed
    place = _places.of_call("run")
    ready = edited(scenario, edits, place)
    with Bar(progress, 1) as bar:
        traces = [trace] if isinstance(trace, str) else trace
        job = _Job(ready, place, threads, traces, _trimline.Stop(), bar.share)
        return job.run(out)


@overload
def run_many(
    scenarios: Iterable[Runnable],
    *,
    threads: Optional[int] = None,
    progress: bool = False,
    keep_errors: Literal[False] = False,
) -> list[Result]: ...


@overload
def run_many(
    scenarios: Iterable[Runnable],
    *,
    threads: Optional[int] = None,
    progress: bool = False,
    keep_errors: Literal[True],
) -> list[Union[Result, Exception]]: ...


def run_many(
    scenarios: Iterable[Runnable],
    *,
    threads: Optional[int] = None,
    progress: bool = False,
    keep_errors: bool = False,
) -> Sequence[Union[Result, Exception]]:
    """Run many scenarios, `threads` at a time, each in one thread. Results in the same order.

    Without `threads` every processor core has a run. The first error stops all runs and is raised;
    with `keep_errors` it stands in the place of its result, and the others go on.
    """
    place = _places.of_call("run_many")
    given = list(scenarios)
    stop = _trimline.Stop()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = threads if threads is not None else cores or 1
    results: list[Union[Result, Exception, None]] = [None] * len(given)
    ready: dict[int, Scenario] = {}
    for n, scenario in enumerate(given):
        try:
            ready[n] = edited(scenario, {}, place)
        except Exception as wrong:
            if not keep_errors:
                raise
            results[n] = wrong
    with Bar(progress, len(ready)) as bar, ThreadPoolExecutor(workers) as pool:
        running: dict[Future[Result], int] = {}
        try:
            for n, checked in ready.items():
                job = _Job(checked, place, 1, (), stop, None)
                running[pool.submit(job.run, None)] = n
            for done in _as_completed(running):
                error = done.exception()
                if error is None:
                    results[running[done]] = done.result()
                elif keep_errors and isinstance(error, Exception):
                    results[running[done]] = error
                else:
                    raise error
                bar.step()
        except BaseException:
            # Ctrl-C included: runs that have begun end at once, others do not begin.
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [result for result in results if result is not None]


def _as_completed(running: Iterable[Future[Result]]) -> Iterator[Future[Result]]:
    """Each when it is done. Ctrl-C is heard meanwhile: a signal that another thread has received
    does not end a wait without a timeout."""
    left = set(running)
    while left:
        done, left = wait(left, timeout=0.1, return_when=FIRST_COMPLETED)
        yield from done


def edited(scenario: Runnable, edits: Mapping[str, Any], place: _places.Place) -> Scenario:
    """A copy of `scenario` with `edits`."""
    if isinstance(scenario, Scenario):
        ready = scenario.copy()
    elif isinstance(scenario, Mapping):
        ready = Scenario._built(scenario, place)
    else:
        ready = Scenario.load(scenario)
    for path, value in edits.items():
        ready._document.put(path, value, place)
    return ready


@dataclass
class _Job:
    """A run to be done."""

    scenario: Scenario
    place: _places.Place
    threads: Optional[int]
    trace: Sequence[str]
    stop: _trimline.Stop
    progress: Optional[Callable[[float], None]]

    def run(self, out: Union[str, os.PathLike[str], None]) -> Result:
        if out is not None:
            self.run_into(Path(out), is_kept=True)
            return Result(Path(out), out=Path(out))
        with tempfile.TemporaryDirectory(prefix="trimline-") as dir:
            self.run_into(Path(dir), is_kept=False)
            return Result(Path(dir), out=None)

    def run_into(self, dir: Path, *, is_kept: bool) -> None:
        transport = self.scenario._native()
        # A manifest repeats a run if it is there and Python is not needed.
        is_repeatable = is_kept and transport is None
        call = f"{self.place.name}, line {self.place.line}"
        _trimline.run(
            self.scenario._document,
            dir,
            is_kept=is_kept,
            again=None if is_repeatable else call,
            threads=self.threads,
            traces=list(self.trace),
            stop=self.stop,
            transport=transport,
            progress=self.progress,
        )


class Bar:
    """A bar of tqdm, or none."""

    def __init__(self, shown: bool, steps: int, unit: str = "run") -> None:
        self._bar: Any = None
        if shown:
            try:
                with warnings.catch_warnings():
                    # Without ipywidgets the bar in a notebook is text: no reason to warn.
                    warnings.simplefilter("ignore")
                    from tqdm.auto import tqdm
            except ImportError as missing:
                raise ImportError(
                    "progress=True needs tqdm: pip install 'trimline[progress]'"
                ) from missing
            self._bar = tqdm(total=steps, unit=unit)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    @property
    def share(self) -> Optional[Callable[[float], None]]:
        """To be called with the share of one run that is done."""
        if self._bar is None:
            return None

        return lambda share: self.show(round(share, 3))

    def show(self, done: float) -> None:
        """So many steps are done."""
        if self._bar is not None:
            self._bar.n = done
            self._bar.refresh()

    def step(self) -> None:
        """One more run is done."""
        if self._bar is not None:
            self._bar.update()
