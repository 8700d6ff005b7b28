// The keyboard: what can be done with the mouse, without it.

import { byId, h, table } from "./page.js";

const KEYS = [
  ["space", "play, or stop playing"], ["← →", "a second back or on (shift: ten)"], ["[ ]", "to the change before, or the next one"],
  ["l", "to the newest moment"], ["1 2 3 4", "all, 1 minute, 10 minutes, 1 hour in the charts"], ["t", "dark or light"],
  ["g c o p", "to the graph, the changes, routes over time, plans"], ["?", "these keys"], ["esc", "close"],
];
const PLACES = { g: "graph-title", c: "changes-title", o: "lanes-title", p: "plans-title" };

export function listen(view, theme) {
  const dialog = byId("keys");
  dialog.append(h("div.head", {}, h("h2", { id: "keys-title" }, "Keys"), h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Close")),
    table(["Key", "What it does"], KEYS.map(([key, what]) => [h("kbd", {}, key), what])));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  byId("help").addEventListener("click", () => dialog.showModal());
  const ranges = byId("range");
  document.addEventListener("keydown", (event) => {
    const { key, target } = event, isBusy = document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey;
    if (isBusy || target.matches("input, select, textarea")) return;
    const step = event.shiftKey ? 10 : 1;
    const known = {
      " ": () => !target.matches("button, summary") && view.play(), ArrowLeft: () => view.goto(view.t - step), ArrowRight: () => view.goto(view.t + step),
      "[": () => view.jump(-1), "]": () => view.jump(1), l: () => view.live(), t: theme, "?": () => dialog.showModal(),
    }[key] ?? (key in PLACES ? () => go(PLACES[key]) : "1234".includes(key) ? () => view.look((ranges.value = ranges.options[key - 1].value)) : null);
    if (!known || known() === false) return;
    event.preventDefault();
  });
}

function go(id) {
  const title = byId(id);
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
  title.scrollIntoView({ block: "start" });
}
