"""Trimline: packet-level simulation of datacenter transports.

A scenario is read from TOML or built from a dict with the same keys, and run::

    import trimline

    scenario = trimline.Scenario.load("scenarios/first.toml")
    result = trimline.run(scenario, seed=2)
    result.summary["slowdown"]["p99"]
    result.flows.to_pandas()

`docs/python.md` shows more. Every key is in `docs/scenario-reference.md`, every result in
`docs/results.md`.
"""

from ._compare import Comparison, compare
from ._endpoint import MS, NS, PS, SEC, US, Endpoint
from ._life import Life, explain
from ._result import Result
from ._run import run, run_many
from ._scenario import Check, Scenario
from ._sweep import Sweep, sweep
from ._trimline import Context, Message, Packet, RunError, ScenarioError, version

#: Version of the package, without commit and engine.
__version__ = version().split(" ")[0]

__all__ = [
    "Check",
    "Comparison",
    "Context",
    "Endpoint",
    "Life",
    "MS",
    "Message",
    "NS",
    "PS",
    "Packet",
    "Result",
    "RunError",
    "SEC",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "US",
    "compare",
    "explain",
    "run",
    "run_many",
    "sweep",
    "version",
]
