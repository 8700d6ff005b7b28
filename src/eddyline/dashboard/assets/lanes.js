// Stretches of time below the throughput: which plan ran, which route each source took, and when something was changed.
// The time axis is that of the chart above. A lane is coloured by the source that is asked first.

import { GUTTER, RIGHT } from "./chart.js";
import { byId, h, redraw, s } from "./page.js";
import { FAMILIES, verdict } from "./store.js";
import { clock } from "./words.js";

const HIGH = 24, GAP = 5, LEAST = 0.75;

export class Lanes {
  constructor(store, view, open) {
    Object.assign(this, { store, view, open, width: 0 });
    this.place = byId("lanes");
    this.svg = s("svg", { role: "img" });
    this.place.append(this.svg);
    this.svg.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  draw() {
    const width = this.place.clientWidth, { store, view } = this, [from, to] = view.span;
    if (!store.run || width < 50) return;
    const x = (t) => GUTTER + ((t - from) / (to - from)) * (width - GUTTER - RIGHT);
    const lanes = [["plan", store.trees, () => ""], ...[...store.routes].map(([source, list]) => [source, list, (text) => store.colour(text.match(/\w+/)?.[0])])];
    const marks = Object.entries(FAMILIES).filter(([key]) => store.decisions.some((one) => one.family === key));
    const parts = [];
    lanes.forEach(([name, list, colour], n) => parts.push(...this.lane(n * (HIGH + GAP), name, list, colour, x, from, to, width)));
    marks.forEach(([key, { sign, name }], n) => parts.push(...this.signs((lanes.length + n) * (HIGH + GAP), key, `${sign} ${name.toLowerCase()}`, x, from, to, width)));
    const high = (lanes.length + marks.length) * (HIGH + GAP);
    for (const one of store.notes) if (one.level === "info" && one.t > from && one.t <= to) parts.push(s("path.said", { d: `M${x(one.t)} 0V${high}` }, s("title", {}, one.text)));
    if (!view.isLive) parts.push(s("path.now", { d: `M${x(view.t)} 0V${high}` }));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${high}`);
    this.svg.setAttribute("height", high);
    this.svg.setAttribute("aria-label", this.spoken());
    this.svg.replaceChildren(...parts);
    this.legend();
    this.x = x;
  }

  /** What the colours and signs mean, of those that are there. */
  legend() {
    const { run, decisions } = this.store, is = (test) => decisions.some(test);
    const sources = run.sources.map(({ alias }) => h("span", {}, h(`i.swatch.${this.store.colour(alias)}`), alias));
    const said = [["good", "green: it paid", (one) => verdict(one) === "yes"], ["bad", "red: it did not pay", (one) => verdict(one) === "no"], ["", "small: a plan was looked for and kept", (one) => one.stays]];
    const shown = said.filter(([, , test]) => is(test));
    redraw(byId("legend"), `${run.sources.length} ${shown.map(([, text]) => text)}`, () => [h("span", {}, "Colour of a route: the source that is asked first:"), ...sources, ...shown.map(([kind, text]) => h(kind ? `span.${kind}` : "span", {}, text))]);
  }

  lane(y, name, list, colour, x, from, to, width) {
    const parts = [s("text.lane-name", { x: GUTTER - 10, y: y + 16 }, name.length > 9 ? `${name.slice(0, 8)}…` : name)];
    let last = -9;
    for (const { from: begin, to: end, text } of list) {
      if (end < from || begin > to) continue;
      const left = Math.max(GUTTER, x(begin)), right = Math.min(width - RIGHT, x(end)), wide = right - left;
      if (wide < LEAST && left - last < LEAST) continue;
      last = right;
      const k = colour(text);
      const g = s(k ? `g.${k}` : "g", {}, s("rect.stretch", { x: left, y, width: Math.max(1, wide), height: HIGH, rx: 4 }), s("rect.edge", { x: left, y, width: Math.min(3, Math.max(1, wide)), height: HIGH, rx: 1 }),
        s("title", {}, `${clock(begin)} to ${clock(end)}: ${name} ${text}`));
      const room = Math.floor((wide - 14) / 6.4);
      if (room >= Math.min(4, text.length)) g.append(s("text", { x: left + 9, y: y + 16 }, text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text));
      parts.push(g);
    }
    return parts;
  }

  signs(y, key, name, x, from, to, width) {
    const parts = [s("text.lane-name", { x: GUTTER - 10, y: y + 16 }, name), s("path.rule", { d: `M${GUTTER} ${y + HIGH / 2}H${width - RIGHT}` })];
    let last = -9;
    for (const one of this.store.decisions) {
      if (one.family !== key || one.t < from || one.t > to) continue;
      const at = x(one.t);
      if (at - last < 3 && (one.isMinor || key === "route")) continue;
      last = at;
      const sign = s(`text.sign${one.isMinor ? ".small" : ""}${verdict(one) ? `.${verdict(one)}` : ""}`, { x: at, y: y + (one.isMinor ? 15 : 17) }, FAMILIES[key].sign, s("title", {}, `${clock(one.t)}: ${one.what}`));
      sign.addEventListener("click", (event) => {
        event.stopPropagation();
        this.open(one);
      });
      parts.push(sign);
    }
    return parts;
  }

  click(event) {
    const left = event.clientX - this.svg.getBoundingClientRect().left, [from, to] = this.view.span;
    const share = (left - GUTTER) / (this.place.clientWidth - GUTTER - RIGHT);
    if (share >= 0 && share <= 1) this.view.goto(from + share * (to - from));
  }

  spoken() {
    const plan = this.store.trees.at(-1)?.text, routes = [...this.store.routes].map(([source, list]) => `${source} then ${list.at(-1).text}`);
    return `Plans and routes over time. Now: ${plan ? `plan ${plan}, ` : ""}routes ${routes.join("; ")}. All changes are in the list above.`;
  }
}
