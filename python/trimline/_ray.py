"""Jobs as tasks of Ray."""

from __future__ import annotations

import importlib
import os
import subprocess
from typing import Any, Optional

#: How often a task is run again whose worker or process was killed.
_RETRIES = 3


class Killed(Exception):
    """The process of a job was killed, by the system or by someone."""


def run(jobs: list[dict[str, Any]], at_once: Optional[int]) -> list[str]:
    """Run these jobs, as `--list-jobs --json` has them. Of each that failed: which, and why.

    `at_once` is of a cluster that is begun here.
    """
    try:
        # Named at run time: type checkers do not have it.
        ray: Any = importlib.import_module("ray")
    except ImportError as missing:
        raise ImportError("engine='ray' needs Ray: pip install 'trimline[ray]'") from missing
    is_ours = not ray.is_initialized()
    if is_ours:
        # A cluster that is begun here says nothing to anyone, unless that is asked for.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        cores = {} if at_once is None else {"num_cpus": at_once}
        quiet = dict(include_dashboard=False, log_to_driver=False, logging_level="error")
        ray.init(**quiet, **cores)
    try:
        return _finish(ray, jobs)
    finally:
        if is_ours:
            ray.shutdown()


def _finish(ray: Any, jobs: list[dict[str, Any]]) -> list[str]:
    task = ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=[Killed])(run_job)
    here = os.getcwd()
    labels = {
        task.options(name=job["label"]).remote(job["command"], here): job["label"] for job in jobs
    }
    left, failed = list(labels), []
    try:
        while left:
            # With a timeout, so that Ctrl-C is heard.
            done, left = ray.wait(left, timeout=1.0)
            for ref in done:
                try:
                    why = ray.get(ref)
                except ray.exceptions.RayError as error:
                    why = str(error).strip().splitlines()[-1]
                failed += [f"{labels[ref]}: {why}"] if why else []
    except BaseException:
        for ref in left:
            ray.cancel(ref, force=True)
        raise
    return failed


def run_job(command: list[str], folder: str) -> str:
    """Run one job on this node. Why it failed; empty if it did not."""
    # As a worker: it ends with this process, so that a retry does not wait for it.
    process = subprocess.Popen(
        [*command, "--worker", "1"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        # It ends when its input does.
        code = process.wait()
    if code == 0:
        return ""
    if code < 0:
        raise Killed(f"its process was killed (signal {-code}): out of memory?")
    said = [line.removeprefix("failed ") for line in lines if line.startswith("failed ")]
    return said[0] if said else " ".join(lines[-2:]) or f"its process ended with {code}"
