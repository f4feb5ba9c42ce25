// Elements made of plain text: nothing that a document says is ever read as HTML.

export const at = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Shapes and colours have different counts, so that forty labels differ in one or the other.
const SHAPES = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x} ${y - 1.2 * r}l${1.2 * r} ${2.2 * r}h${-2.4 * r}z`,
  (x, y, r) => `M${x} ${y - 1.4 * r}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}z`,
  (x, y, r) => `M${x - 1.3 * r} ${y - 0.5 * r}h${2.6 * r}v${r}h${-2.6 * r}z`,
];

export const colour = (column) => (column < 0 ? "colour-none" : `colour-${column % 8}`);
export const shape = (column, x, y, r) => SHAPES[column < 0 ? 0 : column % SHAPES.length](x, y, r);

export function mark(column) {
  const path = svg("path", { d: shape(column, 8, 8, 5), class: colour(column) });
  return svg("svg", { viewBox: "0 0 16 16", class: "mark", "aria-hidden": "true" }, path);
}

export function bar(share, kind) {
  const inner = el("span", { className: "bar-inner" });
  inner.style.inlineSize = `${Math.round(100 * share)}%`;
  return el("span", { className: `bar ${kind}`, "aria-hidden": "true" }, inner);
}

// Show new parts in a place, and leave the cursor where it was if its field is among them.
export function redraw(place, ...parts) {
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  place.replaceChildren(...parts);
  if (focused) at(focused)?.focus();
}

export const text = (words, kind = "") => el("span", { className: kind, dir: "auto" }, words);

export const number = (value) => value.toLocaleString("en");
export const count = (value, what) => `${number(value)} ${what}${value === 1 ? "" : "s"}`;
export const percent = (value) => `${(100 * value).toFixed(value < 0.1 && value > 0 ? 1 : 0)} %`;
