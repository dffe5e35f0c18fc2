"""Runs and their results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas
import polars
import pytest
from helpers import FIRST, command, slow, small

import trimline
from trimline import _trimline


def test_the_digest_is_that_of_the_command(tmp_path: Path) -> None:
    printed = command("run", str(FIRST), "--seed", "7", "--out", str(tmp_path / "command"))
    assert printed.returncode == 0, printed.stderr
    summary = json.loads((tmp_path / "command" / "summary.json").read_text())
    result = trimline.run(FIRST, seed=7)
    assert result.digest == summary["digest"]
    same = {key for key in summary if key != "wall_s"}
    assert {key: result.summary[key] for key in same} == {key: summary[key] for key in same}
    assert trimline.run(FIRST, seed=8).digest != summary["digest"]
    assert trimline.run(FIRST, seed=7, threads=2).digest == summary["digest"]


def test_results_are_tables_of_arrow() -> None:
    result = trimline.run(trimline.Scenario(small()))
    assert result.flows.num_rows == 2
    frame = result.flows.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["dst"]) == [0, 0]
    table = polars.from_arrow(result.flows)
    assert isinstance(table, polars.DataFrame)
    assert table["src"].to_list() == [1, 2]
    assert result.links.num_rows == 6
    assert result.series.num_rows > 0
    assert result.jobs is None
    with pytest.raises(KeyError, match="queues"):
        result.table("queues")


def test_files_go_where_they_are_wanted(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = trimline.run(FIRST, out=out, trace="queues")
    assert {"summary.json", "manifest.json", "flows.parquet", "report.html"} <= set(os.listdir(out))
    assert result.out == out and result.table("queues").num_rows > 0
    assert result.manifest["command"] == f"trimline run {out}/manifest.json"
    again = trimline.run(out / "manifest.json")
    assert again.digest == result.digest
    with pytest.raises(ValueError, match="flows@SRC:MSG"):
        trimline.run(FIRST, trace=["flows"])


def test_many_runs_are_those_that_they_are_alone() -> None:
    scenarios = [trimline.Scenario(small()).set("seed", seed) for seed in range(6)]
    many = trimline.run_many(scenarios, threads=3, progress=True)
    assert [r.digest for r in many] == [trimline.run(s).digest for s in scenarios]
    assert [r.summary["seed"] for r in many] == list(range(6))


def test_an_error_does_not_lose_the_others() -> None:
    good, bad = trimline.Scenario(small()), trimline.Scenario(small()).set("queue.kind", "fifo")
    kept = trimline.run_many([good, bad, good], keep_errors=True)
    assert isinstance(kept[1], trimline.ScenarioError)
    assert isinstance(kept[0], trimline.Result) and isinstance(kept[2], trimline.Result)
    with pytest.raises(trimline.ScenarioError):
        trimline.run_many([good, bad])
    [missing, whole] = trimline.run_many(["no-such-file.toml", good], keep_errors=True)
    assert isinstance(missing, trimline.ScenarioError) and isinstance(whole, trimline.Result)


def test_a_dict_is_run_as_the_scenario_of_its_tables() -> None:
    of_scenario, of_dict = trimline.run(trimline.Scenario(small())), trimline.run(small())
    assert of_dict.summary["digest"] == of_scenario.summary["digest"]
    wrong = {**small(), "queue": {"kind": "fifo"}}
    with pytest.raises(trimline.ScenarioError, match=r"test_runs\.py:\d+"):
        trimline.run(wrong)
    with pytest.raises(TypeError, match="Scenario.load"):
        trimline.Scenario("first.toml")  # type: ignore[arg-type]


def test_the_package_has_a_version() -> None:
    assert trimline.version().startswith(f"{trimline.__version__} (")


def test_other_threads_go_on_meanwhile() -> None:
    ended = threading.Event()
    counted = 0

    def count() -> None:
        nonlocal counted
        while not ended.is_set():
            counted += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    before = time.monotonic()
    trimline.run(FIRST, set={"measure.to": "6ms"}, threads=1)
    took = time.monotonic() - before
    ended.set()
    counter.join()
    assert counted > took * 100, "a run that keeps the lock would stop the counter"


@pytest.mark.parametrize("call", ["run(SLOW, threads=1)", "run_many([SLOW] * 4)"])
def test_ctrl_c_stops_it(call: str) -> None:
    folder = str(Path(__file__).parent)
    script = (
        f"import sys; sys.path.insert(0, {folder!r})\n"
        "import trimline\nfrom helpers import slow\nSLOW = slow()\n"
        "print('begun', flush=True)\n"
        f"trimline.{call}\n"
    )
    words = [sys.executable, "-c", script]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None and run.stdout.readline() == "begun\n"
    time.sleep(1.0)
    run.send_signal(signal.SIGINT)
    try:
        _, errors = run.communicate(timeout=30)
    finally:
        run.kill()
    assert "KeyboardInterrupt" in errors and run.returncode != 0


def test_ctrl_c_leaves_partial_results_where_they_were_to_be_kept(tmp_path: Path) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import trimline\nfrom helpers import slow\n"
        f"print('begun', flush=True)\ntrimline.run(slow(), threads=1, out={str(tmp_path)!r})\n"
    )
    words = [sys.executable, "-c", script]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None and run.stdout.readline() == "begun\n"
    time.sleep(1.0)
    run.send_signal(signal.SIGINT)
    try:
        _, errors = run.communicate(timeout=30)
    finally:
        run.kill()
    assert "KeyboardInterrupt" in errors and run.returncode != 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["partial"] is True and "partial results" in " ".join(summary["warnings"])


def test_what_progress_raises_stops_the_run(tmp_path: Path) -> None:
    def enough(share: float) -> None:
        assert 0 <= share <= 1
        raise LookupError(share)

    document, stop = slow()._document, _trimline.Stop()
    with pytest.raises(LookupError):
        _trimline.run(
            document,
            tmp_path / "run",
            is_kept=True,
            again=None,
            threads=1,
            traces=[],
            stop=stop,
            transport=None,
            progress=enough,
        )
    assert os.listdir(tmp_path) == [], "a run that is stopped leaves nothing"


def test_the_command_is_in_the_package() -> None:
    assert command("--version").stdout == f"trimline {trimline.version()}\n"
    wrong = command("rum")
    assert wrong.returncode == 2 and "run" in wrong.stderr
    listed = command("list", "transports")
    assert listed.returncode == 0 and "ndp" in listed.stdout
