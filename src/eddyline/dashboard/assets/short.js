// The run in short: what it does now, when the plan and the routes last changed, and whether that paid.

import { most } from "./graph.js";
import { clock, full, lasting, num, bytes, percent } from "./words.js";
import { byId, h, redraw } from "./page.js";
import { verdict } from "./store.js";

export function drawShort(store, view, open) {
  const t = view.t;
  redraw(byId("told"), `${store.version} ${Math.floor(t * 2)}`, () => sentences(store, view, t, open));
  redraw(byId("tiles"), `${store.version} ${Math.floor(t * 2)}`, () => tiles(store, t));
}

function sentences(store, view, t, open) {
  const { samples } = store, rows = samples.rate("rows_in", t), out = samples.rate("rows_out", t);
  const lines = [h("p", {}, opening(store, view, t, rows, out))], data = store.notes.findLast((one) => one.level === "info" && one.t <= t + 1e-9);
  if (data && !(store.end && t >= store.last)) lines.push(h("p", {}, `The data: ${data.text}.`));
  const plans = store.changes(t).filter((one) => one.family === "plan"), routes = store.changes(t).filter((one) => one.family === "route");
  lines.push(plans.length ? told("The plan last changed at", plans.at(-1), plans.length, open) : h("p", {}, stayed(store, t)));
  const together = store.withPlan(t), last = routes.at(-1);
  if (together && !(last?.t > together.at))
    lines.push(h("p", {}, `${together.all ? "All routes" : `${together.many} of ${store.routes.size} routes`} changed with the plan at ${clock(together.at)}.`));
  else if (last) lines.push(told("A route last changed at", last, routes.length, open));
  const time = most(store, t);
  if (time) lines.push(h("p", {}, `Most time goes into: ${time}`));
  const judged = store.decisions.filter((one) => one.t <= t && verdict(one)), count = (paid) => judged.filter((one) => verdict(one) === paid).length;
  const replaced = judged.filter((one) => /^replaced .*before anything was measured/.test(one.outcomes.at(-1).what)).length;
  if (judged.length) lines.push(h("p.muted", {}, `Of the changes so far ${count("yes")} paid, ${count("no")} did not, ${count("open")} cannot be told${replaced ? ` (${replaced} replaced before ${replaced > 1 ? "they were" : "it was"} measured)` : ""}.`));
  return lines;
}

function opening(store, view, t, rows, out) {
  if (!store.samples.size) return "Waiting for the first rows.";
  if (store.end && t >= store.last - 1e-9) {
    const total = `${full(store.samples.value("rows_in", t))} rows in, ${full(store.samples.value("rows_out", t))} results, in ${lasting(store.last)}`;
    const how = { done: "The run is done", stopped: "The run was stopped", failed: "The run failed" }[store.end.status] ?? "The run is over";
    return store.end.error ? `${how}: ${store.end.error}` : `${how}: ${total}.`;
  }
  const when = view.isLive && !store.run?.replay ? "Now" : `At ${clock(t)}`;
  return `${when}: ${num(rows)} rows a second come in, ${num(out)} results a second go out.`;
}

function stayed(store, t) {
  const looks = store.decisions.filter((one) => one.t <= t && one.stays).length;
  return looks ? `The plan has not changed. ${looks} times a better one was looked for.` : "The plan has not changed.";
}

function told(words, one, count, open) {
  const what = { yes: " It paid.", no: " It did not pay.", open: " Whether it paid is not clear.", "": " Whether it paid is not known yet." }[verdict(one)];
  const more = count > 1 ? ` ${count} ${one.family} changes so far.` : "";
  return h("p", {}, `${words} `, h("button", { type: "button", onclick: () => open(one) }, `${clock(one.t)}: ${one.what}`), `.${what}${more}`);
}

function tiles(store, t) {
  const { samples } = store, at = (name) => samples.value(name, t);
  const limit = store.memoryLimit ? ` of ${bytes(store.memoryLimit)} a slot` : "";
  const wrong = at("errors") + at("rows_dead");
  const isOver = store.end && t >= store.last - 1e-9, rate = (name) => (isOver ? at(name) / store.last : samples.rate(name, t));
  const peak = isOver && store.end.summary?.peak_memory_bytes;
  const list = [
    [isOver ? "rows a second, mean" : "rows a second", num(rate("rows_in"))],
    [isOver ? "results a second, mean" : "results a second", num(rate("rows_out"))],
    ["watermark behind", at("ended") ? "ended" : lasting(at("lag"))],
    [`of state${limit}${peak ? `, peak ${bytes(peak)}` : ""}`, bytes(at("memory_bytes"))],
    ["rows waiting", num(at("backlog_rows"))],
    ["a batch takes", lasting(at("batch_seconds"))],
    ["late rows", num(at("rows_late")), share(at("rows_late"), at("rows_in"))],
    ["dead rows, errors", num(wrong), "", wrong > 0 && at("errors") > 0],
  ];
  return list.map(([name, value, more, isWrong]) =>
    h(isWrong ? "div.wrong" : "div", {}, h("dt", {}, name), h("dd", {}, value, more ? h("small", {}, ` ${more}`) : null)));
}

const share = (part, all) => (part > 0 && all > 0 ? percent(part / all) : "");
