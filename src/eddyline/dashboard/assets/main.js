// Puts the page together: events go into the store, the view says which moment is shown, and the panels draw it.
// Panels are drawn at most four times a second, and only if something changed.

import { Changes } from "./changes.js";
import { Chart } from "./chart.js";
import { Connection } from "./connection.js";
import { Detail } from "./detail.js";
import { Graph } from "./graph.js";
import { Groups } from "./groups.js";
import { listen } from "./keys.js";
import { Lanes } from "./lanes.js";
import { byId, h } from "./page.js";
import { drawShort } from "./short.js";
import { Store } from "./store.js";
import { drawAbout, drawNotes, drawPackets, drawPlans, drawStreams } from "./tables.js";
import { theme } from "./theme.js";
import { RANGES, View } from "./view.js";
import { bytes, clock, lasting, wall } from "./words.js";

const EVERY = 250;

history.replaceState(null, "", location.pathname); // the token is in a cookie now

const store = new Store(), view = new View(store), detail = new Detail(store, view), open = (one) => detail.open(one);
const graph = new Graph(store), changes = new Changes(store, open), lanes = new Lanes(store, view, open), groups = new Groups(store, view);
const samples = (label, of, colour, more = {}) => ({ label, of, colour, columns: () => store.samples, ...more });
const rate = { rate: true }, area = { rate: true, area: true };
const chart = (place, title, lines, more = {}) => new Chart(byId(place), title, lines, { view, ...more });

const throughput = [ // a scale for each: results may be a thousandth of the rows, or a thousand times as many
  chart("throughput", "Rows a second", [samples("in", "rows_in", "k0", area)]),
  chart("throughput", "Results a second", [samples("out", "rows_out", "k1", area)]),
];
const health = [
  chart("health", "State", [samples("memory", "memory_bytes", "k0", { area: true })], { format: bytes }),
  chart("health", "Rows held", [samples("rows", "state_rows", "k5")]),
  chart("health", "Watermark behind", [samples("most", "lag", "k3")], { format: lasting }),
  chart("health", "Rows waiting in sources", [samples("rows", "backlog_rows", "k1")]),
  chart("health", "Time of a batch", [samples("mean", "batch_seconds", "k2")], { format: lasting }),
  chart("health", "Batches a second", [samples("batches", "batches", "k5", rate)]),
  chart("health", "Late, dead and wrong rows a second", [samples("late", "rows_late", "k1", rate), samples("dead", "rows_dead", "k4", rate), samples("errors", "errors", "k3", rate)]),
  chart("health", "On disk", [samples("log", "log_bytes", "k6")], { format: bytes }),
];

const panels = [
  () => drawShort(store, view, open), () => graph.draw(view.t), () => changes.draw(view.t),
  () => throughput.forEach((one) => one.draw()), () => lanes.draw(), () => drawPlans(store, view, open), () => groups.draw(),
  () => drawPackets(store, view), () => drawStreams(store, view), () => health.forEach((one) => one.draw()),
  () => drawNotes(store, view), () => drawAbout(store),
];

let dirty = true;
const change = () => (dirty = true);
view.changed = graph.changed = changes.changed = change;
const connection = new Connection(store, change);

function draw() {
  for (const panel of panels) panel();
  detail.draw();
  bar();
}

/** The bar with the time, and the state of the connection. */
function bar() {
  const { t, isLive, isPlaying } = view, slider = byId("slider"), title = store.run?.sources.map((one) => one.name).join(" ⋈ ") ?? "";
  slider.max = Math.max(1, store.last);
  slider.value = t;
  slider.setAttribute("aria-valuetext", clock(t));
  byId("moment").textContent = clock(t);
  byId("moment").title = wall(store.run, t);
  byId("live").setAttribute("aria-pressed", String(isLive));
  byId("live").textContent = store.end ? "End" : store.run?.replay ? "Newest" : "Now";
  byId("play").textContent = isPlaying ? "❚❚" : "▶";
  byId("play").setAttribute("aria-label", isPlaying ? "Stop playing" : "Play from here");
  byId("title").textContent = title;
  document.title = title ? `${title} – Eddyline` : "Eddyline";
  const [is, text] = status(isLive, t), pill = byId("status");
  if (pill.textContent !== text) pill.textContent = text;
  pill.dataset.is = is;
  const ranges = byId("range");
  if (view.zoom && ranges.value !== "") ranges.selectedIndex = -1;
}

function status(isLive, t) {
  if (connection.state === "lost") return ["lost", "Connection lost, trying again"];
  if (connection.state === "refused") return ["lost", "Another run is at this address now"];
  if (connection.state === "connecting") return ["wait", "Connecting"];
  if (!isLive) return ["back", `Looking at ${clock(t)}`];
  if (store.end) return [store.end.status === "failed" ? "failed" : "over", { done: "The run is done", stopped: "The run was stopped", failed: "The run failed" }[store.end.status] ?? "The run is over"];
  if (connection.state === "over") return ["over", "The run is over"];
  return ["live", store.run?.replay ? `Replay, ${clock(t)}` : "Live"];
}

let before = performance.now(), drawn = 0;
function frame(now) {
  view.tick((now - before) / 1000);
  before = now;
  if (dirty && now - drawn >= EVERY) {
    dirty = false;
    drawn = now;
    draw();
  }
  requestAnimationFrame(frame);
}

byId("range").append(...RANGES.map(([value, text]) => h("option", { value }, text)));
byId("range").addEventListener("change", (event) => view.look(event.target.value));
byId("slider").addEventListener("input", (event) => view.goto(Number(event.target.value)));
byId("play").addEventListener("click", () => view.play());
byId("back").addEventListener("click", () => view.jump(-1));
byId("on").addEventListener("click", () => view.jump(1));
byId("live").addEventListener("click", () => view.live());
const turn = theme(() => {
  for (const one of [...throughput, ...health]) one.repaint();
  groups.draw();
});
listen(view, turn);
requestAnimationFrame(frame);
connection.start();
