#!/usr/bin/env python3
"""Fills in columns `mbps` and `half` of incast.csv with what ns-2.35 gives.

    ./repeat.py            all points
    ./repeat.py 8 drawn    those of 8 senders whose column `ties` says "drawn"

Five seeds a point: the mean, and half of its 95 % interval.
"""

import csv
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SEEDS = range(1, 6)
# Student's t for five values, both sides, 95 %.
T = 2.776
# ns-2 has no window without a limit; this one is never reached.
WINDOWS = {"unlimited": "100000"}


def seconds(text):
    """ns-2's number for a time of the table."""
    if text == "off":
        return text
    value, unit = (text[:-2], text[-2:])
    return str(float(value) * {"ms": 1e-3, "us": 1e-6}[unit])


def goodput(point, seed):
    """Mb/s of one run."""
    settings = {
        "senders": point["senders"],
        "ties": point["ties"],
        "window": WINDOWS.get(point["window"], point["window"]),
        "queue": point["queue"],
        "minrto": seconds(point["rto_min"]),
        "tick": seconds(point["rto_tick"]),
        "delack": seconds(point["delayed_ack"]),
        "seconds": point["seconds"],
        "seed": seed,
    }
    words = [f"{key}={value}" for key, value in settings.items()]
    done = subprocess.run(
        ["ns", HERE / "incast.tcl", *words], check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[2])


def wanted(point, words):
    return all(word in (point["senders"], point["variant"], point["ties"]) for word in words)


def main():
    with open(HERE / "incast.csv", newline="") as file:
        points = list(csv.DictReader(file))
    for point in points:
        if not wanted(point, sys.argv[1:]):
            continue
        runs = [goodput(point, seed) for seed in SEEDS]
        half = T * statistics.stdev(runs) / len(runs) ** 0.5
        point["mbps"] = f"{statistics.mean(runs):.1f}"
        point["half"] = f"{half:.1f}"
        print(*point.values(), *runs, flush=True)
        with open(HERE / "incast.csv", "w", newline="") as file:
            table = csv.DictWriter(file, points[0].keys(), lineterminator="\n")
            table.writeheader()
            table.writerows(points)


main()
