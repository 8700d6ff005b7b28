// The dialog with the numbers of a decision: what was measured, what was expected, and what came of it.

import { clock, exactly, named, num, valued, wall } from "./words.js";
import { byId, h, s, table } from "./page.js";
import { FAMILIES, awaits, rowRate, verdict } from "./store.js";

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
    this.dialog.scrollTop = 0;
  }

  /** Draws again what has come of it since, if the dialog is open. */
  draw() {
    if (!this.one || this.drawn === this.one.outcomes.length) return;
    this.drawn = this.one.outcomes.length;
    const { one, store } = this, family = FAMILIES[one.family], paid = verdict(one);
    const had = this.dialog.contains(document.activeElement) ? document.activeElement.textContent : "";
    const where = Number.isInteger(one.slot) ? ` · slot ${one.slot}` : "", when = wall(store.run, one.t);
    this.dialog.replaceChildren(
      h("div.head", {}, h("h2", { id: "detail-title" }, `${family.sign} ${family.name} at ${exactly(one.t)}`), h("span.muted", {}, `${when}${where}`),
        h("button", { type: "button", autofocus: true, onclick: () => this.dialog.close() }, "Close")),
      h("p.lead", {}, one.what), h("p.why", {}, one.why),
      paid || awaits(one) ? h("div.verdict", { "data-paid": paid }, h("h3", {}, SAID[paid]), one.outcomes.map((said) => h("p", {}, `${exactly(said.t)}: `, said.what))) : "",
      h("div.numbers.scroll", { tabindex: 0, role: "region", "aria-label": "Numbers" }, numbers(one, store.trial(one))),
      around(store, one),
      h("div.foot", {}, this.button("Look at this moment", () => {
        this.view.goto(one.t + 0.01);
        this.dialog.close();
      }), this.button("← the one before", () => this.step(-1)), this.button("the next one →", () => this.step(1))),
    );
    if (had) [...this.dialog.querySelectorAll("button")].find((button) => button.textContent === had)?.focus({ preventScroll: true });
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
/** What is measured of other decisions is no standing before them: it is what was done. */
const WHEN_DONE = { expected: "expected", before: "measured", after: "afterwards" };

/** All numbers of a decision: a row for each thing, with what it was before, was expected to be, and was afterwards. */
function numbers(one, trial) {
  const rows = new Map(), isPlan = one.kind === "plan", isDone = !isPlan && one.kind !== "trial" && one.family !== "route", rate = isPlan ? rowRate(one) : 0;
  const put = (name, when, value) => {
    if (name === "expected" || name === "instead_of") return put("us per tuple", name === "expected" ? name : "before", value * 1e6);
    const [, known, old] = name.match(/^(?:predicted )?(.*?)( now| before)?( after)?$/), isShare = known === "cpu" && rate > 0;
    const thing = isShare ? "model us per row" : known;
    rows.set(thing, { ...rows.get(thing), [old ? "before" : name.startsWith("predicted ") ? "expected" : when]: isShare ? (1e6 * value) / rate : value });
  };
  for (const [name, value] of Object.entries(one.measured)) {
    if (one.kind === "trial") put(name, "after", value);
    else if (isDone || !(name in one.expected)) put(name, `${name} now` in one.measured ? "expected" : "before", value);
  }
  for (const [name, value] of Object.entries(one.expected)) put(name, "expected", value);
  if (isPlan && trial) put("cpu", "after", trial.measured.cpu);
  for (const [name, value] of Object.entries(one.outcomes.at(-1)?.measured ?? {})) put(name, "after", value);
  const when = isDone ? WHEN_DONE : WHEN, columns = Object.keys(when).filter((key) => [...rows.values()].some((row) => key in row));
  if (!columns.length) return h("p.muted", {}, "It comes without numbers.");
  const titles = columns.map((key) => [when[key], "num"]), slots = Number.isInteger(one.slot) ? "of the slot, " : "";
  const name = (thing) => (isDone && thing === "seconds" ? "time that it took" : thing === "model us per row" ? `CPU a row ${slots}as the optimizer reckons` : named(thing));
  return table(["number", ...titles], [...rows].sort(([, x], [, y]) => Object.keys(y).length - Object.keys(x).length).map(([thing, row]) => [name(thing), ...columns.map((key) => (key in row ? valued(thing, row[key]) : ""))]));
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
