// Makes the plots of the page live: each `figure.plot` has its data as JSON and, for readers and
// printers without a script, its pictures. uPlot draws; the controls are made here.
"use strict";
(() => {
  const FONT = "13px system-ui, sans-serif";
  const MARK_EVERY = 120;
  const THOUSANDS = "\u202f";

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key in element && key !== "role") element[key] = value;
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };

  const shown = (value) => {
    if (value == null) return "";
    const text = Math.abs(value) >= 1e15 || (value !== 0 && Math.abs(value) < 1e-5)
      ? value.toExponential(2)
      : String(Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(4)));
    return text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, THOUSANDS);
  };

  // `[x, y]` of each curve: x that are `null` are those of the curve before.
  const curves = (packed) => {
    let before = [];
    return packed.map(([x, y]) => [(before = x ?? before), y]);
  };

  // The share that is larger, down to the last but one; the largest has as much as the one before.
  const tail = ([x, y]) => {
    const above = y.map((share) => 1 - share);
    const end = above.findIndex((share) => share < 1e-12);
    if (end < 1) return [x, above];
    const [xs, ys] = [x.slice(0, end + 1), above.slice(0, end + 1)];
    ys[end] = ys[end - 1];
    return [xs, ys];
  };

  // One row per place for all curves, as uPlot wants it.
  const rows = (all) => {
    const points = all.flatMap(([x, y], curve) => x.map((at, i) => [at, curve, y[i]]));
    points.sort((a, b) => a[0] - b[0]);
    const xs = [];
    const columns = all.map(() => []);
    for (const [x, curve, y] of points) {
      if (xs.length === 0 || xs[xs.length - 1] !== x || columns[curve].length === xs.length) {
        xs.push(x);
      }
      columns[curve][xs.length - 1] = y;
    }
    for (const column of columns) column.length = xs.length;
    return [xs, ...columns.map((column) => Array.from(column))];
  };

  // From `low` to `high` on a logarithmic axis: powers of ten; with their doubles and halves where
  // there are few; where these are too few, too, equal steps.
  const roundValues = (low, high) => {
    const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const some = (factors, every) => {
      const found = [];
      for (let power = first; power <= last; power += every) {
        found.push(...factors.map((factor) => Number(`${factor}e${power}`)));
      }
      return found.filter((value) => value >= low && value <= high);
    };
    const decades = Math.log10(high) - Math.log10(low);
    const round = decades > 2.7 ? some([1], Math.ceil(decades / 12)) : some([1, 2, 5], 1);
    if (round.length > 1) return round;
    const about = (high - low) / 4;
    const unit = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map((n) => n * unit).find((step) => step >= about);
    const from = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - from + 1 }, (_, i) => (from + i) * step);
  };

  // For tests.
  window.trimline = { roundValues };

  class Plot {
    constructor(figure) {
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.open = curves(this.data.open);
      this.heading = figure.querySelector("h3").textContent;
      this.on = this.data.names.map((name, i) => i < this.data.shown);
      this.log = { x: this.data.x.log, y: this.data.y.log };
      this.tail = false;
      this.part = 0;
      this.box = make("div", {
        className: "canvas",
        tabIndex: 0,
        role: "group",
        "aria-label": `Plot: ${this.heading}. Arrow keys read values, plus and minus zoom, 0 shows all.`,
      });
      this.readout = make("p", { className: "readout", "aria-live": "polite" });
      const live = make("div", { className: "live" }, this.controls(), this.box, this.readout);
      this.outputs = this.legend(figure.querySelector(".legend"));
      figure.querySelector(".static").before(live);
      this.box.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.resize()).observe(this.box);
    }

    controls() {
      const { data } = this;
      const button = (text, label, act) =>
        make("button", { type: "button", ariaLabel: label, title: label, onclick: act }, text);
      const bar = make("div", { className: "controls" });
      if (data.parts.length > 0) {
        const names = ["all sizes", ...data.parts.map((part) => part.name)];
        const options = names.map((name, i) => make("option", { value: String(i) }, name));
        const select = make("select", {}, ...options);
        select.onchange = () => { this.part = Number(select.value); this.build(); };
        bar.append(make("label", {}, "Messages: ", select));
      }
      if (data.distribution) {
        bar.append(this.check("tail, logarithmic", false, (on) => {
          this.tail = on;
          this.log.y = on;
          this.build();
        }));
      }
      for (const axis of ["x", "y"]) {
        if (data[axis].names || (data.distribution && axis === "y") || !this.positive(axis)) continue;
        bar.append(this.check(`logarithmic ${axis}`, this.log[axis], (on) => {
          this.log[axis] = on;
          this.build();
        }));
      }
      bar.append(
        button("+", "Zoom in", () => this.zoom(0.5)),
        button("\u2212", "Zoom out", () => this.zoom(2)),
        button("Show all", "Show all of the plot", () => this.build()),
      );
      return bar;
    }

    check(text, on, act) {
      const box = make("input", { type: "checkbox", checked: on });
      box.onchange = () => act(box.checked);
      return make("label", {}, box, ` ${text}`);
    }

    // A checkbox for each curve; what comes back shows its value.
    legend(list) {
      if (!list) return [];
      const outputs = [];
      for (const item of list.querySelectorAll("li[data-curve]")) {
        const i = Number(item.dataset.curve);
        const box = make("input", { type: "checkbox", checked: this.on[i] });
        box.onchange = () => { this.on[i] = box.checked; this.plot?.setSeries(i + 1, { show: box.checked }); };
        const output = (outputs[i] = make("span", { className: "value" }));
        item.replaceChildren(make("label", {}, box, " ", ...item.childNodes), output);
      }
      return outputs;
    }

    // Whether the axis can be logarithmic.
    positive(axis) {
      const values = curves(this.data.curves).flatMap(([x, y]) => (axis === "x" ? x : y));
      return values.length > 0 && values.every((value) => value == null || value > 0);
    }

    lines() {
      const { data } = this;
      const packed = this.part === 0 ? data.curves : data.parts[this.part - 1].curves;
      const all = curves(packed);
      return this.tail ? all.map(tail) : all;
    }

    build() {
      this.plot?.destroy();
      this.curves = this.lines();
      const width = Math.max(this.box.clientWidth, 200);
      this.plot = new uPlot(this.options(width), rows(this.curves), this.box);
      this.resize();
    }

    resize() {
      if (!this.plot) return;
      const width = this.box.clientWidth;
      if (width > 0 && width !== this.plot.width) {
        this.plot.setSize({ width, height: this.height(width) });
      }
    }

    height(width) {
      return Math.round(Math.min(Math.max(width * 0.48, 260), 360));
    }

    options(width) {
      const ink = css("--ink");
      const grid = css("--grid");
      const axis = (key) => {
        const { names, label } = this.data[key];
        const tailed = this.tail && key === "y" ? `${label} above` : label;
        const common = {
          stroke: ink, font: FONT, labelFont: FONT, label: tailed, labelSize: 22, labelGap: 0,
          grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 },
          values: (_, splits) => splits.map(shown),
        };
        if (this.log[key]) {
          common.splits = (_, __, low, high) => roundValues(low, high);
          common.filter = common.grid.filter = common.ticks.filter = (_, splits) => splits;
        }
        if (key === "x") common.size = 34;
        if (names) {
          const narrow = width / names.length < 90;
          Object.assign(common, {
            splits: () => names.map((_, i) => i),
            values: (_, splits) => splits.map((i) => names[i] ?? ""),
            rotate: narrow ? -40 : 0,
            size: narrow ? 80 : 40,
          });
        }
        if (key === "y") {
          common.labelGap = 4;
          common.size = (_, values) => 18 + 7.5 * Math.max(3, ...(values ?? []).map((v) => (v ?? "").length));
        }
        return common;
      };
      const scale = (key) => ({
        time: false,
        distr: this.log[key] ? 3 : 1,
        range: (_, low, high) => this.range(key, low, high),
      });
      const line = (name, i) => ({
        label: name,
        show: this.on[i],
        stroke: css(`--line${this.data.styles[i].colour}`),
        width: 2,
        dash: this.data.styles[i].dash,
        spanGaps: true,
        points: { show: false },
        ...(this.data.drawn === "dots" ? { paths: () => null } : {}),
      });
      return {
        width,
        height: this.height(width),
        // Half of the longest label of the last tick.
        padding: [10, 34, 0, 0],
        legend: { show: false },
        cursor: { points: { show: false }, drag: { x: true, y: true, uni: 30 } },
        scales: { x: scale("x"), y: scale("y") },
        axes: [axis("x"), axis("y")],
        series: [{}, ...this.curves.map((_, i) => line(this.data.names[i], i))],
        hooks: { draw: [(plot) => this.draw(plot)], setCursor: [(plot) => this.read(plot)] },
      };
    }

    // What an axis shows at first: all that is drawn, published points and intervals, too.
    range(key, low, high) {
      const { names, low: base } = this.data[key];
      if (names) return [-0.5, names.length - 0.5];
      if (key === "y" && this.data.distribution && !this.tail) return [0, 1];
      const k = key === "x" ? 0 : 1;
      const values = [low, high];
      this.curves.forEach((curve, i) => {
        if (!this.on[i]) return;
        if (key === "x") values.push(curve[0][0], curve[0][curve[0].length - 1]);
        for (const value of this.open[i]?.[k] ?? []) values.push(value);
        for (const [x, y, half] of this.data.bars[i] ?? []) values.push(...(k ? [y - half, y + half] : [x]));
      });
      const fit = values.filter((v) => v != null && (!this.log[key] || v > 0));
      if (fit.length === 0) return [this.log[key] ? 1 : 0, 10];
      let [least, most] = [Math.min(...fit), Math.max(...fit)];
      if (this.log[key]) return least < most ? [least / 1.05, most * 1.05] : [least / 2, most * 2];
      if (least === most) most += Math.abs(most) * 0.1 || 1;
      const margin = (most - least) * 0.04;
      return [base === 0 && least >= 0 ? 0 : least - margin, most + (key === "x" ? 0 : margin)];
    }

    // Marks, dots, published points and intervals.
    draw(plot) {
      const { ctx, bbox } = plot;
      const ratio = devicePixelRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left - 4, bbox.top - 4, bbox.width + 8, bbox.height + 8);
      ctx.clip();
      ctx.setLineDash([]);
      this.curves.forEach((curve, i) => {
        if (!this.on[i]) return;
        const style = this.data.styles[i];
        const pixel = (x, y) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
        ctx.strokeStyle = ctx.fillStyle = css(`--line${style.colour}`);
        ctx.lineWidth = 1.5 * ratio;
        const outline = ([x, y], size) => {
          ctx.beginPath();
          style.mark.forEach(([dx, dy]) => ctx.lineTo(x + dx * size * ratio, y + dy * size * ratio));
          ctx.closePath();
        };
        let next = -Infinity;
        const every = { line: MARK_EVERY * ratio, points: -Infinity, dots: -Infinity }[this.data.drawn];
        curve[0].forEach((x, n) => {
          const at = pixel(x, curve[1][n]);
          if (!Number.isFinite(at[0] + at[1])) return;
          if (this.data.drawn === "dots") {
            ctx.fillRect(at[0] - ratio, at[1] - ratio, 2.5 * ratio, 2.5 * ratio);
            return;
          }
          if (next === -Infinity) next = at[0] + ((i * 35) % MARK_EVERY) * (every > 0 ? ratio : 0);
          if (at[0] < next && every > 0) return;
          next = at[0] + every;
          outline(at, 4.5);
          ctx.fill();
        });
        const [xs, ys] = this.open[i] ?? [[], []];
        xs.forEach((x, n) => { outline(pixel(x, ys[n]), 6); ctx.stroke(); });
        for (const [x, y, half] of this.data.bars[i] ?? []) {
          ctx.beginPath();
          ctx.moveTo(...pixel(x, y - half));
          ctx.lineTo(...pixel(x, y + half));
          ctx.stroke();
        }
      });
      ctx.restore();
    }

    // The values where the cursor is.
    read(plot) {
      const { left } = plot.cursor;
      const away = left == null || left < 0;
      const x = away ? null : plot.posToVal(left, "x");
      const { names, label } = this.data.x;
      const say = [];
      this.curves.forEach((curve, i) => {
        const y = away || !this.on[i] ? null : this.at(curve, x);
        const text = y == null ? "" : shown(y);
        if (this.outputs[i]) this.outputs[i].textContent = text && `\u2002${text}`;
        if (text) say.push(this.data.names[i] ? `${this.data.names[i]}: ${text}` : text);
      });
      const where = names ? names[Math.round(x)] : `${label}: ${shown(x)}`;
      this.readout.textContent = away ? "" : `${where} \u2192 ${say.join(", ") || "nothing"}`;
    }

    // Of a line the last point up to there, of points the nearest.
    at([xs, ys], x) {
      let last = -1;
      for (let [low, high] = [0, xs.length - 1]; low <= high; ) {
        const middle = (low + high) >> 1;
        if (xs[middle] <= x) { last = middle; low = middle + 1; } else high = middle - 1;
      }
      if (this.data.drawn === "line") return last < 0 ? null : ys[last];
      const near = [last, last + 1].filter((i) => i in xs);
      near.sort((a, b) => Math.abs(xs[a] - x) - Math.abs(xs[b] - x));
      return ys[near[0]];
    }

    key(event) {
      const { plot } = this;
      const step = (event.shiftKey ? 0.1 : 0.01) * plot.over.clientWidth;
      const move = (by) => {
        const [left, width] = [plot.cursor.left, plot.over.clientWidth];
        const to = Math.min(Math.max((left >= 0 ? left : width / 2) + by, 0), width);
        plot.setCursor({ left: to, top: plot.over.clientHeight / 2 });
      };
      const act = {
        ArrowLeft: () => move(-step), ArrowRight: () => move(step),
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
        0: () => this.build(), Escape: () => this.build(),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    }

    // Around the cursor, or the middle.
    zoom(by) {
      const { plot } = this;
      const width = plot.over.clientWidth;
      const at = plot.cursor.left >= 0 ? plot.cursor.left : width / 2;
      const ends = [at - at * by, at + (width - at) * by].map((left) => plot.posToVal(left, "x"));
      if (ends.every(Number.isFinite) && ends[0] < ends[1]) {
        plot.setScale("x", { min: ends[0], max: ends[1] });
      }
    }
  }

  const plots = new Map();

  // The pictures are there for this.
  const orPictures = (act) => {
    try {
      act();
    } catch (error) {
      document.documentElement.classList.remove("js");
      throw error;
    }
  };

  const build = (figure) => {
    plots.set(figure, new Plot(figure));
    plots.get(figure).build();
  };

  // A plot is built when it comes into view: the page opens as fast with a hundred as with one.
  const start = () => {
    const watch = new IntersectionObserver((entries) => {
      const seen = entries.filter((entry) => entry.isIntersecting && !plots.has(entry.target));
      orPictures(() => seen.forEach((entry) => build(entry.target)));
    }, { rootMargin: "400px" });
    document.querySelectorAll("figure.plot").forEach((figure) => watch.observe(figure));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      plots.forEach((plot) => plot.build());
    });
  };

  // What is folded would not be printed.
  const unfold = () => {
    const folded = () => document.querySelectorAll("details:not([open])");
    let opened = [];
    addEventListener("beforeprint", () => { opened = [...folded()]; opened.forEach((d) => { d.open = true; }); });
    addEventListener("afterprint", () => { opened.forEach((d) => { d.open = false; }); });
  };

  // Say which tables go on to the side.
  const cue = () => {
    const watch = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        target.classList.toggle("cut", target.scrollWidth > target.clientWidth + 1);
      }
    });
    document.querySelectorAll(".scroll").forEach((box) => watch.observe(box));
  };

  unfold();
  cue();
  orPictures(start);
})();
