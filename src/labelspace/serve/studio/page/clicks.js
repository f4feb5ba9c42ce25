// Ten clicks: documents are proposed one after another, by turns drawn at random and chosen where they teach most.

import { get, say, tell } from "./api.js";
import { at, el, mark, number, text } from "./dom.js";
import { answers, names, store } from "./store.js";

const WANTED = 10;
const WHY = {
  random: "Drawn at random: it makes the estimate narrower.",
  doubt: "In doubt: its label teaches most when you train on clicks.",
};
let waiting = [];
let before = []; // those that waited before the last click
let skipped = new Set();
let click = () => {};

export function startClicks(onClick) {
  click = onClick;
  document.addEventListener("keydown", (event) => {
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    const elsewhere = event.repeat || at("conflict").open || at("left").contains(event.target) || event.target.matches("input, textarea, select");
    if (at("panel-clicks").hidden || elsewhere || event.ctrlKey || event.metaKey || event.altKey || digit < 0 || digit >= names().length) return;
    choose(names()[digit]);
  });
}

export async function showClicks() {
  const panel = at("panel-clicks");
  if (panel.hidden) return;
  if (!answers()) {
    panel.replaceChildren(el("p", { className: "empty" }, "Documents are proposed once there are two labels and the documents are read."));
    return;
  }
  try {
    const known = new Set(store.state.clicks.rows.map((row) => row.text));
    waiting = (await get("proposals", `?skipped=${skipped.size}`)).filter(({ row }) => !skipped.has(row) && !known.has(store.documents.texts[row]));
  } catch (error) {
    tell(error.message);
    if (!waiting.length) waiting = before;
  }
  const clicks = store.state.clicks;
  const focus = panel.contains(document.activeElement);
  panel.replaceChildren(
    at("clicked") ?? el("p", { role: "status", id: "clicked" }),
    waiting.length ? proposal(waiting[0]) : el("p", { className: "empty" }, "No more documents are proposed."),
    el("h3", {}, "Your clicks"),
    el("ul", { className: "documents" }, ...clicks.rows.toReversed().map(clicked)));
  say("clicked", `${number(clicks.rows.length)} clicked${clicks.rows.length < WANTED ? ` of ${WANTED}, a good start` : ""}; kept in ${clicks.file}`);
  if (focus) panel.querySelector("#proposed")?.focus();
}

function proposal({ row, source }) {
  return el("article", { className: "card proposal", "aria-labelledby": "proposed" },
    el("p", { className: "hint" }, WHY[source]),
    el("blockquote", { id: "proposed", tabIndex: -1, dir: "auto" }, store.documents.texts[row]),
    el("div", { className: "choices", role: "group", "aria-label": "Its right label" },
      ...names().map((name, column) => el("button", { type: "button", onclick: () => choose(name) }, mark(column), text(name), column < 9 ? el("kbd", { "aria-hidden": "true" }, String(column + 1)) : "")),
      el("button", { type: "button", className: "quiet", onclick: () => { skipped.add(row); showClicks(); } }, "Skip")));
}

// A second key finds nothing that waits until the next document is shown.
const choose = (name) => { const [next] = (before = waiting); waiting = []; if (next) click(next.row, name, next.source); };

const clicked = (row) =>
  el("li", {}, text(row.text, "words"), el("span", { className: "verdict" }, text(row.label, "chip"),
    el("button", { type: "button", className: "quiet small", "aria-label": `Take the label of “${row.text.slice(0, 40)}” away`, onclick: () => click(store.documents.texts.indexOf(row.text), null, row.source), disabled: !store.documents.texts.includes(row.text) }, "×")));
