"""Scenarios: built, loaded, edited, refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import FIRST, ROOT, command, small

import trimline


def line_of(text: str) -> int:
    """The line of this file that has `text`."""
    lines = Path(__file__).read_text().splitlines()
    return 1 + next(n for n, line in enumerate(lines) if text in line)


def test_a_dict_is_the_file_that_it_is_written_to(tmp_path: Path) -> None:
    built = trimline.Scenario(small())
    file = tmp_path / "small.toml"
    file.write_text(built.to_toml())
    loaded = trimline.Scenario.load(file)
    assert loaded.check().resolved == built.check().resolved
    assert built.check().resolved["transport"]["initial_window"] == 12
    assert built.check().forecast["messages listed"] == "2"


def test_a_wrong_key_in_a_file_has_the_message_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(FIRST.read_text().replace("initial_window", "initial_windw"))
    with pytest.raises(trimline.ScenarioError) as raised:
        trimline.Scenario.load(file).check()
    printed = command("check", str(file))
    assert printed.returncode == 2
    assert str(raised.value).strip() == printed.stderr.strip()
    assert (raised.value.file, raised.value.line) == (str(file), 26)


def test_a_wrong_key_in_a_dict_has_its_line_in_python() -> None:
    tree = {
        **small(),
        "transport": {
            "kind": "ndp",
            "preset": "paper",
            "payload": "9000B",
            "initial_windw": 12,  # this one
        },
    }
    with pytest.raises(trimline.ScenarioError) as raised:
        trimline.Scenario(tree).check()
    message = str(raised.value)
    assert raised.value.file == __file__
    assert raised.value.line == line_of("# this one")
    assert "unknown key `initial_windw` in [transport]" in message
    assert "did you mean `initial_window`?" in message
    assert '"initial_windw": 12,  # this one' in message, "the line itself is shown"


def test_without_a_literal_the_line_is_that_of_the_call() -> None:
    tree = small()
    tree["transport"]["initial_windw"] = tree["transport"].pop("initial_window")
    with pytest.raises(trimline.ScenarioError) as raised:
        trimline.Scenario(tree).check()  # that call
    assert raised.value.line == line_of("# that call")


def test_edits_have_their_lines_too() -> None:
    scenario = trimline.Scenario(small())
    with pytest.raises(trimline.ScenarioError) as raised:
        scenario.copy().set("transport.payload", "9000 kg").check()  # kilograms
    assert raised.value.line == line_of("# kilograms")
    with pytest.raises(trimline.ScenarioError) as raised:
        scenario.set("traffic.7.size", "1B")  # the eighth
    assert "no entry `7` in a list of 1" in str(raised.value)
    assert raised.value.line == line_of("# the eighth")
    with pytest.raises(trimline.ScenarioError) as raised:
        trimline.run(scenario, set={"transport.initial_window": 1.5})  # one and a half
    assert raised.value.line == line_of("# one and a half")
    resolved = scenario.check().resolved
    assert resolved["transport"]["initial_window"] == 12, "the caller's own is as before"


@pytest.mark.parametrize("value", [None, {1: 2}, [object()], {"a": {"b": None}}, 2**70])
def test_what_no_file_could_hold_is_refused(value: Any) -> None:
    with pytest.raises(trimline.ScenarioError):
        trimline.Scenario({**small(), "topology": value}).check()


def test_a_dict_in_itself_is_refused() -> None:
    tree = small()
    tree["topology"]["topology"] = tree["topology"]
    with pytest.raises(trimline.ScenarioError, match="without end"):
        trimline.Scenario(tree)


def test_without_its_source_an_error_still_has_a_line() -> None:
    script = "import trimline\n\ntrimline.Scenario({'nam': 'x'}).check()\n"
    ran = subprocess.run([sys.executable], input=script, capture_output=True, text=True)
    assert "<stdin>:3:1" in ran.stderr, ran.stderr
    assert "did you mean `name`?" in ran.stderr


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(trimline.ScenarioError, match="cannot read nowhere.toml"):
        trimline.Scenario.load("nowhere.toml")


def test_every_scenario_here_is_read() -> None:
    for file in sorted((ROOT / "scenarios").rglob("*.toml")):
        assert trimline.Scenario.load(file).check().resolved["seed"] >= 0, file
