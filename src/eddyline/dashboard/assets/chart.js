// One chart over time, by uPlot, with its numbers as a table for those who cannot see it.
// All charts share the stretch of time of the view; a click looks at a moment, a drag looks closer.

import uPlot from "./vendor/uplot.js";
import { h, table } from "./page.js";
import { clock, num } from "./words.js";

const POINTS = 600, ROWS = 40, TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
export const GUTTER = 76, RIGHT = 16;

export class Chart {
  /** `lines` are {label, of, rate, colour, columns}; `columns` is a function, so that a reset store is found. */
  constructor(place, title, lines, { view, high = 130, format = num, key }) {
    Object.assign(this, { title, lines, view, high, format, plot: null, isTable: false });
    this.said = h("p");
    this.rows = h("div.rows", { tabindex: 0, role: "region", "aria-label": `${title}, as a table`, hidden: true });
    this.box = h("div", { role: "img" });
    this.button = h("button", { type: "button", "aria-expanded": "false", "aria-label": `${title}: as a table`, onclick: () => this.toggle() }, "table");
    this.element = h("div.chart", { "data-chart": key ?? title }, h("div.head", {}, h("h3", {}, title), this.said, this.button), this.box, this.rows);
    place.append(this.element);
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  toggle() {
    this.isTable = !this.isTable;
    this.rows.hidden = !this.isTable;
    this.button.setAttribute("aria-expanded", String(this.isTable));
    this.tell();
  }

  draw() {
    const [from, to] = this.view.span, columns = this.lines.map((line) => line.columns());
    const times = columns[0], places = times.size ? times.places(from, to, POINTS) : [];
    this.data = [places.map((place) => times.data.t[place])];
    this.lines.forEach((line, n) => this.data.push(fitted(columns[n], times, places, line)));
    if (!this.plot) this.make();
    this.plot.setData(this.data, false);
    this.plot.batch(() => {
      this.plot.setScale("x", { min: from, max: to });
      const tops = this.data.slice(1).flat().filter((value) => value !== null), most = Math.max(0, ...tops);
      this.isEmpty = !(most > 0);
      this.plot.setScale("y", { min: 0, max: most > 0 ? most * 1.12 : 1 });
    });
    this.tell();
  }

  tell() {
    const t = this.view.t, at = this.data[0].findLastIndex((time) => time <= t + 1e-9);
    const now = this.lines.map((line, n) => [line, this.format(this.data[n + 1][at] ?? NaN)]);
    this.said.replaceChildren(...now.map(([line, text]) => h("span", {}, h(`i.swatch.${line.colour}`), `${line.label} ${text}`)));
    this.box.setAttribute("aria-label", `${this.title} over time; at ${clock(t)}: ${now.map(([line, text]) => `${line.label} ${text}`).join(", ")}`);
    if (!this.isTable) return;
    const step = Math.max(1, Math.ceil(this.data[0].length / ROWS)), rows = [];
    for (let i = this.data[0].length - 1; i >= 0 && rows.length < ROWS; i -= step)
      rows.push([clock(this.data[0][i]), ...this.data.slice(1).map((column) => this.format(column[i] ?? NaN))]);
    this.rows.replaceChildren(table(["time", ...this.lines.map((line) => [line.label, "num"])], rows));
  }

  make() {
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(`--${name}`).trim();
    const font = "11px system-ui, sans-serif", axis = { stroke: colour("muted"), font, grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot({
      width: Math.max(120, this.element.clientWidth), height: this.high, legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: false, auto: false }, y: { auto: false } }, padding: [8, RIGHT, 0, 0],
      axes: [{ ...axis, size: 26, incrs: TICKS, values: (u, ticks) => ticks.map(clock), space: 60 }, { ...axis, size: GUTTER, values: (u, ticks) => ticks.map((tick) => (this.isEmpty && tick ? "" : this.format(tick))), space: 30 }],
      series: [{}, ...this.lines.map((line) => {
        const stroke = colour(line.colour.replace("k", "c"));
        return { label: line.label, stroke, width: 1.75, fill: line.area ? `color-mix(in srgb, ${stroke} 14%, transparent)` : undefined, points: { show: false }, spanGaps: true };
      })],
      hooks: {
        setSelect: [(u) => u.select.width > 6 && this.closer(u)],
        draw: [(u) => this.moment(u, colour("ink"))],
        ready: [(u) => u.over.addEventListener("click", (event) => u.select.width <= 6 && this.view.goto(u.posToVal(event.offsetX, "x")))],
      },
    }, this.data, this.box);
  }

  closer(u) {
    const ends = [u.select.left, u.select.left + u.select.width].map((at) => u.posToVal(at, "x"));
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (ends[1] - ends[0] > 0.5) this.view.look(this.view.range, ends);
  }

  /** A line at the moment that the page shows, unless that is the newest. */
  moment(u, ink) {
    if (this.view.isLive) return;
    const x = Math.round(u.valToPos(this.view.t, "x", true));
    u.ctx.save();
    u.ctx.fillStyle = ink;
    u.ctx.fillRect(x, u.bbox.top, Math.max(1, devicePixelRatio), u.bbox.height);
    u.ctx.restore();
  }

  /** After a change of the theme it is made again in other colours. */
  repaint() {
    this.plot?.destroy();
    this.plot = null;
    if (this.data) this.draw();
  }

  resize() {
    const width = this.element.clientWidth;
    if (this.plot && width > 0 && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.high });
  }
}

/** A line's values at the times of the first line's samples. */
function fitted(columns, times, places, line) {
  if (columns === times) return times.series(line.of, places, line.rate);
  const own = places.map((place) => columns.at(times.data.t[place]));
  return columns.series(line.of, own, line.rate).map((value, n) => (own[n] < 0 ? null : value));
}
