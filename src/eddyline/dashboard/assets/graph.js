// The join graph with today's routes: a line for each pair of sources of which one is asked for partners of the other.
// Its share is that of the time of all look-ups, because a look-up that finds much takes far longer than one that finds nothing.
// Lines are kept between two drawings and only their widths change, so nothing jumps and the drops go on.

import { lasting, num, percent } from "./words.js";
import { byId, h, redraw, s } from "./page.js";
import { asked, target } from "./store.js";

const NODE = { w: 116, h: 54 }, SMALL = { w: 92, h: 48 };

export class Graph {
  constructor(store) {
    this.store = store;
    this.source = null;
    this.flows = new Map();
    this.changed = () => {};
  }

  draw(t) {
    const { run } = this.store, detail = this.store.detail(t);
    if (!run) return;
    const wide = Math.max(300, Math.min(720, Math.floor(byId("graph").clientWidth / 20) * 20));
    redraw(byId("graph"), `${wide} ${run.sources.map((one) => one.alias)}`, () => this.frame(run, wide));
    const steps = detail ? this.store.steps(t) : [], traffic = pairs(steps, run), total = time(traffic);
    const route = detail?.routes.find((one) => one.source === this.source), hops = route ? walked(route, run, steps) : null;
    const now = hops ? new Set(hops.map((hop) => hop.pair)) : null;
    for (const [pair, one] of traffic) this.flow(pair).set(one, total, now && !now.has(pair));
    for (const [pair, flow] of this.flows) if (!traffic.has(pair)) flow.set(null, total, true);
    this.number(hops ?? []);
    this.rates(t);
    this.svg.setAttribute("aria-label", spoken(traffic, total));
    redraw(byId("paths"), `${this.source} ${detail?.t}`, () => this.paths(detail, run, steps));
  }

  /** The nodes, the conditions of the query, and empty layers for what moves. */
  frame(run, wide) {
    const count = run.sources.length, box = wide < 520 ? SMALL : NODE, high = (count <= 2 ? 200 : count === 3 ? 380 : 440) * (wide < 520 ? 0.8 : 1);
    this.box = box;
    this.wide = wide;
    this.spots = places(count, wide, high, box);
    this.flows.clear();
    this.middle = s("g");
    this.steps = s("g");
    this.alias = new Map(run.sources.map((one, place) => [one.alias, place]));
    const wires = run.edges.filter((edge) => edge.between?.length === 2).map((edge) => s("path.wire.said", { d: line(...edge.between.map((n) => this.spots[n])) }));
    this.nodes = run.sources.map((one, place) => this.node(one, place));
    this.svg = s("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img" }, s("g", {}, wires), this.middle, s("g", {}, this.nodes.map((one) => one.g)), this.steps);
    return this.svg;
  }

  node(one, place) {
    const { x, y } = this.spots[place], { w, h: tall } = this.box, sub = s("text.sub", { x, y: y + 14 });
    const title = s("text.alias", { x, y: y - 4 }, one.alias === one.name ? one.name : `${one.alias} · ${one.name}`);
    const g = s(`g.node.k${place % 8}`, {},
      s("rect", { x: x - w / 2, y: y - tall / 2, width: w, height: tall, rx: 12 }),
      title, sub);
    return { g, title, sub, one };
  }

  rates(t) {
    for (const { title, sub, one } of this.nodes) {
      shorten(title, this.box.w - 10);
      const columns = this.store.streams.get(one.name);
      sub.textContent = columns ? `${num(columns.rate("rows", t))} rows/s` : one.kind;
    }
  }

  flow(pair) {
    if (!this.flows.has(pair)) this.flows.set(pair, new Flow(pair, this.spots, this.box, this.middle, this.wide));
    return this.flows.get(pair);
  }

  /** Numbers on the lines of the chosen route. */
  number(hops) {
    this.steps.replaceChildren(...hops.filter((hop) => this.flows.has(hop.pair)).map((hop, n) => {
      const { x, y } = this.flows.get(hop.pair).near, colour = this.alias.get(this.source) % 8;
      return s(`g.step.k${colour}`, {}, s("circle", { cx: x, cy: y, r: 11 }), s("text", { x, y: y + 4 }, n + 1));
    }));
  }

  /** The routes as buttons, which is also how they are read without the drawing. */
  paths(detail, run, steps) {
    const list = (detail?.routes ?? []).map((route) => {
      const hops = walked(route, run, steps), pressed = route.source === this.source;
      return h("button.path", { type: "button", "aria-pressed": String(pressed), onclick: () => {
        this.source = pressed ? null : route.source;
        this.changed();
      } },
      h(`span.from`, {}, this.store.name(route.source)),
      h("span.hops", {}, h(`span.chip.${this.store.colour(route.source)}`, {}, route.source), hops.map((hop) => [
        h("span.hop", {}, hop.found === null ? "→" : `→ ${hop.found} →`),
        h(`span.chip.${this.store.colour(hop.text) || "wide"}`, {}, hop.text),
      ])),
      h("span.share", {}, route.share === null || route.share === undefined ? "" : `${percent(route.share)} go this way`));
    });
    const hint = h("p.hint", {}, "0.5× between two sources: each row finds 0.5 partners there. The fewer, the earlier a source should be asked. “a b → c” on a line: rows joined of a and b ask c.");
    return [h("div.paths", { role: "group", "aria-label": "Routes: choose one to follow it in the drawing" }, list), hint];
  }
}

