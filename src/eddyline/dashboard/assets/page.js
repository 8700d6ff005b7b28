// Makes elements of the page. Text is always set as text, never parsed as HTML: names and queries come from outside.

/** An element: `h("p.hint", {id: "x", onclick: f}, "text", child)`. */
export function h(name, props = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  return fill(made, props, children);
}

/** The same in SVG. */
export function s(name, props = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (classes.length) made.setAttribute("class", classes.join(" "));
  return fill(made, props, children);
}

function fill(made, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "width%") made.style.width = `${value}%`;
    else if (key === "left%") made.style.left = `${value}%`;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** The element with an id. */
export const byId = (id) => document.getElementById(id);

/** Replaces the content of an element unless `key` says that it is the same as last time. */
export function redraw(element, key, make) {
  if (element.dataset.key === String(key)) return;
  element.dataset.key = String(key);
  element.replaceChildren(...[make()].flat(Infinity).filter(Boolean));
}

/** A group of buttons of which one is pressed; `chosen(value)` is called with the new one. */
export function choice(element, options, value, chosen) {
  const buttons = options.map(([key, text]) =>
    h("button", { type: "button", "aria-pressed": String(key === value), onclick: () => {
      buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(options[i][0] === key)));
      chosen(key);
    } }, text));
  element.replaceChildren(...buttons);
}

/** A table: titles are texts, or [text, "num"] for numbers; cells are texts or elements. */
export function table(titles, rows, { caption, mark } = {}) {
  const numeric = titles.map((title) => Array.isArray(title));
  return h("table", {},
    caption ? h("caption", {}, caption) : null,
    h("thead", {}, h("tr", {}, titles.map((t, i) => h(numeric[i] ? "th.num" : "th", { scope: "col" }, numeric[i] ? t[0] : t)))),
    h("tbody", {}, rows.map((row, n) =>
      h(mark?.(n) ? "tr.current" : "tr", {}, row.map((cell, i) => h(numeric[i] ? "td.num" : "td", { "data-title": numeric[i] ? titles[i][0] : titles[i] }, cell ?? "–"))))));
}
