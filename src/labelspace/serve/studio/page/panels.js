// The smaller views: the estimate, confused labels, training, export.

import { get, post, say, tell } from "./api.js";
import { at, count, el, mark, number, percent, redraw, text } from "./dom.js";
import { fresh, names, store, study } from "./store.js";

// ---- the estimate, a range that moves

export function showEstimate() {
  const place = at("estimate");
  const found = study()?.estimate;
  place.classList.toggle("stale", !fresh());
  if (!found || !store.state.answers) return place.replaceChildren();
  if (found.problem) return place.replaceChildren(el("p", { className: "hint" }, found.problem));
  const known = found.labelled ? `, ${found.labelled} of them drawn at random and clicked` : "";
  const what = fresh() ? "8 of 10 such ranges hold the truth" : "Of the labels before the last edit";
  return place.replaceChildren(
    range("Likely accuracy", found.accuracy), range("Likely macro-F1", found.macro_f1),
    el("p", { className: "hint" }, `${what}; from ${number(found.documents)} documents${known}`));
}

function range(name, of) {
  const inner = el("span", { className: "range-inner" });
  inner.style.insetInlineStart = `${100 * of.low}%`;
  inner.style.inlineSize = `${Math.max(1, 100 * (of.high - of.low))}%`;
  const middle = el("span", { className: "range-middle" });
  middle.style.insetInlineStart = `${100 * of.expected}%`;
  return el("p", { className: "range" }, el("span", {}, `${name} `, el("strong", {}, `${of.low.toFixed(2)} – ${of.high.toFixed(2)}`)),
    el("span", { className: "range-bar", "aria-hidden": "true" }, inner, middle));
}

// ---- labels that the documents confuse

export function showPairs() {
  const found = study()?.advice;
  const panel = at("panel-pairs");
  panel.classList.toggle("stale", !fresh());
  if (!found || found.problem || !found.pairs.length) {
    const why = found?.problem ?? (found ? "The documents confuse no labels." : "Confused labels are looked for a moment after the typing stops.");
    panel.replaceChildren(el("p", { className: "empty" }, why));
    return;
  }
  panel.replaceChildren(...found.pairs.map(pair), ...found.notes.map((note) => el("p", { className: "hint" }, note)));
}

function pair(one) {
  const [left, right] = one.labels;
  const words = (label, list) => el("p", {}, "Words of ", text(label, "chip"), " ", text(list.join(", ") || "none of its own"));
  return el("article", { className: "card" },
    el("h3", {}, mark(names().indexOf(left)), text(left), " and ", mark(names().indexOf(right)), text(right), ` · ${count(one.confused, "document")}`),
    words(left, one.words[0]), words(right, one.words[1]),
    el("h4", {}, "Between them"),
    el("ul", {}, ...one.between.map((words) => el("li", { dir: "auto" }, words))),
    el("p", { className: "note" }, one.cure));
}

// ---- training

let trained = "";

export function showTraining() {
  const panel = at("panel-train");
  const now = store.status?.training;
  if (!now) return;
  const key = JSON.stringify([now, store.state.clicks.rows.length]);
  if (key === trained) return;
  trained = key;
  const focused = document.activeElement.id;
  const told = at("training") ?? el("p", { id: "training", role: "status" });
  redraw(panel, form(now), progress(now, told), ...(now.result ? [outcome(now.result, now.method)] : []));
  say("training", words(now));
  if (["train", "stop"].includes(focused)) (at("stop") ?? at("train")).focus();
}

function form(now) {
  const clicks = store.state.clicks.rows.length;
  const choice = (value, title, words, disabled) =>
    el("div", { className: "choice" },
      el("input", { type: "radio", name: "method", id: `method-${value}`, value, checked: chosen() === value, disabled, onchange: () => { method = value; } }),
      el("label", { htmlFor: `method-${value}` }, el("strong", {}, title), ` ${words}`));
  const start = async (event) => {
    event.preventDefault();
    try { store.status.training = await post("train", { method: chosen() }); tell(""); showTraining(); } catch (error) { tell(error.message); }
  };
  return el("form", { onsubmit: start },
    el("fieldset", {}, el("legend", {}, "Train on"),
      choice("consensus", "your labels and documents.", "The encoder learns the descriptions, then it and the words of your documents correct one another.", false),
      choice("lacon", `your labels and ${count(clicks, "click")}.`, `The encoder learns the documents that you labelled by a click too.${clicks < 2 ? " It needs two clicks or more." : ""}`, clicks < 2)),
    el("button", { type: "submit", id: "train", disabled: now.state === "running" }, "Train"));
}

let method = "consensus";
const chosen = () => (method === "lacon" && store.state.clicks.rows.length < 2 ? "consensus" : method);

