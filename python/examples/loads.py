"""NDP, DCTCP, Homa and Swift at four loads: slowdowns with 95 % intervals over seeds, and a plot.

python python/examples/loads.py loads.png

Each transport has the queues that it was made for. The traffic is the same for all: messages of
Homa's workload W3 between 16 hosts under four leaves and two spines, equal draws for equal seeds.
"""

from __future__ import annotations

import sys
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import trimline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: By name of a transport: mean and half of its interval, at each load.
Rows = dict[str, list[tuple[float, float]]]

LOADS = [0.2, 0.4, 0.6, 0.8]
SEEDS = range(1, 6)
#: Of Student's distribution with four degrees of freedom, for five seeds.
T_95 = 2.776

WORKLOAD = "homa-w3"

COMMON: dict[str, Any] = {
    "seed": 1,
    "topology": {
        "kind": "leaf-spine",
        "leaves": 4,
        "spines": 2,
        "hosts_per_leaf": 4,
        "link_rate": "10Gbps",
        "uplink_rate": "20Gbps",
        "link_delay": "1us",
    },
    "traffic": {"kind": "poisson", "distribution": WORKLOAD, "load": 0.2},
    "measure": {"from": "1ms", "to": "6ms", "limit": "60ms"},
}

#: By name: how switches choose paths, their queues, and the transport.
TRANSPORTS: dict[str, dict[str, Any]] = {
    "NDP": {
        "routing": {"mode": "permute"},
        "queue": {"kind": "ndp", "capacity": "8 packets"},
        "transport": {"kind": "ndp", "preset": "paper", "payload": "1436B", "initial_window": 12},
    },
    "DCTCP": {
        "routing": {"mode": "ecmp"},
        "queue": {"kind": "drop-tail", "capacity": "250 packets", "ecn_threshold": "65 packets"},
        "transport": {
            "kind": "tcp",
            "rule": "dctcp",
            "recovery": "sack",
            "ecn": True,
            "preset": "linux-datacenter",
            "mss": "1460B",
            "rto_min": "10ms",
        },
    },
    "Homa": {
        "routing": {"mode": "spray"},
        "queue": {
            "kind": "priority",
            "class": [
                {"class": priority, "kind": "drop-tail", "capacity": "3MB"}
                for priority in range(8)
            ],
        },
        "transport": {
            "kind": "homa",
            "preset": "paper",
            "workload": WORKLOAD,
            "unscheduled_priorities": 7,
        },
    },
    "Swift": {
        "routing": {"mode": "ecmp"},
        "queue": {"kind": "drop-tail", "capacity": "3MB"},
        "transport": {"kind": "rdma", "rule": "swift", "preset": "paper", "payload": "1436B"},
    },
}


def scenario(name: str, load: float, seed: int) -> trimline.Scenario:
    """One run of the comparison."""
    scenario = trimline.Scenario({"name": f"{name} at {load:.0%}", **COMMON, **TRANSPORTS[name]})
    return scenario.set("traffic.load", load).set("seed", seed)


def interval(values: list[float]) -> tuple[float, float]:
    """Mean, and half of the 95 % interval around it."""
    return mean(values), T_95 * stdev(values) / sqrt(len(values))


def compare(progress: bool) -> Rows:
    """Run them all, with a bar if `progress`, and print a line for each point."""
    points = [(name, load) for name in TRANSPORTS for load in LOADS]
    runs = [scenario(name, load, seed) for name, load in points for seed in SEEDS]
    results = iter(trimline.run_many(runs, progress=progress))
    rows: Rows = {name: [] for name in TRANSPORTS}
    for name, load in points:
        of_seeds = [next(results) for _ in SEEDS]
        rows[name].append(interval([result.summary["slowdown"]["p99"] for result in of_seeds]))
        warnings = {warning for result in of_seeds for warning in result.warnings}
        average, half = rows[name][-1]
        print(f"{name:6} at {load:.0%}: p99 slowdown {average:6.2f} +- {half:.2f}")
        for warning in sorted(warnings):
            print(f"       {warning}")
    return rows


def plot(rows: Rows) -> Figure:
    """A line per transport, with error bars."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for (name, values), marker in zip(rows.items(), "osD^"):
        means, halves = zip(*values)
        axes.errorbar(LOADS, means, yerr=halves, label=name, marker=marker, capsize=4)
    axes.set(xlabel="load", ylabel="p99 slowdown, mean of five seeds", yscale="log", xticks=LOADS)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    return figure


def main(page: Path) -> None:
    """Print the comparison, and leave its plot."""
    import matplotlib

    matplotlib.use("Agg")
    plot(compare(sys.stderr.isatty())).savefig(page, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "loads.png"))
