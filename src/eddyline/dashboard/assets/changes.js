// What changed: decisions as a list, the newest first, each with its verdict. Enter or a click shows its numbers.

import { exactly, wall } from "./words.js";
import { byId, choice, h } from "./page.js";
import { FAMILIES, reason, verdict } from "./store.js";

const SHOWN = 120;
export const PAID = { yes: "paid", no: "did not pay", open: "not clear", "": "" };

export class Changes {
  constructor(store, open) {
    this.store = store;
    this.open = open;
    this.kind = "main";
    this.items = new Map();
    this.changed = () => {};
    const names = { plan: "Plans", migration: "Migrations", move: "Moves", disk: "Disk", route: "Routes" };
    choice(byId("kinds"), [["main", "All"], ...Object.entries(names), ["stays", "Plans kept"]], "main", (kind) => {
      this.kind = kind;
      this.changed();
    });
    byId("changes").addEventListener("keydown", (event) => this.arrow(event));
  }

  draw(t) {
    const fits = this.kind === "main" ? (one) => !one.isMinor : this.kind === "stays" ? (one) => one.stays : (one) => one.family === this.kind && !one.stays;
    const found = this.store.decisions.filter((one) => one.t <= t + 1e-9 && fits(one)), shown = found.slice(-SHOWN).reverse();
    const list = byId("changes"), kept = new Map(shown.map((one) => [one, this.items.get(one) ?? this.item(one)]));
    for (const [one, item] of kept) item.tell(verdict(one));
    for (const [one, item] of this.items) if (!kept.has(one)) item.element.remove();
    let at = 0;
    for (const { element } of kept.values()) {
      // Only what is new is put in: an element that is moved would lose the focus.
      if (list.children[at] !== element) list.insertBefore(element, list.children[at] ?? null);
      at += 1;
    }
    this.items = kept;
    byId("more").textContent = found.length ? (found.length > SHOWN ? `The newest ${SHOWN} of ${found.length}.` : `${found.length} in all.`) : "None so far.";
  }

  item(one) {
    const { sign, name } = FAMILIES[one.family], badge = h("span.badge");
    const when = wall(this.store.run, one.t);
    const button = h("button", { type: "button", onclick: () => this.open(one), title: when },
      h("span.when", {}, exactly(one.t)), h("span.mark", { "aria-hidden": "true" }, sign),
      h("span.what", {}, h("span.unseen", {}, `${name}: `), one.what), badge, h("span.why", {}, reason(one)));
    const tell = (paid) => {
      if (badge.dataset.paid === paid) return;
      badge.dataset.paid = paid;
      badge.textContent = PAID[paid];
      badge.hidden = !paid;
    };
    badge.dataset.paid = "?";
    return { element: h("li", {}, button), tell };
  }

  arrow(event) {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key], buttons = [...byId("changes").querySelectorAll("button")];
    const here = buttons.indexOf(document.activeElement);
    if (!way || here < 0) return;
    event.preventDefault();
    buttons[Math.max(0, Math.min(buttons.length - 1, here + way))].focus();
  }
}