const words = (now) => ({ idle: "", running: `${now.note}, ${number(Math.round(now.seconds))} s${now.step ? `, update ${number(now.step)}` : ""}`, done: `Trained in ${number(Math.round(now.seconds))} s.`, stopped: now.problem, failed: now.problem }[now.state] ?? "");

function progress(now, told) {
  told.dataset.state = now.state;
  const parts = [told];
  if (now.state === "running") {
    parts.push(el("progress", { "aria-label": "Training" }), el("button", { type: "button", id: "stop", onkeydown: (event) => { if (event.repeat) event.preventDefault(); }, onclick: () => post("stop").catch((error) => tell(error.message)) }, "Stop"));
  }
  return el("div", { className: "row" }, ...parts);
}

function outcome(found, method) {
  const cell = (of, what) => (of.problem ? of.problem : `${of[what].low.toFixed(2)} – ${of[what].high.toFixed(2)}`);
  const row = (name, one, other) => el("tr", {}, el("th", { scope: "row", dir: "auto" }, name), el("td", {}, one), el("td", {}, other));
  return el("div", {},
    el("table", {}, el("caption", {}, method === "consensus" ? "Before and after; the trained model has seen these documents" : "Before and after"),
      el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "before"), el("th", { scope: "col" }, "after"))),
      el("tbody", {}, row("likely accuracy", cell(found.before, "accuracy"), cell(found.after, "accuracy")),
        row("likely macro-F1", cell(found.before, "macro_f1"), cell(found.after, "macro_f1")),
        ...found.labels.map((one) => row(one.name, percent(one.before / found.documents), percent(one.after / found.documents))))),
    el("p", {}, el("strong", { id: "changed" }, number(found.changed)), ` of ${number(found.documents)} documents changed their label${found.changed ? "; among them" : "."}`),
    el("ul", { className: "documents" }, ...found.examples.map((one) => el("li", {}, text(store.documents.texts[one.row], "words"),
      el("span", { className: "verdict" }, text(one.before ?? "none", "chip"), " → ", text(one.after ?? "none", "chip"))))));
}

// ---- export

export async function showExport() {
  const panel = at("panel-export");
  if (panel.hidden) return;
  const found = await get("commands").catch((error) => tell(error.message));
  if (!found) return;
  const has = store.status?.training.result;
  const stem = store.state.file.replace(/\.ya?ml$/, "").normalize().replace(/[^\p{L}\p{N}_. -]/gu, "-"); // as export.py takes names
  const told = at("exported") ?? el("p", { id: "exported", role: "status" });
  redraw(panel,
    el("h3", {}, "Files"),
    el("dl", {}, el("dt", {}, "Labels"), el("dd", {}, found.labels), el("dt", {}, "Clicks"), el("dd", {}, found.clicks ?? "none yet")),
    el("h3", {}, "Model and documents"),
    save("trained", "Save the trained model", `${stem}-model`, !has),
    save("untrained", "Save the untrained model", `${stem}-zero-shot`, !store.state.answers),
    save("documents", "Save the documents with their labels", `${stem}.documents.csv`, !store.state.answers),
    ...(has && store.status.training.version !== store.state.version ? [el("p", { className: "hint" }, "The labels have changed since the training.")] : []),
    told,
    el("h3", {}, "The same on the command line"),
    command("both", "Train on labels and documents", found.commands.train),
    ...(found.commands.clicks ? [command("clicks", "Train on your clicks", found.commands.clicks)] : []),
    ...(found.gone.length ? [el("p", { className: "hint" }, `No command trains on your clicks: some are on ${found.gone.join(", ")}, which ${found.gone.length > 1 ? "are no labels" : "is no label"} any more. Label these documents anew, or undo.`)] : []),
    command("label", "Label all documents with the model", found.commands.label));
}

function save(what, words, name, disabled) {
  const field = el("input", { id: `name-${what}`, value: at(`name-${what}`)?.value || name, autocomplete: "off", disabled });
  const write = async (event) => {
    event.preventDefault();
    try {
      const done = await post("export", { what, name: field.value });
      tell("");
      say("exported", `Saved ${done.path}${done.replaced ? ", in place of the one before" : ""}.`);
    } catch (error) {
      say("exported", "");
      tell(error.message);
    }
  };
  return el("form", { className: "save", onsubmit: write }, el("label", { htmlFor: field.id }, words), el("div", { className: "row" }, field, el("button", { type: "submit", id: `save-${what}`, disabled, "aria-label": words }, "Save")));
}

function command(what, title, line) {
  const copy = () => navigator.clipboard.writeText(line).then(() => say("exported", "Copied."));
  return el("div", {}, el("h4", {}, title), el("div", { className: "row" }, el("pre", { id: `line-${what}`, tabIndex: 0 }, line), el("button", { type: "button", id: `copy-${what}`, onclick: copy, "aria-label": `Copy: ${title}` }, "Copy")));
}
