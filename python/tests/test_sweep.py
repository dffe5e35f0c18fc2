"""Sweeps from Python: local, as an array, on Ray with a worker that is killed."""

from __future__ import annotations

import importlib.util
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import command, small

import trimline

#: A batch system in a few lines: the elements of an array, the last one first.
SBATCH = """#!/bin/sh
echo "Submitted batch job 7"
last=$(sed -n 's/^#SBATCH --array=0-//p' "$2")
while [ "$last" -ge 0 ]; do
    SLURM_ARRAY_TASK_ID=$last sh "$2" || exit 1
    last=$((last - 1))
done
"""


def swept(**changes: Any) -> dict[str, Any]:
    """Two points with three seeds."""
    sweep = {
        "axes": {"n": [1, 2]},
        "x": "n",
        "set": ["traffic.senders={n}"],
        "seeds": "1-3",
        "metrics": ["last_completion_us", "packets.trimmed"],
        **changes,
    }
    tables = small()
    tables["traffic"] = tables["traffic"][0]
    return {**tables, "sweep": sweep}


def long() -> dict[str, Any]:
    """Jobs of about a second."""
    tables = swept()
    tables["traffic"]["size"] = "400MB"
    return tables


def finished(out: Path) -> dict[str, int]:
    """The directories of finished jobs, and when each was finished."""
    return {file.parent.name: file.stat().st_mtime_ns for file in out.glob("jobs/*/summary.json")}


def test_a_sweep_is_that_of_the_command(tmp_path: Path) -> None:
    ours = trimline.sweep(trimline.Scenario(swept()), tmp_path / "ours", threads=2)
    file = tmp_path / "ours" / "scenario.toml"
    theirs = tmp_path / "theirs"
    assert command("sweep", str(file), "--out", str(theirs)).returncode == 0
    assert ours.points.equals(trimline.Sweep(theirs, "").points)
    assert ours.runs.equals(trimline.Sweep(theirs, "").runs)
    rows = ours.points.to_pylist()
    assert [(row["x"], row["metric"]) for row in rows] == [
        (n, metric) for metric in ("last_completion_us", "packets.trimmed") for n in (1.0, 2.0)
    ]
    times = ours.runs.to_pandas().groupby("axis.n")["last_completion_us"].mean()
    assert times.tolist() == pytest.approx([row["mean"] for row in rows[:2]])
    assert "6 run now" in ours.said and repr(ours).startswith("<Sweep of 'small', 6 runs")
    before = finished(tmp_path / "ours")
    again = trimline.sweep(trimline.Scenario(swept()), tmp_path / "ours", progress=True)
    assert "6 finished before, 0 run now" in again.said
    assert finished(tmp_path / "ours") == before
    one = trimline.sweep(file, tmp_path / "one", seeds=[5], set={"traffic.size": "9KB"})
    assert one.points.column("interval").null_count == 4
    assert one.runs.column("seed").to_pylist() == [5, 5]


