// The panels that are tables: plans, packets, streams, and what the run is.

import { bytes, clock, exactly, full, lasting, num, percent, stamp, valued } from "./words.js";
import { byId, h, redraw, table } from "./page.js";
import { reason, rowRate, verdict } from "./store.js";
import { PAID } from "./changes.js";

export function drawPlans(store, view, open) {
  const t = view.t, tree = store.detail(t)?.tree ?? "";
  byId("plan-now").textContent = tree ? `Now: ${tree}${kept(tree)}` : "";
  const found = store.decisions.filter((one) => one.family === "plan" && !one.isMinor && one.t <= t + 1e-9);
  const stays = store.decisions.filter((one) => one.stays && one.t <= t + 1e-9);
  redraw(byId("plans"), `${found.length} ${stays.length} ${found.map(verdict).join()}`, () => {
    if (!found.length) return h("p.muted", {}, stays.length ? `No change so far. ${keptText(stays)}` : "No change so far.");
    const rows = [...found].reverse().map((one) => {
      const [, slot, plans] = one.what.match(/^(slot \d+: )?(.*)$/s), [before, after] = plans.split(/\s*→\s*/), last = one.outcomes.at(-1);
      return [
        [h("button.link", { type: "button", onclick: () => open(one) }, exactly(one.t)), slot ? h("span.sub", {}, slot.slice(0, -2)) : null],
        h("span.plan-text", {}, before, h("span.sub", {}, "→ "), h("strong", {}, after)), reason(one),
        predicted(one), last ? last.what : h("span.muted", {}, "not yet"), badge(one),
      ];
    });
    return [table(["When", "From → to", "Why", "Predicted", "Measured afterwards", "Verdict"], rows, { mark: (n) => n === 0 }), h("p.hint", {}, keptText(stays))];
  });
}

/** What the inner brackets of a plan mean, by one of them: `(a b)` keeps results, `(a)+` groups rows. */
function kept(tree) {
  const inner = tree.match(/.\((\w+(?: \w+)+)\)/)?.[1];
  if (inner) return `: results of ${inner.split(" ").join(" and ")} are kept, and joined with the others.`;
  const grouped = [...tree.matchAll(/\((\w+)\)\+/g)].map((one) => one[1]);
  return grouped.length ? `: rows of ${grouped.join(" and ")} are grouped before they are joined.` : "";
}

const keptText = (kept) => (kept.length ? `${kept.length} more times a plan was looked for and the present one kept, last at ${clock(kept.at(-1).t)}.` : "");

function badge(one) {
  const paid = verdict(one);
  return h("span.badge", { "data-paid": paid }, PAID[paid] || "open");
}

/** What the plan found was expected to cost, beside the plan before. The cost a row can be compared with what is measured afterwards. */
function predicted(one) {
  const all = { ...one.measured, ...one.expected }, rate = rowRate(one), said = [];
  const cost = (value) => (rate ? lasting(value / rate) : num(value));
  if (Number.isFinite(all.cpu)) said.push(`${Number.isFinite(all["cpu now"]) ? `${cost(all["cpu now"])} → ` : ""}${cost(all.cpu)} ${rate ? `a row${Number.isInteger(one.slot) ? " of the slot" : ""}` : "of a core"}`);
  if (Number.isFinite(all.memory)) said.push(`${Number.isFinite(all["memory now"]) ? `${bytes(all["memory now"])} → ` : ""}${bytes(all.memory)}`);
  return said.length ? said.map((text, n) => h(n ? "span.sub" : "span", {}, text)) : Object.entries(one.expected).map(([k, v]) => `${k} ${valued(k, v)}`).join(", ");
}

