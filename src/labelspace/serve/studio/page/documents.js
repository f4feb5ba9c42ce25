// The documents as they are labelled now: sorted, filtered, and each with what pulled it.

import { get, tell } from "./api.js";
import { at, bar, el, mark, number, text } from "./dom.js";
import { answers, nameOf, names, store } from "./store.js";

const PAGE = 40;
let shown = PAGE;
let open = null;
let choosing = null; // the row whose right label has the focus
let click = () => {};

export function startDocuments(onClick) {
  click = onClick;
  for (const id of ["filter", "order"]) at(id).addEventListener("change", () => { shown = PAGE; showDocuments(); });
  at("more").addEventListener("click", () => {
    const first = shown;
    shown += PAGE;
    showDocuments();
    at("documents").children[first].querySelector("summary").focus();
  });
}

export function showDocuments() {
  const found = answers();
  showFilter(found);
  at("limit").textContent = found?.limit ?? "";
  at("more").hidden = true;
  if (!found) {
    at("documents").replaceChildren(el("li", { className: "empty" }, waiting()));
    return;
  }
  const rows = sorted(found);
  const held = document.activeElement.closest("#documents > li")?.dataset.row;
  if (document.activeElement.matches("#documents select")) choosing = Number(held);
  else if (Number(held) !== choosing) choosing = null;
  at("documents").replaceChildren(...rows.slice(0, shown).map((row) => item(row, found)));
  if (held) at("documents").querySelector(`[data-row="${held}"] summary`)?.focus();
  at("more").hidden = rows.length <= shown;
}

const waiting = () =>
  names().length < 2 ? "Write two labels on the left; your documents are labelled as soon as there are two." : "The documents are being read.";

function showFilter(found) {
  const field = at("filter");
  const before = field.value;
  const options = [["", "all"]];
  found?.labels.forEach((label) => options.push([`=${label.name}`, `${label.name} (${number(label.count)})`]));
  if (found?.none) options.push(["none", `none of these (${number(found.none)})`]);
  field.replaceChildren(...options.map(([value, words]) => el("option", { value }, words)));
  field.value = options.some(([value]) => value === before) ? before : "";
}

function sorted(found) {
  const wanted = at("filter").value;
  let rows = found.order;
  if (at("order").value === "file") rows = found.columns.map((_, row) => row);
  if (at("order").value === "nearest") rows = [...rows].sort((one, other) => found.score[other] - found.score[one]);
  if (wanted === "") return rows;
  const column = found.labels.findIndex((label) => wanted === `=${label.name}`);
  return rows.filter((row) => found.columns[row] === column);
}

function item(row, found) {
  const column = found.columns[row];
  const words = store.documents.texts[row];
  const clicked = store.state.clicks.rows.find((each) => each.text === words);
  const summary = el("summary", {},
    el("span", { className: "words", dir: "auto" }, words),
    el("span", { className: "verdict" }, mark(column), text(nameOf(column), "chip"),
      el("span", { className: "or" }, column < 0 ? "nearest " : "or ", text(nameOf(column < 0 ? found.likeliest[row] : found.second[row]))),
      el("span", { className: "or doubts" }, "doubt"), el("span", { className: "hidden" }, String(found.doubt[row])), bar(found.doubt[row], "doubt"),
      clicked ? el("span", { className: "clicked" }, "you: ", text(clicked.label)) : ""));
  const why = el("div", { className: "why" });
  const details = el("details", { open: open === row }, summary, why);
  details.addEventListener("toggle", () => {
    if (details.open) { open = row; explain(row, why, clicked?.label); } else if (open === row) open = null;
  });
  return el("li", { "data-row": row }, details);
}

async function explain(row, place, label) {
  try {
    const found = await get("explanation", `?row=${row}`);
    place.replaceChildren(right(row, label), ...found.top.map(score));
    if (choosing !== row || !place.isConnected) return;
    place.querySelector("select").focus();
    choosing = null;
  } catch (error) {
    tell(error.message);
  }
}

function right(row, label) {
  const id = `right-${row}`;
  const field = el("select", { id }, el("option", { value: "" }, "not clicked"), ...names().map((name) => el("option", { value: name }, name)));
  field.value = label ?? "";
  field.addEventListener("change", () => click(row, field.value || null, "chosen"));
  return el("p", { className: "row" }, el("label", { htmlFor: id }, "Right label"), field);
}

const score = (entry) =>
  el("div", { className: "scored" },
    el("p", {}, el("strong", { dir: "auto" }, entry.label), ` closeness ${entry.score.toFixed(2)}${entry.nearest.length ? "; its nearest descriptions:" : ""}`),
    el("ul", {}, ...entry.nearest.map(([words, cosine]) => el("li", {}, `${cosine.toFixed(2)} `, text(words)))));