/** The line from one source to another that it asks, with drops that move along it. */
class Flow {
  constructor(pair, spots, box, layer, wide) {
    const [a, b] = pair.split(">").map(Number), p = spots[a], q = spots[b];
    const curve = bent(p, q, box);
    this.near = curve.near;
    this.label = curve.label;
    this.wide = wide;
    this.line = s(`path.flow.k${a % 8}`, { d: curve.d });
    this.drops = s("path.drops", { d: curve.d });
    this.tip = s(`path.head-of.k${a % 8}`, { d: "M0 0L-11 -6L-11 6Z", transform: `translate(${curve.end.x} ${curve.end.y}) rotate(${curve.turn})` });
    this.text = s("text.share", { x: curve.label.x, y: curve.label.y });
    this.title = s("title");
    this.line.append(this.title);
    layer.append(this.line, this.drops, this.tip, this.text);
  }

  set(one, total, isDim) {
    const share = one ? one.us / total : 0, width = one ? 1.5 + 15 * share : 0;
    this.line.setAttribute("stroke-width", width);
    this.drops.style.display = width > 3 && !isDim ? "" : "none";
    for (const part of [this.line, this.tip]) part.classList.toggle("dim", isDim || !width);
    this.tip.style.display = width ? "" : "none";
    this.text.textContent = width && share >= 0.02 && !isDim ? `${askers(one)}${percent(share)}` : "";
    if (this.text.textContent) {
      const half = this.text.getComputedTextLength() / 2 + 5;
      this.text.setAttribute("x", Math.max(half, Math.min(this.wide - half, this.label.x)));
    }
    this.title.textContent = one ? one.steps.map((step) => said(step, total)).join("\n") : "";
  }
}

/** The work of steps by pair: `a>b` where b is asked for partners of a row that has a. The steps of a pair are sorted by their time. */
function pairs(steps, run) {
  const found = new Map();
  for (const step of steps) {
    const pair = pair_of(step, run);
    if (!pair || !step.tuples) continue;
    if (!found.has(pair)) found.set(pair, { us: 0, steps: [] });
    const one = found.get(pair), who = step.span.map((n) => run.sources[n].alias).join(" "), asked = target(step.step, run);
    one.us += step.us ?? 0;
    one.steps.push({ who, asked, isWide: step.span.length > 1 || asked.includes(" "), tuples: step.tuples, produced: step.produced, us: step.us ?? 0 });
    one.steps.sort((x, y) => y.us - x.us);
  }
  return found;
}

/** Who asks along a line, for its label; empty if it is only the source where the line begins, which asks the one where it ends. */
function askers({ steps: [first, ...more] }) {
  const others = more.length ? " …" : "";
  return others || first.isWide ? `${first.who} → ${first.asked}${others} ` : "";
}

/** All steps, those first that take most time. */
const dearest = (traffic) => [...traffic.values()].flatMap((one) => one.steps).sort((x, y) => y.us - x.us);

/** The time of all look-ups. */
const time = (traffic) => [...traffic.values()].reduce((sum, one) => sum + one.us, 0) || 1;

/** A step as a sentence. */
function said(step, total) {
  const each = lasting(step.us / step.tuples / 1e6);
  return `${asks(step)}: ${percent(step.us / total)} of the time; ${num(step.tuples)} look-ups, each takes ${each} and finds ${num(step.produced / step.tuples)}`;
}

const asks = ({ who, asked }) => `${who.includes(" ") ? `(${who})` : who} asks ${asked}`;

