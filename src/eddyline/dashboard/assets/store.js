// A run as the page knows it: what its events said. It draws nothing.
// Invariant: everything that grows with time is thinned out, so a page that is open for days stays small.

import { Columns } from "./columns.js";
import { plain } from "./words.js";

const TOTALS = ["rows_in", "rows_out", "rows_late", "rows_dead", "errors", "batches"];
const LEVELS = ["state_rows", "memory_bytes", "batch_seconds", "watermark_us", "backlog_rows", "lag", "log_bytes", "disk_groups", "ended"];
const STRETCH = 4;
const MOST_DETAILS = 600, MOST_MAPS = 150, MOST_STRETCHES = 3000, MOST_DECISIONS = 4000;

/** Which family a kind of decision is of. */
export const FAMILIES = {
  plan: { sign: "◆", name: "Plan", of: ["plan", "trial"] },
  migration: { sign: "■", name: "Migration", of: ["migration"] },
  move: { sign: "▲", name: "Move", of: ["move", "undo-move", "share", "unshare", "balance", "track-over", "slots"] },
  disk: { sign: "▼", name: "Disk", of: ["spill", "force-spill", "sweep", "warm", "left"] },
  route: { sign: "●", name: "Route", of: ["route", "reroute"] },
  other: { sign: "○", name: "Other", of: [] },
};
/** Kinds that are steps of something larger; they are in the list of their family only. */
const MINOR = new Set(["trial", "sweep", "warm", "balance", "track-over"]);
const FAMILY_OF = Object.fromEntries(Object.entries(FAMILIES).flatMap(([key, { of }]) => of.map((kind) => [kind, key])));

export class Store {
  constructor() {
    this.reset();
  }

  reset() {
    this.run = null;
    this.end = null;
    this.last = 0;
    this.version = 0;
    this.samples = new Columns([...TOTALS, ...LEVELS]);
    this.streams = new Map();
    this.details = [];
    this.maps = [];
    this.decisions = [];
    this.byId = new Map();
    this.notes = [];
    this.trees = [];
    this.routes = new Map();
    this.memoryLimit = null;
  }

  add(event) {
    if (!event || typeof event.type !== "string") return;
    if (Number.isFinite(event.t)) this.last = Math.max(this.last, event.t);
    this.version += 1;
    const known = { run: "head", sample: "sample", decision: "decision", outcome: "outcome", note: "note", end: "over", rewind: "rewind" }[event.type];
    if (known) this[known](event);
  }

  /** A replay begins again. */
  rewind() {
    const { run } = this;
    this.reset();
    this.run = run;
  }

  head(event) {
    this.run ??= { sources: [], edges: [], settings: {}, ...event };
  }

  sample(event) {
    const streams = Object.values(event.streams ?? {}), lags = streams.map((one) => behind(one, event.watermark_us)).filter(Number.isFinite);
    this.samples.add(event.t, {
      ...event, lag: lags.length ? Math.max(...lags) : null, log_bytes: event.disk?.log_bytes, disk_groups: event.disk?.groups,
      ended: Number(streams.length > 0 && streams.every((one) => one.ended)),
    });
    this.memoryLimit = event.memory_limit ?? this.memoryLimit;
    for (const [name, one] of Object.entries(event.streams ?? {})) {
      if (!this.streams.has(name)) this.streams.set(name, new Columns(["rows", "late", "dead", "newest_us", "watermark_us", "lag", "ended"], 4000));
      this.streams.get(name).add(event.t, { ...one, lag: behind(one, event.watermark_us), ended: Number(one.ended) });
    }
    const { t, routes = [], steps = [], packets = [], tree = "", slots = [], spill = null, disk = null } = event;
    keep(this.details, { t, routes, steps, packets, tree, slots, spill, disk }, MOST_DETAILS);
    if (event.groups?.group?.length) keep(this.maps, packed(t, event.groups), MOST_MAPS);
    if (tree) stretch(this.trees, t, tree, (from) => this.changed(from, t));
    for (const { source, ...route } of routes) {
      if (!this.routes.has(source)) this.routes.set(source, []);
      stretch(this.routes.get(source), t, asked(route, this.run).join(" → "), (from) => this.changed(from, t, source));
    }
  }

  /** When the plan, or the route of a source, changed between two samples: at the last decision that says so, or at the second one. */
  changed(from, to, source = null) {
    const found = this.decisions.findLast((one) => one.t <= from || one.family === "migration" || (source && one.family === "route" && one.what.replace(/^slot \d+: /, "").startsWith(`${source}:`)));
    return found && found.t > from ? found.t : to;
  }

  /** How many routes changed together with the plan that began last, and when; null if none did. */
  withPlan(t) {
    const plan = this.trees.findLast((one) => one.from <= t), at = plan?.from;
    const many = at > 0 ? [...this.routes.values()].filter((list) => list.some((one) => one.from === at)).length : 0;
    return many ? { at, many, all: many === this.routes.size } : null;
  }

  /** The optimizer's trial of a plan, if it is over. */
  trial(plan) {
    const later = this.decisions.find((one) => one.id > plan.id && one.slot === plan.slot && (one.kind === "trial" || (one.kind === "plan" && !one.stays)));
    return later?.kind === "trial" ? later : null;
  }

  decision(event) {
    const family = FAMILY_OF[event.kind] ?? "other";
    const what = plain(event.what), stays = event.kind === "plan" && !what.includes("→");
    const decision = { measured: {}, expected: {}, ...event, what, why: plain(event.why), outcomes: [], family, stays, isMinor: stays || MINOR.has(event.kind) };
    this.decisions.push(decision);
    this.byId.set(event.id, decision);
    if (this.decisions.length > MOST_DECISIONS) this.forget();
  }

