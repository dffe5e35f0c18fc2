"""Scenarios: experiments as data."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _places, _trimline

if TYPE_CHECKING:
    from . import keys
    from ._endpoint import Endpoint

#: A class of endpoints, or what makes the endpoint of a host from its table `[transport]`.
Transport = Callable[[int, dict[str, Any]], "Endpoint"]


@dataclass(frozen=True)
class Check:
    """What a scenario will do, and what looks wrong in it."""

    #: The scenario with all defaults spelled out: a scenario again, for the same run.
    resolved: dict[str, Any]
    #: What `trimline check` prints, by label.
    forecast: dict[str, str]
    #: What looks wrong and does not forbid the run, each as the command line shows it.
    warnings: list[str]


class Scenario:
    """A scenario as it is written, in a file or as a dict. It is checked when it is run, or by
    `check`."""

    def __init__(
        self,
        tables: Union[keys.Scenario, dict[str, Any]],
        *,
        transport: Optional[Transport] = None,
    ) -> None:
        """A scenario with the keys of a file. Values are as in TOML: `"10Gbps"`, `0.5`, lists.
        Paths of files are relative to the working directory.

        `transport` is what `transport.kind = "custom"` means: a subclass of `Endpoint`.
        """
        if isinstance(tables, (str, os.PathLike)):
            raise TypeError("a scenario is built from a dict; Scenario.load(path) reads a file")
        place = _places.of_call(type(self).__name__)
        self._document = _trimline.Document.build(dict(tables), place)
        self._transport = transport

    @classmethod
    def _built(cls, tables: Mapping[str, Any], place: _places.Place) -> Scenario:
        """That of these tables, which stand at `place`."""
        scenario = cls.__new__(cls)
        scenario._document = _trimline.Document.build(dict(tables), place)
        scenario._transport = None
        return scenario

    @classmethod
    def load(
        cls, path: Union[str, os.PathLike[str]], *, transport: Optional[Transport] = None
    ) -> Scenario:
        """The scenario file `path`, or the scenario in the `manifest.json` of a run."""
        scenario = cls.__new__(cls)
        scenario._document = _trimline.Document.load(os.fspath(path))
        scenario._transport = transport
        return scenario

    def set(self, path: str, value: Any) -> Scenario:
        """Put `value` at a dotted `path`, as `--set` does: `set("traffic.0.size", "90KB")`.

        Returns the scenario itself.
        """
        self._document.put(path, value, _places.of_call("set"))
        return self

    def copy(self) -> Scenario:
        """A scenario of its own with the same keys."""
        twin = copy.copy(self)
        twin._document = self._document.copy()
        return twin

    def to_toml(self) -> str:
        """The text of a scenario file with these keys. Paths are written as they are."""
        return self._document.to_toml()

    def check(self) -> Check:
        """Read it without running it. `ScenarioError` says what is wrong, and where."""
        resolved, forecast, warnings = self._document.check(self._native())
        rows = {label.strip(): value for label, value in forecast}
        return Check(json.loads(resolved), rows, warnings)

    def _native(self) -> Optional[_trimline.Transport]:
        return None if self._transport is None else _trimline.Transport(self._transport)
