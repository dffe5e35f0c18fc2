#!/usr/bin/env python3
"""Runs csg-htsim for every point of points.csv and writes peer.csv.

    repeat.py SIM [WORD]...     SIM: the directory `sim` of csg-htsim, built; with words, only the
                                points whose transport or matrix is one of them (others are kept)

Linux, g++ and csg-htsim 841d9e7. README.md says how it is built.
"""

import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SETTING = ["transport", "matrix", "rate_gbps", "queue_packets", "initial_window", "paths"]
PACKET = 9000
# Long enough for every flow: the timeouts of TCP are 250 ms and more.
END_US = {"ndp": 200_000, "tcp": 4_000_000, "dctcp": 4_000_000,
          "dctcp-marked": 4_000_000, "mptcp": 100_000}
FROM_US = 50_000
SUBFLOWS = 8
JITTER_NS = 20


def build(sim, into):
    """tcp_cm, with what main_tcp is linked with."""
    here = sim / "datacenter"
    parts = """firstfit vl2_topology fat_tree_topology fat_tree_switch bcube_topology
        connection_matrix oversubscribed_fat_tree_topology shortflows star_topology
        multihomed_fat_tree_topology"""
    flags = ["-std=c++11", "-O3", "-w", f"-I{sim}", f"-I{here}"]
    objects = [str(here / f"{part}.o") for part in parts.split()]
    program = into / "tcp_cm"
    source = str(HERE / "tcp_cm.cpp")
    library = [f"-L{sim}", "-lhtsim", "-o", str(program)]
    subprocess.run(["g++", *flags, source, *objects, *library], check=True)
    return program


def flows(matrix):
    return sum("->" in line for line in (HERE / f"{matrix}.cm").read_text().splitlines())


def ndp(sim, point, seed, into):
    """Completion times, us: when the last acknowledgement is at the sender."""
    options = {
        "-o": into / "log", "-nodes": 128, "-tm": HERE / f"{point['matrix']}.cm",
        "-linkspeed": 1000 * int(point["rate_gbps"]), "-mtu": PACKET, "-hop_latency": 1,
        "-switch_latency": 0, "-q": point["queue_packets"], "-cwnd": point["initial_window"],
        "-strat": point["paths"], "-queue_type": "composite", "-host_queue_type": "fair_prio",
        "-end": END_US["ndp"], "-seed": seed,
    }
    command = [sim / "datacenter/htsim_ndp", *(x for pair in options.items() for x in pair)]
    # It leaves a file in the working directory.
    text = subprocess.run([str(x) for x in command], check=True, capture_output=True, text=True,
                          cwd=into)
    times = {}
    for flow, at in re.findall(r"flow_id (\d+) finished at ([\d.e+]+)", text.stdout):
        times.setdefault(flow, float(at))
    return list(times.values())


def tcp(program, point, seed):
    """Completion times, us, since each flow's start; of unbounded flows goodput, Gb/s."""
    kind = point["transport"]
    matrix = HERE / f"{point['matrix']}.cm"
    rate = 1000 * int(point["rate_gbps"])
    begin = FROM_US if kind == "mptcp" else 0
    values = [program, matrix, kind, seed, rate, PACKET, point["queue_packets"], END_US[kind],
              begin, SUBFLOWS, JITTER_NS]
    text = subprocess.run([str(x) for x in values], check=True, capture_output=True, text=True)
    lines = [line.split() for line in text.stdout.splitlines() if line.startswith("RESULT")]
    return [float(line[4 if kind == "mptcp" else 3]) for line in lines]


def statistics(point, values):
    values = sorted(values)
    assert len(values) == flows(point["matrix"]) and values[0] > 0, (point, values)
    found = {"mean": sum(values) / len(values), "median": values[(len(values) - 1) // 2]}
    if point["transport"] == "mptcp":
        return {**found, "least": values[0]}
    if point["matrix"] in ("racks", "incast_8"):
        found["first"] = values[0]
    if point["transport"] == "tcp":
        rest = [value for value in values if value < 200_000]
        found["mean without timeouts"] = sum(rest) / len(rest)
        found["timeouts"] = len(values) - len(rest)
    return {**found, "last": values[-1]}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sim, words = Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    points = list(csv.DictReader((HERE / "points.csv").open()))
    kept = []
    if words:
        chosen = [row for row in points if words & set(row.values())]
        names = [[row[key] for key in SETTING] for row in chosen]
        old = csv.DictReader((HERE / "peer.csv").open())
        kept = [row for row in old if [row[key] for key in SETTING] not in names]
        points = chosen
    rows = [list(row.values()) for row in kept]
    with tempfile.TemporaryDirectory() as into:
        into = Path(into)
        program = build(sim, into)
        for point in points:
            for seed in range(1, int(point["seeds"]) + 1):
                if point["transport"] == "ndp":
                    values = ndp(sim, point, seed, into)
                else:
                    values = tcp(program, point, seed)
                for name, value in statistics(point, values).items():
                    setting = [point[key] for key in SETTING]
                    rows.append([*setting, seed, name, f"{value:.6g}"])
            print(*[point[key] for key in SETTING], flush=True)
    order = {tuple(row[key] for key in SETTING): at
             for at, row in enumerate(csv.DictReader((HERE / "points.csv").open()))}
    rows.sort(key=lambda row: order[tuple(row[:len(SETTING)])])
    with (HERE / "peer.csv").open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*SETTING, "seed", "statistic", "value"])
        writer.writerows(rows)


main()
