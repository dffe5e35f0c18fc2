#!/usr/bin/env python3
"""Reads the numbers of the NDP paper's figures off its vector graphics: what the targets of studies/ndp marked "read off the plot" are.

    python3 ndp_plots.py ndp.pdf

ndp.pdf is doc/ndp.pdf of nets-cs-pub-ro/NDP (3d452cee). Axes are taken from their tick marks, not from the places of their labels.
Needs the package pymupdf. Curves are told by their place in the page's list of drawings.
"""
import math
import sys

import pymupdf


def axis(at, value, at2, value2, log=False):
    """The value at a place of a page, from two tick marks."""
    a, b = (math.log10(value), math.log10(value2)) if log else (value, value2)
    line = lambda place: a + (place - at) * (b - a) / (at2 - at)
    return (lambda place: 10 ** line(place)) if log else line


def points(pages, page, index, x, y):
    out = []
    for item in pages[page][index]["items"]:
        for p in item[1:]:
            point = (x(p.x), y(p.y))
            if not out or out[-1] != point:
                out.append(point)
    return out


def quantile(curve, share):
    return min(p[0] for p in curve if p[1] >= share)


def mean(curve):
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(curve, curve[1:]))
    return area / (curve[-1][0] - curve[0][0])


def show(name, **values):
    print(f"{name:28}", "  ".join(f"{key} {value:.4g}" for key, value in values.items()))


def main():
    pages = [page.get_drawings() for page in pymupdf.open(sys.argv[1])]
    x, y = axis(366.09, 0, 533.69, 200), axis(164.36, 0, 91.83, 100)
    for name, index in (("NDP, mean", 64), ("NDP, slowest tenth", 66), ("CP, mean", 68), ("CP, slowest tenth", 70)):
        curve = points(pages, 2, index, x, y)
        show("fig2 " + name, **{f"n={round(px)}": py for px, py in curve})
    x, y = axis(364.19, 10, 530.21, 100_000, log=True), axis(167.10, 0, 94.37, 1)
    for name, index in (("permutation", 88), ("random", 90), ("incast 135 KB", 92), ("incast 1350 KB", 94)):
        curve = points(pages, 5, index, x, y)
        show("fig4 " + name, median=quantile(curve, 0.5), p90=quantile(curve, 0.9), p99=quantile(curve, 0.99),
             p999=quantile(curve, 0.999), largest=curve[-1][0])
    x, y = axis(430.45, 0, 550.81, 1000), axis(153.96, 0, 89.42, 100)
    for name, index in (("idle", 160), ("prioritised", 161), ("in turn", 162)):
        show("fig10 " + name, median=quantile(points(pages, 8, index, x, y), 50))
    x, y = axis(82.57, 1, 208.94, 256, log=True), axis(150.66, 0, 90.95, 10)
    for name, index in (("drawn spacing", 32), ("perfect", 34)):
        show("fig11 " + name, **{f"iw={px:.0f}": py for px, py in points(pages, 9, index, x, y)})
    x, y = axis(422.30, 0, 541.91, 120), axis(157.73, 0, 90.25, 25)
    show("fig13 perfect", **{f"{px:.0f}KB": py for px, py in points(pages, 9, 296, x, y)})
    x, y = axis(345.56, 0, 472.60, 400), axis(293.62, 0, 227.05, 10)
    for name, index in (("NDP", 362), ("MPTCP", 364), ("DCTCP", 366), ("DCQCN", 368)):
        curve = points(pages, 9, index, x, y)
        show("fig14 " + name, least=curve[0][1], second=curve[1][1], median=[p[1] for p in curve if p[0] >= 216.5][0], mean=mean(curve))
    x, y = axis(86.10, 0, 214.90, 2.5), axis(154.23, 10, 90.37, 100)
    for name, index in (("NDP", 34), ("DCTCP", 36), ("DCQCN", 38), ("MPTCP", 40)):
        curve = points(pages, 10, index, x, y)
        show("fig15 " + name, median=quantile(curve, 50), p99=quantile(curve, 99), slowest=curve[-1][0])
    x, y = axis(256.94, 0, 376.08, 400), axis(156.27, 0, 90.51, 300)
    for name, colour in (("MPTCP", (0, 0, 0)), ("DCTCP", (0.67, 0.67, 0.67)), ("DCQCN", (0, 0, 1)), ("NDP", (1, 0, 0))):
        ends = {}  # upright bars, from the first completion to the last
        for stroke in pages[10]:
            box = stroke["rect"]
            upright = box.x1 - box.x0 < 0.02 < box.y1 - box.y0 and 256 < box.x0 < 386 and 90.6 < box.y0 and box.y1 < 156.27
            if stroke["color"] and upright and all(abs(a - b) < 0.01 for a, b in zip(stroke["color"], colour)):
                ends[round(x(box.x0))] = (y(box.y1), y(box.y0))
        for n in (11, 101, 201, 301, 401, 431):
            show(f"fig16 {name} n={n}", first=ends[n][0], last=ends[n][1])
    x, y = axis(432.32, 5, 546.58, 40), axis(154.20, 20, 90.38, 100)
    for name, index in (("9 KB, 8 packets", 848), ("1500 B", 906)):
        show("fig17 " + name, **{f"iw={px:.0f}": py for px, py in points(pages, 10, index, x, y)})
    x, y = axis(251.57, 0, 374.18, 140), axis(152.98, 0, 90.13, 10)
    for name, index in (("NDP", 47), ("MPTCP", 49), ("NDP, no scoreboard", 51), ("DCTCP", 53)):
        curve = points(pages, 12, index, x, y)
        show("fig22 " + name, least=curve[0][1], thirteenth=curve[12][1], mean=mean(curve))
    x, y = axis(426.80, 0.01, 552.77, 100, log=True), axis(153.96, 0, 100.19, 100)
    for name, index in (("NDP", 145), ("DCTCP", 147), ("NDP, high", 149), ("DCTCP, high", 151)):
        curve = points(pages, 12, index, x, y)
        show("fig23 " + name, shortest=quantile(curve, 0.05), p25=quantile(curve, 25), median=quantile(curve, 50), p90=quantile(curve, 90),
             p99=quantile(curve, 99))


if __name__ == "__main__":
    main()
