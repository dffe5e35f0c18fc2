"""Comparisons, and the life of a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import FIRST, command, small

import trimline


def two_windows() -> list[trimline.Scenario]:
    """One scenario with a window of 12, and of one packet."""
    wide = trimline.Scenario(small() | {"name": "wide"})
    return [wide, wide.copy().set("name", "narrow").set("transport.initial_window", 1)]


def test_a_comparison_is_that_of_the_command(tmp_path: Path) -> None:
    metrics = ["last_completion_us", "packets.trimmed"]
    compared = trimline.compare(two_windows(), tmp_path / "ours", seeds=[1, 2, 3], metrics=metrics)
    files = [str(tmp_path / "ours" / f"scenario-{n}.toml") for n in range(2)]
    theirs = tmp_path / "theirs"
    options = [word for metric in metrics for word in ("--metric", metric)]
    ran = command("compare", *files, "--seeds", "1-3", *options, "--out", str(theirs))
    assert ran.returncode == 0, ran.stderr
    expected = json.loads((theirs / "comparison.json").read_text())
    for told in (expected, compared.comparison):
        del told["repeat"], told["command"]
    assert compared.comparison == expected
    assert compared.runs.num_rows == 6
    means = {(row["metric"], row["label"]): row["mean"] for row in compared.means.to_pylist()}
    trimmed, late = compared.differences.to_pylist()[1], compared.differences.to_pylist()[0]
    assert (trimmed["metric"], trimmed["label"]) == ("packets.trimmed", "narrow")
    for row in (trimmed, late):
        wide, narrow = (means[row["metric"], label] for label in ("wide", "narrow"))
        assert row["mean"] == pytest.approx(narrow - wide)


def test_variants_of_a_file_are_compared(tmp_path: Path) -> None:
    text = trimline.Scenario(small()).to_toml()
    file = tmp_path / "variants.toml"
    variants = '\n[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nset = {{ "{}" = 1 }}\n'
    file.write_text(text + variants.format("transport.initial_window"))
    compared = trimline.compare(file, tmp_path / "out", seeds="1-2", metrics=["fct_us.p50"])
    assert compared.comparison["labels"] == ["a", "b"]
    with pytest.raises(trimline.ScenarioError, match="--metric"):
        trimline.compare(file, tmp_path / "other", metrics=["no such"])


def test_a_life_is_that_of_the_command() -> None:
    short = {"measure.to": "2ms"}
    life = trimline.explain(FIRST, set=short)
    ran = command("explain", str(FIRST), "max", "--set", "measure.to=2ms", "--json")
    said = json.loads(ran.stdout)
    assert (life.src, life.msg, life.spent_ps) == (said["src"], said["msg"], said["spent_ps"])
    assert life.steps.to_pylist() == said["steps"]
    lengths: list[int] = [step["for_ps"] for step in life.steps.to_pylist()]
    assert sum(life.spent_ps.values()) == life.fct_ps == sum(lengths)
    result = trimline.run(FIRST, set=short)
    measured = [row for row in result.flows.to_pylist() if row["measured"] and row["fct_ps"]]
    assert life.fct_ps == max(row["fct_ps"] for row in measured)
    assert f"message {life.src}:{life.msg}" in repr(life)


def test_a_message_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="SRC:MSG"):
        trimline.explain(FIRST, "first")
    with pytest.raises(trimline.ScenarioError, match="99"):
        trimline.explain(trimline.Scenario(small()), "1:99")
