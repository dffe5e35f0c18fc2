"""The gallery of scenarios: runs them, draws a small picture of each result, writes docs/gallery.md.

python docs/site/gallery.py PROGRAM [WORD]    # WORD: only pictures of files with it
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import matplotlib
import pyarrow.parquet
from PIL import Image

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images" / "gallery"

HEAD = """# Gallery

Each scenario that comes with Trimline and has something to show, with a picture of its result. `trimline run FILE` runs it
again; where the picture has an axis of a sweep, `trimline sweep FILE`. `make gallery` draws this page from such runs.
"""

US, MS = 1e6, 1e9  # picoseconds

Run = tuple[str, Path]


def _flows(dir: Path) -> Any:
    """The messages of a run, with the names of their traffic tables."""
    table = pyarrow.parquet.read_table(dir / "flows.parquet").to_pandas()
    written = json.loads((dir / "manifest.json").read_text())["scenario"]["traffic"]
    names = {n: t.get("name") or t.get("transport") or str(n) for n, t in enumerate(written)}
    return table.assign(traffic=table["traffic"].map(names))


def _steps(axes: Axes, values: Any, label: str) -> None:
    ordered = sorted(values)
    if ordered:
        shares = [(n + 1) / len(ordered) for n in range(len(ordered))]
        axes.step(ordered, shares, where="post", label=label)


def fct(axes: Axes, runs: list[Run]) -> None:
    """How many messages are complete after a time, by traffic table where there are few."""
    for label, dir in runs:
        table = _flows(dir)
        table = table[table["measured"]].dropna(subset=["fct_ps"])
        names = table["traffic"].unique()
        few = 1 < len(names) <= 3
        for name, rows in table.groupby("traffic") if few else [("", table)]:
            _steps(axes, rows["fct_ps"] / US, f"{label} {name}".strip())
    axes.set(xlabel="completion time (us)", ylabel="share of messages", xscale="log")


def jobs(axes: Axes, runs: list[Run]) -> None:
    """How many jobs are done after a time."""
    for label, dir in runs:
        table = pyarrow.parquet.read_table(dir / "jobs.parquet").to_pandas()
        _steps(axes, table[table["completed"]]["time_ps"] / MS, label)
    axes.set(xlabel="job time (ms)", ylabel="share of jobs", xscale="log")


def slowdown(axes: Axes, runs: list[Run]) -> None:
    """Slowdown over size, a dot per message."""
    for label, dir in runs:
        table = _flows(dir)
        table = table[table["measured"]]
        axes.plot(table["size_bytes"], table["slowdown"], ".", ms=2, alpha=0.4, label=label)
    axes.set(xlabel="size (B)", ylabel="slowdown", xscale="log", yscale="log")


def flows(axes: Axes, runs: list[Run]) -> None:
    """Goodput of each flow, the slowest first."""
    for label, dir in runs:
        table = _flows(dir)
        summary = json.loads((dir / "summary.json").read_text())
        window = summary["measured"]["to_us"] - summary["measured"]["from_us"]
        rates = sorted(table["placed_in_window_bytes"] * 8e-3 / window)
        axes.plot([(n + 1) / len(rates) for n in range(len(rates))], rates, label=label)
    axes.set(xlabel="flows, the slowest first", ylabel="goodput (Gb/s)")
    axes.set_ylim(bottom=0)


def shares(axes: Axes, runs: list[Run]) -> None:
    """Bytes that each traffic table has delivered."""
    bars: dict[str, float] = {}
    for label, dir in runs:
        table = _flows(dir)
        whole = table["placed_in_window_bytes"].sum()
        for name, rows in table.groupby("traffic", sort=False):
            bars[f"{label}: {name}"] = 100 * rows["placed_in_window_bytes"].sum() / whole
    axes.barh(list(bars), list(bars.values()))
    axes.set(xlabel="share of what was delivered (%)")
    axes.invert_yaxis()


def _series(axes: Axes, runs: list[Run], column: str, scale: float, label: str) -> None:
    for name, dir in runs:
        table = pyarrow.parquet.read_table(dir / "series.parquet").to_pandas()
        axes.plot(table["at_ps"] / MS, table[column] / scale, lw=1, label=name)
    axes.set(xlabel="time (ms)", ylabel=label)
    axes.set_ylim(bottom=0)


def goodput(axes: Axes, runs: list[Run]) -> None:
    """Goodput over time."""
    _series(axes, runs, "goodput_gbps", 1, "goodput (Gb/s)")


def queue(axes: Axes, runs: list[Run]) -> None:
    """The longest queue over time."""
    _series(axes, runs, "queue_max_bytes", 1000, "longest queue (kB)")


#: Markers, so that curves differ without their colours.
MARKERS = "osD^vPX"


def sweep(axes: Axes, runs: list[Run]) -> None:
    """The first metric, and those of its kind, over the axis of the sweep; 95 % intervals."""
    study = json.loads((runs[0][1] / "study.json").read_text())
    first = study["figures"][0]
    kind = ".".join(first["id"].split(".")[-2:])
    alike = [figure for figure in study["figures"] if figure["id"].endswith(kind)]
    marker = iter(MARKERS * 2)
    for figure in alike:
        for curve in figure["curves"]:
            name = figure["id"].split(".")[1] if len(alike) > 1 else curve["label"]
            xs, ys = zip(*((point["x"], point["y"]) for point in curve["measured"]))
            halves = [point["interval"] or 0 for point in curve["measured"]]
            axes.errorbar(xs, ys, halves, label=name, marker=next(marker), ms=4, capsize=2)
    axes.set(xlabel=first["x"]["label"], ylabel=kind if len(alike) > 1 else first["id"])
    axes.set_ylim(bottom=0)


def bars(axes: Axes, runs: list[Run]) -> None:
    """The first metric of the sweep, with 95 % intervals."""
    curves = json.loads((runs[0][1] / "study.json").read_text())["figures"][0]
    points = {c["label"]: c["measured"][0] for c in curves["curves"]}
    halves = [point["interval"] or 0 for point in points.values()]
    axes.barh(list(points), [point["y"] for point in points.values()], xerr=halves, capsize=2)
    axes.set(xlabel=curves["id"])
    axes.invert_yaxis()


def steps(axes: Axes, runs: list[Run]) -> None:
    """When each rank was in which step of a job: light and dark in turn, a line where a fault begins."""
    lane = 0
    places = {}
    for label, dir in runs:
        table = pyarrow.parquet.read_table(dir / "steps.parquet").to_pandas()
        for odd, rows in table.groupby(table["step"] % 2):
            left, long = rows["start_ps"] / MS, (rows["end_ps"] - rows["start_ps"]) / MS
            colour = ["#9ecae1", "#08519c"][odd]
            axes.barh(lane + rows["rank"], long, left=left, height=1.0, color=colour)
        places[lane + table["rank"].max() / 2] = label
        lane += table["rank"].max() + 3
    written = json.loads((runs[0][1] / "manifest.json").read_text())["scenario"]
    for fault in written.get("fault", []):
        axes.axvline(float(fault["at"].removesuffix("ms")), color="#d7301f", lw=1)
    axes.set_yticks(list(places), list(places.values()))
    axes.set(xlabel="time (ms)")
    axes.invert_yaxis()


PLOTS: dict[str, Callable[[Axes, list[Run]], None]] = {
    plot.__name__: plot
    for plot in [fct, jobs, slowdown, flows, shares, goodput, queue, sweep, bars, steps]
}


def _run(program: str, picture: dict[str, Any], dir: Path) -> list[Run]:
    """Run what a picture needs: labels and output directories."""
    files = [picture["file"], *picture.get("also", [])]
    wanted: list[tuple[str, str, list[str]]] = [
        (label, files[0], sets) for label, sets in picture.get("run", {}).items()
    ] or [(Path(file).stem.replace("_", " "), file, []) for file in files]
    verb = "sweep" if picture["plot"] in ("sweep", "bars") else "run"
    runs = []
    for n, (label, file, sets) in enumerate(wanted):
        out = dir / str(n)
        words = [program, verb, f"scenarios/{file}", "--out", str(out), "--progress", "never"]
        words += ["--seeds", picture["seeds"]] if "seeds" in picture else []
        words += [word for edit in sets for word in ("--set", edit)]
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        runs.append((label, out))
    return runs


def _image(file: str) -> Path:
    return IMAGES / (file.removesuffix(".toml").replace("/", "_") + ".png")


def _draw(picture: dict[str, Any], runs: list[Run]) -> None:
    figure, axes = pyplot.subplots(figsize=(5, 2.8))
    PLOTS[picture["plot"]](axes, runs)
    axes.grid(visible=True, alpha=0.3)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize="small")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=90, bbox_inches="tight")
    pyplot.close(figure)
    # A few colours are enough, and a third of the bytes.
    few = Image.open(drawn).convert("RGB").quantize(32)
    few.save(_image(picture["file"]), optimize=True)


def _page(pictures: list[dict[str, Any]], without: dict[str, str]) -> str:
    parts = [HEAD]
    for picture in pictures:
        image = _image(picture["file"]).relative_to(ROOT / "docs")
        files = [picture["file"], *picture.get("also", [])]
        links = ", ".join(f"[{file}](../scenarios/{file})" for file in files)
        plot = PLOTS[picture["plot"]].__doc__ or ""
        alt = f"{picture['title']}. {plot}"
        parts.append(f"## {picture['title']}\n\n{picture['say']}\n\n![{alt}]({image})\n\n{links}\n")
    rows = "\n".join(f"| `{place}` | {why} |" for place, why in without.items())
    parts.append(f"## Without a picture\n\n| scenarios | why |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def main(program: str, word: str) -> None:
    """Draw the pictures of files with `word` in their names; all of them and the page if empty."""
    table = tomllib.loads((ROOT / "docs" / "site" / "gallery.toml").read_text())
    IMAGES.mkdir(parents=True, exist_ok=True)
    for picture in table["picture"]:
        if word in picture["file"]:
            print(picture["file"], flush=True)
            with tempfile.TemporaryDirectory() as dir:
                _draw(picture, _run(program, picture, Path(dir)))
    (ROOT / "docs" / "gallery.md").write_text(_page(table["picture"], table["without"]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
