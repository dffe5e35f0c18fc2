"""What type checkers know of keys. Errors that are expected are marked: mypy says which are not."""

from __future__ import annotations

import pytest

import trimline
from trimline import keys


def test_a_typed_scenario_runs() -> None:
    topology: keys.TopologyStar = {
        "kind": "star",
        "hosts": 3,
        "link_rate": "10Gbps",
        "link_delay": "1us",
    }
    tables: keys.Scenario = {
        "name": "typed",
        "seed": 1,
        "topology": topology,
        "queue": {"kind": "ndp", "capacity": "8 packets"},
        "routing": {"mode": "permute"},
        "transport": {"kind": "ndp", "preset": "paper", "payload": "9000B", "initial_window": 12},
        "traffic": {"kind": "incast", "receiver": 0, "senders": 2, "size": "90KB"},
    }
    assert trimline.run(trimline.Scenario(tables)).summary["messages"]["completed"] == 2


def test_wrong_keys_and_values_are_wrong_types() -> None:
    key: keys.TransportNdp = {"initial_windw": 1}  # type: ignore[typeddict-unknown-key]
    word: keys.Routing = {"mode": "sideways"}  # type: ignore[typeddict-item]
    kind: keys.TransportNdp = {"initial_window": "12"}  # type: ignore[typeddict-item]
    wrong: list[keys.Scenario] = [{"transport": key}, {"routing": word}, {"transport": kind}]
    for tables in wrong:
        with pytest.raises(trimline.ScenarioError):
            trimline.Scenario(tables).check()
