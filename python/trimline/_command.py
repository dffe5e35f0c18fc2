"""The command `trimline`, from Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from ._trimline import RunError, ScenarioError

#: Exit codes (docs/results.md).
_FAILED, _WRONG_INPUT = 1, 2


def program() -> list[str]:
    """The words that start the command with this interpreter."""
    # Without the working directory among the places of modules, where Python can leave it out.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "trimline"]


def run(args: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What the command prints with these arguments. What it refuses is raised."""
    words = [*program(), *args]
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode == _WRONG_INPUT:
        raise ScenarioError("\n" + ran.stderr)
    if ran.returncode != 0:
        said = ran.stderr or f"{' '.join(words)} ended with {ran.returncode}"
        raise RunError("\n" + said)
    return ran
