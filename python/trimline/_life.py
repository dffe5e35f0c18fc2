"""The life of one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from . import _places, _trimline
from ._run import Runnable, edited

if TYPE_CHECKING:
    import pyarrow


class Life:
    """Where the time of a message went, cause by cause: `docs/explain.md`. Times are picoseconds."""

    def __init__(self, said: dict[str, Any]) -> None:
        #: Sending host, and its counter of messages.
        self.src, self.msg = int(said["src"]), int(said["msg"])
        #: Receiving host.
        self.dst = int(said["dst"])
        #: Its size.
        self.bytes = int(said["bytes"])
        #: When it was submitted.
        self.submitted_ps = int(said["submitted_ps"])
        #: Its completion time: the sum of `spent_ps`, exactly.
        self.fct_ps = int(said["fct_ps"])
        #: That of the same message alone in the same fabric.
        self.ideal_ps = int(said["ideal_ps"])
        #: How long it spent on each cause.
        self.spent_ps: dict[str, int] = said["spent_ps"]
        self._steps: list[dict[str, Any]] = said["steps"]

    @property
    def steps(self) -> pyarrow.Table:
        """The same in the order of time: `after_ps`, `for_ps`, `cause`, `place`, `packet`."""
        import pyarrow

        return pyarrow.Table.from_pylist(self._steps)

    def __repr__(self) -> str:
        longest = max(self.spent_ps, key=lambda cause: self.spent_ps[cause])
        took = f"{self.fct_ps / 1e6:.3f} us"
        return f"<Life of message {self.src}:{self.msg}, {took}, mostly {longest}>"


def explain(
    scenario: Runnable,
    message: str = "max",
    *,
    seed: Optional[int] = None,
    set: Optional[Mapping[str, Any]] = None,
) -> Life:
    """Where the time of a message went: `"3:0"`, host and counter as in `flows`, or `"max"`, the
    measured message that took the longest.

    The run ends when that is known. `seed` and `set` change keys of this run only.
    """
    edits = dict(set or {})
    if seed is not None:
        edits["seed"] = seed
    ready = edited(scenario, edits, _places.of_call("explain"))
    return Life(json.loads(_trimline.explain(ready._document, message, ready._native())))
