// The dialog with the numbers of a decision: what was measured, what was expected, and what came of it.

import { clock, named, num, valued, wall } from "./words.js";
import { byId, h, s, table } from "./page.js";
import { FAMILIES, verdict } from "./store.js";

const AROUND = 20;
const SAID = { yes: "It paid", no: "It did not pay", open: "Whether it paid is not clear", "": "Nothing has come of it yet" };

export class Detail {
  constructor(store, view) {
    this.store = store;
    this.view = view;
    this.one = null;
    this.dialog = byId("detail");
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => (this.one = null));
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") this.step(-1);
      if (event.key === "ArrowRight") this.step(1);
    });
  }

  open(one) {
    this.one = one;
    this.drawn = null;
    this.draw();
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** Draws again what has come of it since, if the dialog is open. */
  draw() {
    if (!this.one || this.drawn === this.one.outcomes.length) return;
    this.drawn = this.one.outcomes.length;
    const { one, store } = this, family = FAMILIES[one.family], paid = verdict(one);
    const where = Number.isInteger(one.slot) ? ` · slot ${one.slot}` : "", when = wall(store.run, one.t);
    this.dialog.replaceChildren(
      h("div.head", {}, h("h2", { id: "detail-title" }, `${family.sign} ${family.name} at ${clock(one.t)}`), h("span.muted", {}, `${when}${where}`)),
      h("p.lead", {}, one.what), h("p.why", {}, one.why),
      h("div.verdict", { "data-paid": paid }, h("h3", {}, SAID[paid]), one.outcomes.map((said) => h("p", {}, `${clock(said.t)} `, said.what))),
      h("div.numbers.scroll", { tabindex: 0, role: "region", "aria-label": "Numbers" }, numbers(one)),
      around(store, one),
      h("div.foot", {}, this.button("Look at this moment", () => {
        this.view.goto(one.t + 0.01);
        this.dialog.close();
      }), this.button("← the one before", () => this.step(-1)), this.button("the next one →", () => this.step(1)),
      h("button", { type: "button", autofocus: true, onclick: () => this.dialog.close() }, "Close")),
    );
  }

  button(text, onclick) {
    return h("button", { type: "button", onclick }, text);
  }

  step(way) {
    const list = this.store.decisions.filter((one) => one.stays === this.one.stays);
    const next = list[list.indexOf(this.one) + way];
    if (next) this.open(next);
  }
}

const WHEN = { before: "before", expected: "expected", after: "afterwards" };

/** All numbers of a decision: a row for each thing, with what it was before, was expected to be, and was afterwards. */
function numbers(one) {
  const rows = new Map();
  const put = (name, when, value) => {
    if (name === "expected" || name === "instead_of") return put("us per tuple", name === "expected" ? name : "before", value * 1e6);
    const [, thing, old] = name.match(/^(?:predicted )?(.*?)( now| before)?( after)?$/);
    rows.set(thing, { ...rows.get(thing), [old ? "before" : name.startsWith("predicted ") ? "expected" : when]: value });
  };
  for (const [name, value] of Object.entries(one.measured)) if (!(name in one.expected)) put(name, "before", value);
  for (const [name, value] of Object.entries(one.expected)) put(name, "expected", value);
  for (const [name, value] of Object.entries(one.outcomes.at(-1)?.measured ?? {})) put(name, "after", value);
  const columns = Object.keys(WHEN).filter((when) => [...rows.values()].some((row) => when in row));
  if (!columns.length) return h("p.muted", {}, "It comes without numbers.");
  const said = columns.map((when) => [when === "before" && one.family !== "plan" && one.family !== "route" ? "measured" : WHEN[when], "num"]);
  return table(["", ...said].map((x) => x || "number"), [...rows].map(([thing, row]) => [named(thing), ...columns.map((when) => (when in row ? valued(thing, row[when]) : ""))]));
}

/** Rows a second around a decision, as a small line. */
function around(store, one) {
  const places = store.samples.places(one.t - AROUND, one.t + AROUND, 80), rates = store.samples.series("rows_in", places, true);
  const points = places.map((place, n) => [store.samples.data.t[place], rates[n]]).filter(([, rate]) => rate !== null);
  if (points.length < 3) return null;
  const top = Math.max(...points.map(([, rate]) => rate)) * 1.1 || 1, from = points[0][0], to = points.at(-1)[0];
  const x = (t) => ((t - from) / (to - from || 1)) * 600, y = (rate) => 80 - (rate / top) * 76;
  const said = `Rows a second from ${clock(from)} to ${clock(to)}, at most ${num(top / 1.1)}; the line is the decision`;
  return h("figure.mini", { style: null }, s("svg", { viewBox: "0 0 600 84", role: "img", "aria-label": said },
    s("path.base", { d: "M0 80H600" }), s("polyline", { points: points.map(([t, rate]) => `${x(t).toFixed(1)},${y(rate).toFixed(1)}`).join(" ") }),
    s("path.then", { d: `M${x(one.t).toFixed(1)} 0V84` })), h("figcaption.hint", {}, said));
}
