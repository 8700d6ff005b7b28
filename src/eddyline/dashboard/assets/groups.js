// Slots and their partition groups: a square for each group, beside the others of its slot. A group that moves changes its band.

import { bytes, num } from "./words.js";
import { byId, choice, h } from "./page.js";
import { drawSlots } from "./tables.js";

const LABEL = 58, BETWEEN = 14;
const METRICS = {
  bytes: { name: "Bytes", of: (map, n) => map.bytes[n], text: bytes, low: "little memory", high: "much" },
  gain: { name: "Productivity", of: (map, n) => (map.bytes[n] ? (1000 * map.results[n]) / map.bytes[n] : 0), text: (v) => `${num(v)} results a KB`, low: "few results a byte", high: "many" },
  rows: { name: "Rows", of: (map, n) => map.rows[n], text: num, low: "few rows", high: "many" },
};

export class Groups {
  constructor(store, view) {
    Object.assign(this, { store, view, metric: "bytes" });
    this.canvas = h("canvas", { role: "img", height: 10 });
    this.read = h("p.read", { "aria-live": "off" });
    this.scale = h("p.scale");
    this.slots = h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Slots" });
    byId("groups").append(h("div.map", {}, this.canvas), this.scale, this.read, this.slots);
    choice(byId("metric"), Object.entries(METRICS).map(([key, { name }]) => [key, name]), "bytes", (metric) => {
      this.metric = metric;
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.read.textContent = ""));
    new ResizeObserver(() => this.draw()).observe(byId("groups"));
  }

  draw() {
    const map = this.store.map(this.view.t), hasSlots = this.store.detail(this.view.t)?.slots.length > 1;
    byId("groups-panel").hidden = !map && !hasSlots;
    this.canvas.hidden = this.scale.hidden = byId("metric").hidden = !map;
    drawSlots(this.store, this.view, this.slots);
    if (map) this.paint(map);
  }

  paint(map) {
    const { of, low, high } = METRICS[this.metric], width = byId("groups").clientWidth, ratio = devicePixelRatio || 1;
    if (width < 80) return;
    const bands = new Map();
    map.slot.forEach((slot, n) => bands.set(slot, [...(bands.get(slot) ?? []), n]));
    const most = Math.max(...map.group.map((_, n) => of(map, n)), 0) || 1;
    const size = Math.max(6, Math.min(20, Math.floor(Math.sqrt(((width - LABEL) * 190) / Math.max(1, map.group.length)))));
    const across = Math.max(1, Math.floor((width - LABEL) / size));
    this.cells = [];
    let y = 2;
    for (const slot of [...bands.keys()].sort((a, b) => a - b)) {
      const band = bands.get(slot).sort((a, b) => map.group[a] - map.group[b]);
      band.forEach((n, place) => this.cells.push({ n, slot, x: LABEL + (place % across) * size, y: y + Math.floor(place / across) * size }));
      y += Math.ceil(band.length / across) * size + BETWEEN;
    }
    const tall = y - BETWEEN + 2, css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(`--${name}`).trim();
    Object.assign(this.canvas, { width: width * ratio, height: tall * ratio });
    this.canvas.style.height = `${tall}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    let named = -1;
    for (const { n, slot, x, y: top } of this.cells) {
      if (slot !== named) {
        pen.fillStyle = colour("muted");
        pen.fillText(`slot ${slot}`, 0, top + Math.min(size, 14) - 2);
        named = slot;
      }
      pen.fillStyle = `rgba(${colour("heat")}, ${0.07 + 0.93 * Math.sqrt(of(map, n) / most)})`;
      pen.fillRect(x, top, size - 1.5, size - 1.5);
      if (map.on_disk[n]) {
        pen.strokeStyle = colour("bad");
        pen.lineWidth = 1.6;
        pen.strokeRect(x + 0.8, top + 0.8, size - 3.1, size - 3.1);
      }
    }
    Object.assign(this, { map, size });
    const cold = map.on_disk.reduce((sum, one) => sum + one, 0);
    this.canvas.setAttribute("aria-label", `${map.group.length} groups in ${bands.size} slots by ${METRICS[this.metric].name.toLowerCase()}; ${cold} have rows on disk. The table below adds them up.`);
    this.scale.replaceChildren(low, h("i"), `${high} (up to ${METRICS[this.metric].text(most)})`, h("b"), `has rows on disk (${cold})`);
  }

  point(event) {
    const { left, top } = this.canvas.getBoundingClientRect(), x = event.clientX - left, y = event.clientY - top;
    const cell = this.cells?.find((one) => x >= one.x && x < one.x + this.size && y >= one.y && y < one.y + this.size);
    const { map } = this;
    this.read.textContent = cell
      ? `group ${map.group[cell.n]} in slot ${cell.slot}: ${num(map.rows[cell.n])} rows, ${bytes(map.bytes[cell.n])}, ${num(map.results[cell.n])} results lately${map.on_disk[cell.n] ? ", has rows on disk" : ""}`
      : "";
  }
}