export function drawPackets(store, view) {
  const detail = store.detail(view.t), packets = (detail?.packets ?? []).filter((one) => one.packets > 0 || one.occupancy > 0);
  redraw(byId("packets"), `${detail?.t}`, () => {
    if (!packets.length) return h("p.muted", {}, "No packets in the last second.");
    const most = Math.log2(Math.max(2, ...packets.map((one) => Math.max(one.mean ?? 1, one.threshold ?? 1))));
    const wide = (value) => (100 * Math.log2(Math.max(1, value ?? 1))) / most;
    const rows = packets.map((one) => [
      h("strong", {}, one.at), num(one.mean),
      h("span.bar", { title: `${num(one.mean)} rows a packet; a queue is served from ${full(one.threshold)}` }, h("i", { "width%": wide(one.mean) }), h("b", { "left%": wide(one.threshold) })),
      num(one.threshold), num(one.packets), num(one.occupancy),
    ]);
    return table(["Rows that have", ["rows a packet", "num"], "on a scale that doubles", ["served from", "num"], ["packets", "num"], ["waiting", "num"]], rows);
  });
}

export function drawStreams(store, view) {
  const t = view.t, watermark = stamp(store.samples.value("watermark_us", t));
  byId("watermark").textContent = `Watermark of the query: ${watermark}. Behind: how far it is behind the newest row of a stream.`;
  redraw(byId("streams"), `${store.samples.at(t)} ${store.streams.size}`, () => {
    const rows = [...store.streams].map(([name, columns]) => {
      const at = (column) => columns.value(column, t);
      return [h("strong", {}, name), num(columns.rate("rows", t)), full(at("rows")), stamp(at("newest_us")), stamp(at("watermark_us")), at("ended") ? "ended" : lasting(at("lag")),
        `${full(at("late"))} ${at("late") > 0 ? `(${percent(at("late") / at("rows"))})` : ""}`, full(at("dead"))];
    });
    const n = (text) => [text, "num"];
    return table(["Stream", n("rows a second"), n("rows"), n("newest row"), n("watermark"), n("behind"), n("late"), n("dead")], rows);
  });
}

export function drawAbout(store) {
  const { run } = store;
  redraw(byId("about"), `${run?.began} ${Boolean(store.end)}`, () => {
    if (!run) return h("p.muted", {}, "Not known yet.");
    const folded = (title, content, open) => h("details", { open }, h("summary", {}, title), content);
    const text = (words) => h("pre", { tabindex: 0 }, words);
    return [
      h("p", {}, `Eddyline ${run.eddyline ?? ""} on the ${run.engine ?? ""} engine, ${run.slots ?? 1} slot${run.slots > 1 ? "s" : ""}, ${run.groups ?? 0} groups, since ${new Date(run.began).toLocaleString()}.`),
      folded("The query", text(run.query ?? ""), true), folded("The plan at the start", text(run.plan ?? "")),
      folded("Settings", table(["Setting", "Value"], Object.entries(run.settings ?? {}).map(([key, value]) => [h("code", {}, key), String(value)]))),
      folded("Sources", table(["Alias", "Name", "Kind", "Window"], run.sources.map((one) => [one.alias, one.name, one.kind, one.window]))),
    ];
  });
}

export function drawNotes(store, view) {
  const found = store.notes.filter((one) => one.level !== "info" && one.t <= view.t + 1e-9).slice(-20);
  redraw(byId("notes"), found.length, () => found.reverse().map((one) => h("li", { "data-level": one.level }, `${clock(one.t)} ${one.text}`)));
}

export function drawSlots(store, view, place) {
  const slots = store.detail(view.t)?.slots ?? [], map = store.map(view.t);
  const counts = new Map(), cold = new Map();
  map?.slot.forEach((slot, n) => {
    counts.set(slot, (counts.get(slot) ?? 0) + 1);
    cold.set(slot, (cold.get(slot) ?? 0) + map.on_disk[n]);
  });
  const rows = slots.map((one) => [String(one.slot), num(counts.get(one.slot)), num(one.rows), bytes(one.bytes), num(cold.get(one.slot)), one.busy === null ? "–" : percent(one.busy)]);
  const n = (text) => [text, "num"];
  redraw(place, JSON.stringify(rows), () => (rows.length ? table(["slot", n("groups"), n("rows"), n("memory"), n("groups on disk"), n("CPU in a batch")], rows) : []));
}
