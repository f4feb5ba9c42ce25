// The documents as points: colour and shape by label; the mouse or the arrow keys read them.

import { at, colour, el, mark, number, redraw, shape, svg, text } from "./dom.js";
import { answers, nameOf, store } from "./store.js";

const WIDE = 1000;
let current = null;
let only = null; // the label that is shown alone, by `known`
let drawn = null;

const known = (column) => (column < 0 ? "none" : `=${nameOf(column)}`); // a place among the labels may change
const x = (row) => 20 + 960 * store.documents.map[row][0];
const y = (row) => 980 - 960 * store.documents.map[row][1];

export function showMap() {
  const panel = at("panel-map");
  const found = answers();
  if (panel.hidden) return;
  if (!found || !store.documents.map.length) {
    panel.replaceChildren(el("p", { className: "empty" }, "The map is drawn once there are two labels and the documents are read."));
    drawn = null;
    return;
  }
  if (!drawn) make(panel);
  const columns = [...found.labels.keys(), ...(found.none ? [-1] : [])];
  if (!columns.some((column) => known(column) === only)) only = null;
  const paths = columns.map((column) => {
    const own = found.columns.flatMap((each, row) => (each === column ? [shape(column, x(row), y(row), 6)] : []));
    const pale = only !== null && only !== known(column) ? " pale" : "";
    return svg("path", { d: own.join(""), class: `${colour(column)}${pale}` });
  });
  drawn.points.replaceChildren(...paths);
  redraw(drawn.legend, ...columns.map((column) => legend(column, found)));
  if (current !== null) read(current);
}

function make(panel) {
  const points = svg("g");
  const ring = svg("circle", { r: 14, class: "ring", visibility: "hidden" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${WIDE}`, class: "map", tabindex: "0", role: "application", "aria-label": "Map of the documents. The arrow keys go to the next document in that direction.", "aria-describedby": "map-says" }, points, ring);
  const says = el("p", { id: "map-says", className: "says", role: "status" }, "Point at a document, or use the arrow keys.");
  const shownLegend = el("ul", { className: "legend", "aria-label": "Labels on the map; press one to see it alone" });
  picture.addEventListener("mousemove", (event) => {
    const box = picture.getBoundingClientRect();
    read(nearest((event.clientX - box.left) * WIDE / box.width, (event.clientY - box.top) * WIDE / box.height));
  });
  picture.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const next = current === null ? nearest(WIDE / 2, WIDE / 2) : nearest(x(current), y(current), way);
    if (next !== null) read(next);
  });
  panel.replaceChildren(says, el("div", { className: "map-row" }, picture, shownLegend));
  drawn = { points, ring, says, legend: shownLegend };
}

function nearest(atX, atY, way = null) {
  let best = null;
  let least = Infinity;
  store.documents.map.forEach((_, row) => {
    const [right, down] = [x(row) - atX, y(row) - atY];
    const along = way && right * way[0] + down * way[1];
    if (way && (row === current || along < 3)) return;
    // Along the arrow's way counts once, beside it three times.
    const distance = way ? along + 3 * Math.abs(right * way[1] + down * way[0]) : right * right + down * down;
    if ((only === null || known(answers().columns[row]) === only) && distance < least) [best, least] = [row, distance];
  });
  return best;
}

function read(row) {
  if (row === null) return;
  current = row;
  drawn.ring.setAttribute("cx", x(row));
  drawn.ring.setAttribute("cy", y(row));
  drawn.ring.setAttribute("visibility", "visible");
  const column = answers().columns[row];
  drawn.says.replaceChildren(mark(column), text(nameOf(column), "chip"), " ", text(store.documents.texts[row]));
}

function legend(column, found) {
  const count = column < 0 ? found.none : found.labels[column].count;
  const press = () => { only = only === known(column) ? null : known(column); current = null; drawn.ring.setAttribute("visibility", "hidden"); showMap(); };
  return el("li", {}, el("button", { type: "button", id: `legend-${column}`, className: "quiet", "aria-pressed": String(only === known(column)), onclick: press }, mark(column), text(nameOf(column)), el("span", { className: "count" }, number(count))));
}