  /** The oldest route changes and plans that stayed are forgotten first. */
  forget() {
    const old = this.decisions.length >> 1;
    this.decisions = this.decisions.filter((one, place) => {
      const stays = place >= old || (place % 2 && (one.family === "route" || one.stays)) || !(one.family === "route" || one.stays);
      if (!stays) this.byId.delete(one.id);
      return stays;
    });
    for (const one of this.decisions.splice(0, Math.max(0, this.decisions.length - MOST_DECISIONS))) this.byId.delete(one.id);
  }

  outcome(event) {
    const decision = this.byId.get(event.of);
    if (!decision) return;
    decision.outcomes.push({ ...event, what: plain(event.what) });
    if (decision.outcomes.length > 10) decision.outcomes.shift();
  }

  note(event) {
    this.notes.push(event);
    if (this.notes.length > 200) this.notes.shift();
  }

  over(event) {
    this.end = event;
  }

  /** The sample in full at a time. */
  detail(t) {
    return newest(this.details, t);
  }

  /** The work of the steps in the last seconds before a time in which there was any. */
  steps(t) {
    const now = this.detail(t), found = new Map();
    for (let place = this.details.lastIndexOf(now), tuples = 0; place >= 0; place--) {
      const one = this.details[place];
      if (tuples && one.t < now.t - STRETCH) break;
      if (one.tree !== now.tree) break;
      for (const step of one.steps) {
        const known = found.get(`${step.at} ${step.step}`) ?? { ...step, tuples: 0, produced: 0, us: 0 };
        known.tuples += step.tuples;
        known.produced += step.produced;
        known.us += step.us ?? 0;
        tuples += step.tuples;
        found.set(`${step.at} ${step.step}`, known);
      }
    }
    return [...found.values()];
  }

  /** The groups at a time. */
  map(t) {
    return newest(this.maps, t);
  }

  /** Decisions up to a time that change something, the newest last. */
  changes(t) {
    return this.decisions.filter((one) => one.t <= t + 1e-9 && !one.isMinor);
  }

  /** The name of the alias of a source. */
  name(alias) {
    return this.run?.sources.find((one) => one.alias === alias)?.name ?? alias;
  }

  /** The class of the colour of a source. */
  colour(alias) {
    const place = this.run?.sources.findIndex((one) => one.alias === alias) ?? -1;
    return place < 0 ? "" : `k${place % 8}`;
  }
}

/** yes, no, open: measured without a verdict, or empty: nothing has come of it yet. */
export function verdict(decision) {
  const last = decision.outcomes.at(-1);
  if (!last) return "";
  return last.paid === true ? "yes" : last.paid === false ? "no" : "open";
}

/** Rows that come in a second of event time, by the optimizer, when a plan was decided on; 0 if it is not told. */
export const rowRate = (one) => Object.entries(one.measured).reduce((sum, [name, value]) => sum + (name.startsWith("rate ") ? value : 0), 0);

/** Whether something is measured after such a decision. */
export const awaits = ({ kind, family, stays }) => family === "route" || kind === "move" || (kind === "plan" && !stays);

/** The aliases of the sources that a route asks, in order; a selection is its text. */
export function asked(route, run) {
  return (route.steps ?? []).map((step) => target(step, run));
}

/** What a step asks. */
export function target(step, run) {
  const first = String(step).split(" ")[0];
  return run?.sources.some((one) => one.alias === first) ? first : String(step).split(" by ")[0];
}

/** Why a plan was looked for, without the predictions, which follow. */
export function reason(decision) {
  const parts = decision.why.split("; "), end = decision.kind === "plan" ? parts.findIndex((part) => part.includes(" of a core")) : -1;
  return end > 0 ? parts.slice(0, end).join("; ") : decision.why;
}

/** How many seconds the newest row of a stream is ahead of the watermark; null if the stream has ended. */
function behind(one, watermark) {
  const known = watermark ?? one.watermark_us;
  if (one.ended) return null;
  return Number.isFinite(one.newest_us) && Number.isFinite(known) ? Math.max(0, (one.newest_us - known) / 1e6) : null;
}

function packed(t, groups) {
  return {
    t, slot: Uint16Array.from(groups.slot ?? []), group: Uint16Array.from(groups.group), bytes: Float32Array.from(groups.bytes ?? []),
    rows: Float32Array.from(groups.rows ?? []), results: Float32Array.from(groups.results ?? []), on_disk: Uint8Array.from(groups.on_disk ?? [], Number),
  };
}

function keep(list, one, most) {
  list.push(one);
  if (list.length > most) thin(list);
}

function thin(list) {
  const half = list.length >> 1;
  let at = 0;
  for (let i = 0; i < list.length; i++) if (i >= half || i % 2) list[at++] = list[i];
  list.length = at;
}

/** Lengthens the last stretch of time if it still says the same, else begins one; `since` tells when, after the last sample that said so. */
function stretch(list, t, text, since) {
  const last = list.at(-1);
  if (last?.text === text) last.to = t;
  else {
    const from = last ? since(last.to) : 0;
    if (last) last.to = from;
    list.push({ from, to: t, text });
    if (list.length > MOST_STRETCHES) {
      thin(list);
      for (let i = 1; i < list.length; i++) list[i - 1].to = list[i].from;
    }
  }
}

function newest(list, t) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].t <= t + 1e-9) low = middle + 1;
    else high = middle;
  }
  return list[low - 1] ?? null;
}