/** The step that takes most time around a moment, and its share; null if there is none. */
export function most(store, t) {
  if (!store.run || !store.detail(t)) return null;
  const traffic = pairs(store.steps(t), store.run), [first] = dearest(traffic);
  return first?.us ? `${asks(first)}, ${percent(first.us / time(traffic))}.` : null;
}

/** The pair of sources that a step goes between: the one it asks, and the one whose key it uses. */
function pair_of({ span = [], to, step = "" }, run) {
  const added = (to ?? []).filter((n) => !span.includes(n));
  if (!added.length || !span.length) return null;
  const places = run.sources.map((one) => one.alias);
  const named = [...String(step).matchAll(/([A-Za-z_]\w*)\s*\./g)].map((match) => places.indexOf(match[1]));
  const target = added.find((n) => named.includes(n)) ?? added[0];
  const known = named.find((n) => span.includes(n)) ?? run.edges.filter((e) => e.between?.includes(target)).flatMap((e) => e.between).find((n) => span.includes(n)) ?? span[0];
  return `${known}>${target}`;
}

/** The hops of a route: what is asked, along which line, and how many partners a row finds there. */
function walked(route, run, steps) {
  return asked(route, run).map((text, place) => {
    const span = route.spans?.[place], said = route.steps[place];
    const step = steps.find((one) => one.step === said && (!span || String(one.span) === String(span)));
    const found = step?.tuples ? `${num(step.produced / step.tuples)}×` : null;
    return { text, pair: step ? pair_of(step, run) : null, found };
  });
}

function places(count, across, high, box) {
  const middle = { x: across / 2, y: high / 2 };
  if (count === 1) return [middle];
  if (count === 2) return [{ x: across * 0.2, y: middle.y }, { x: across * 0.8, y: middle.y }];
  const wide = across / 2 - box.w / 2 - 14, tall = high / 2 - box.h / 2 - 26, turn = count === 4 ? -0.75 : -0.5;
  const grow = count === 4 ? Math.SQRT2 : 1, clip = (v, most) => Math.max(-most, Math.min(most, v));
  return Array.from({ length: count }, (_, n) => {
    const angle = Math.PI * (turn + (2 * n) / count);
    return { x: middle.x + clip(Math.cos(angle) * wide * grow, wide), y: middle.y + clip(Math.sin(angle) * tall * grow, tall) };
  });
}

/** Cut a text in the drawing until it is at most so wide. */
function shorten(text, most) {
  while (text.getComputedTextLength() > most && text.textContent.length > 2) text.textContent = `${text.textContent.slice(0, -2)}…`;
}

const line = (p, q) => `M${p.x} ${p.y}L${q.x} ${q.y}`;

/** A curve from one node to another, a little to its right, so that both directions can be seen. */
function bent(p, q, box) {
  const dx = q.x - p.x, dy = q.y - p.y, long = Math.hypot(dx, dy) || 1, side = { x: -dy / long, y: dx / long }, out = Math.min(30, long * 0.1);
  const mid = { x: (p.x + q.x) / 2 + side.x * out * 2, y: (p.y + q.y) / 2 + side.y * out * 2 };
  const begin = edge(p, mid, box), end = edge(q, mid, box), at = (u) => ({
    x: (1 - u) ** 2 * begin.x + 2 * u * (1 - u) * mid.x + u * u * end.x, y: (1 - u) ** 2 * begin.y + 2 * u * (1 - u) * mid.y + u * u * end.y,
  });
  const label = at(0.3), near = at(0.62);
  return {
    d: `M${begin.x} ${begin.y}Q${mid.x} ${mid.y} ${end.x} ${end.y}`, end, near, turn: (Math.atan2(end.y - mid.y, end.x - mid.x) * 180) / Math.PI,
    label: { x: label.x + side.x * 13, y: label.y + side.y * 13 + 4 },
  };
}

/** Where a line from the middle of a node leaves its box. */
function edge(node, to, box) {
  const dx = to.x - node.x, dy = to.y - node.y, w = box.w / 2 + 7, tall = box.h / 2 + 7;
  const u = Math.min(w / Math.abs(dx || 1e-9), tall / Math.abs(dy || 1e-9));
  return { x: node.x + dx * u, y: node.y + dy * u };
}

function spoken(traffic, total) {
  return `Join graph. Shares of the time of look-ups: ${dearest(traffic).slice(0, 6).map((step) => `${asks(step)}: ${percent(step.us / total)}`).join(", ") || "none yet"}`;
}
