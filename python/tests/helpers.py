"""What several tests use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import trimline

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "scenarios" / "first.toml"


def small() -> dict[str, Any]:
    """Three hosts, two of which send to the third."""
    return {
        "name": "small",
        "seed": 1,
        "topology": {"kind": "star", "hosts": 3, "link_rate": "10Gbps", "link_delay": "1us"},
        "queue": {"kind": "ndp", "capacity": "8 packets"},
        "routing": {"mode": "permute"},
        "transport": dict(kind="ndp", preset="paper", payload="9000B", initial_window=12),
        "traffic": [{"kind": "incast", "receiver": 0, "senders": 2, "size": "90KB"}],
    }


def slow() -> trimline.Scenario:
    """A run that takes minutes."""
    scenario = trimline.Scenario.load(FIRST)
    return scenario.set("measure.to", "10s").set("measure.limit", "20s")


def command(*args: str) -> subprocess.CompletedProcess[str]:
    """What the command prints."""
    words = [sys.executable, "-m", "trimline", *args]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