def test_an_array_has_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    until = swept(until="1%", seeds="1-12", metrics=["last_completion_us"])
    scenario = trimline.Scenario(until)
    local = trimline.sweep(scenario, tmp_path / "local")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    (tmp_path / "bin").mkdir()
    with pytest.raises(trimline.RunError, match="there is no sbatch here"):
        trimline.sweep(scenario, tmp_path / "array", engine="slurm")
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.write_text(SBATCH)
    sbatch.chmod(sbatch.stat().st_mode | stat.S_IXUSR)
    array = trimline.sweep(scenario, tmp_path / "array", engine="slurm")
    assert array.points.equals(local.points) and array.runs.equals(local.runs)
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: no such partition' >&2; exit 1\n")
    with pytest.raises(trimline.RunError, match="no such partition"):
        trimline.sweep(scenario, tmp_path / "refused", engine="slurm")


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**swept(), "queue": {"kind": "fifo"}}
    with pytest.raises(trimline.ScenarioError) as raised:
        trimline.sweep(trimline.Scenario(wrong), tmp_path / "wrong")
    assert raised.value.file == __file__, "the line in Python"
    assert not (tmp_path / "wrong").exists()
    with pytest.raises(trimline.ScenarioError, match="metrik") as raised:
        trimline.sweep(trimline.Scenario(swept(metrik=[])), tmp_path / "key")
    assert raised.value.file == __file__, "the line in Python"
    with pytest.raises(trimline.ScenarioError, match="sizze") as raised:
        edit = ["traffic.sizze={n}KB"]
        trimline.sweep(trimline.Scenario(swept(set=edit)), tmp_path / "edit")
    assert raised.value.file == __file__, "the line in Python"
    engine: Any = "pbs"
    with pytest.raises(ValueError, match="'local', 'slurm' or 'ray', not 'pbs'"):
        trimline.sweep(trimline.Scenario(swept()), tmp_path / "engine", engine=engine)
    custom = trimline.Scenario(swept(), transport=trimline.Endpoint)
    with pytest.raises(ValueError, match="run_many runs such scenarios"):
        trimline.sweep(custom, tmp_path / "custom")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'trimline\[ray\]'"):
        trimline.sweep(trimline.Scenario(swept()), tmp_path / "ray", engine="ray")


needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="no Ray in target/python: make ray-setup"
)


def worker_of(out: Path) -> int:
    """The process of Ray that runs a job of `out`; 0 if none does."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # it has just ended
            continue
        if b"--worker" in words and str(out).encode() in words:
            return parent
    return 0


def kill_one(out: Path, is_time: Callable[[], bool], killed: list[dict[str, int]]) -> None:
    """Kill a worker of Ray when it is time, and note what was finished then."""
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        worker = worker_of(out) if is_time() else 0
        if worker:
            os.kill(worker, signal.SIGKILL)
            killed.append(finished(out))
        time.sleep(0.02)


@needs_ray
def test_on_ray_a_worker_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    scenario = trimline.Scenario(long())
    local = trimline.sweep(scenario, tmp_path / "local")
    out = tmp_path / "ray"
    killed: list[dict[str, int]] = []
    killing = threading.Thread(
        target=kill_one, args=(out, lambda: len(finished(out)) >= 2, killed)
    )
    killing.start()
    on_ray = trimline.sweep(scenario, out, engine="ray", threads=2)
    killing.join()
    assert killed and 2 <= len(killed[0]) < 6, "a worker was killed in the midst"
    assert on_ray.points.equals(local.points) and on_ray.runs.equals(local.runs)
    after = finished(out)
    assert len(after) == 6
    assert all(after[job] == at for job, at in killed[0].items()), "no finished job is run again"


@needs_ray
def test_on_ray_a_job_that_fails_is_named(tmp_path: Path) -> None:
    broken = trimline.Scenario(swept())
    out = tmp_path / "out"
    (out / "jobs").mkdir(parents=True)
    listed = command("sweep", str(written(broken, tmp_path)), "--out", str(out), "--list-jobs")
    # A file where the directory of a job should be.
    place = Path(listed.stdout.splitlines()[0].split()[2])
    place.write_text("in the way")
    with pytest.raises(trimline.RunError) as raised:
        trimline.sweep(tmp_path / "broken.toml", out, engine="ray", threads=1)
    assert "1 of 6 jobs have no results" in str(raised.value)
    assert "broken sweep n=1, seed 1: " in str(raised.value)
    kept = trimline.sweep(tmp_path / "broken.toml", out, keep_errors=True)
    assert kept.runs.column("error").null_count == 5
    place.unlink()
    whole = trimline.sweep(tmp_path / "broken.toml", out)
    assert "5 finished before, 1 run now" in whole.said


def written(scenario: trimline.Scenario, dir: Path) -> Path:
    """The scenario as a file."""
    file = dir / "broken.toml"
    file.write_text(scenario.to_toml())
    return file
