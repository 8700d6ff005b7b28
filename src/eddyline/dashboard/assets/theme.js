// Dark or light: as the system says, until the button is pressed.

import { byId } from "./page.js";

const KEPT = "eddyline-theme", dark = matchMedia("(prefers-color-scheme: dark)");

/** Shows the theme and returns the switch; `changed` is called after each change. */
export function theme(changed) {
  const own = () => {
    try { return localStorage.getItem(KEPT); } catch { return null; }
  };
  const show = () => {
    const now = own() ?? (dark.matches ? "dark" : "light"), button = byId("theme");
    document.documentElement.dataset.theme = now;
    button.textContent = now === "dark" ? "☀ Light" : "☾ Dark";
    button.setAttribute("aria-label", now === "dark" ? "Light theme" : "Dark theme");
    changed();
  };
  const turn = () => {
    try { localStorage.setItem(KEPT, document.documentElement.dataset.theme === "dark" ? "light" : "dark"); } catch { /* private windows keep nothing */ }
    show();
  };
  dark.addEventListener("change", show);
  byId("theme").addEventListener("click", turn);
  show();
  return turn;
}
