// The left side: labels edited in place, with what lint and the documents say beside each line.

import { at, bar, count, el, mark, number, percent, text } from "./dom.js";
import { answers, fresh, store, study } from "./store.js";

const SHOWN = 3; // findings beside one line, the others are counted
const cards = [];
let send = () => {};

export function startLabels(edit) {
  send = edit;
  at("add-label").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = at("new-label");
    const name = field.value.trim();
    if (!name) return;
    send({ do: "add label", text: name }, { force: true, then: () => {
      field.value = "";
      cards.at(-1).lines[0].field.focus();
    } });
  });
  window.addEventListener("resize", () => document.querySelectorAll("textarea").forEach(grow));
  at("template").addEventListener("change", () => send({ do: "template", text: at("template").value }));
}

export function showLabels(force) {
  const labels = store.state.labels;
  set(at("template"), store.state.template, force);
  while (cards.length > labels.length) {
    const { root } = cards.pop();
    const held = root.contains(document.activeElement);
    root.remove();
    if (held) at("new-label").focus();
  }
  while (cards.length < labels.length) {
    const card = makeCard(cards.length);
    cards.push(card);
    at("labels").append(card.root);
  }
  labels.forEach((label, column) => fill(cards[column], label, column, force));
  showNotes();
}

function set(field, value, force) {
  if (field.value === value || field.ariaInvalid || (!force && document.activeElement === field)) return;
  field.value = value;
  if (field.matches("textarea")) grow(field);
}

// Whether nobody has gone on to another field in the meantime.
const holdsFocus = (root) => root.contains(document.activeElement) || document.activeElement === document.body;

function makeCard(column) {
  const id = (part) => `label-${column}-${part}`;
  const title = el("h3", { id: id("title"), className: "hidden" });
  const name = el("input", { id: id("name"), dir: "auto", autocomplete: "off", className: "name" });
  const phrase = line(id("phrase"), "its phrase, if the name alone does not say it");
  const verbalizer = line(id("verbalizer"), "a whole sentence in place of the one above");
  const share = el("p", { className: "share" });
  const rows = el("ol", { className: "descriptions" });
  const findings = el("ul", { className: "findings" });
  const samples = el("div", { className: "samples" });
  const excludes = el("p", { className: "hint", dir: "auto" });
  const leave = () => { if (holdsFocus(root)) at("new-label").focus(); };
  const remove = el("button", { type: "button", className: "quiet", onclick: () => send({ do: "remove label", label: column }, { force: true, then: leave }) }, "Remove label");
  const more = el("details", {}, el("summary", {}, "Sentence of its own"), el("label", { htmlFor: id("verbalizer"), className: "hint" }, "Instead of the sentence with its phrase (its verbalizer)"), verbalizer);
  more.addEventListener("toggle", () => grow(verbalizer));
  const shown = el("details", { className: "near" }, el("summary", {}, "Nearest and most doubtful documents"), samples);
  const root = el("article", { className: "card", "aria-labelledby": id("title") },
    title,
    el("div", { className: "row head" }, mark(column), el("label", { htmlFor: id("name"), className: "hidden" }, "Name"), name, remove),
    share, findings,
    el("label", { htmlFor: id("phrase"), className: "hint" }, "Phrase"), phrase, more,
    el("p", { className: "hint", id: id("what") }, "Descriptions: what its documents say, in their words"), rows, excludes, shown);
  name.addEventListener("change", () => send({ do: "name", label: column, text: name.value }, { force: true }));
  typed(phrase, () => ({ do: "phrase", label: column, text: phrase.value }), true);
  typed(verbalizer, () => ({ do: "verbalizer", label: column, text: verbalizer.value }), true);
  return { root, title, name, remove, excludes, phrase, verbalizer, share, rows, findings, samples, shown, lines: [], more };
}

function line(id, placeholder) {
  return el("textarea", { id, rows: 1, dir: "auto", placeholder, spellcheck: true });
}

// Send a text while it is typed; an empty one waits until the field is left.
function typed(field, edit, mayBeEmpty = false) {
  let burst = 0;
  let last = 0;
  field.addEventListener("input", (event) => {
    grow(field);
    if (event.isComposing || (!field.value.trim() && !mayBeEmpty)) return;
    if (Date.now() - last > 2000) burst += 1;
    last = Date.now();
    send(edit(), { burst: `${field.id} ${burst} ${field.dataset.visit ?? ""}`, wait: true });
  });
  field.addEventListener("compositionend", () => field.dispatchEvent(new Event("input")));
  field.addEventListener("focus", () => { field.dataset.visit = String(Date.now()); });
}

const grow = (field) => {
  field.style.blockSize = "auto";
  field.style.blockSize = `${field.scrollHeight + 2}px`;
};

function makeLine(card, column, place) {
  const id = `label-${column}-description-${place}`;
  const field = line(id, "add a description");
  const note = el("p", { className: "note" });
  note.id = `${id}-note`;
  field.setAttribute("aria-describedby", note.id);
  const next = () => { if (holdsFocus(root)) card.lines[Math.min(place, card.lines.length - 1)].field.focus(); };
  const drop = () => send({ do: "remove description", label: column, place }, { force: true, then: next });
  const remove = el("button", { type: "button", className: "quiet small", onclick: drop }, "×");
  const root = el("li", {}, el("div", { className: "row" }, field, remove), note);
  typed(field, () => ({ do: "description", label: column, place, text: field.value }));
  field.addEventListener("change", () => {
    if (!field.value.trim() && place < store.state.labels[column].descriptions.length) drop();
  });
  return { root, field, note, remove };
}

function fill(card, label, column, force) {
  card.title.replaceChildren(text(label.name));
  card.name.title = label.name; // a long one is cut off
  card.remove.ariaLabel = `Remove label ${label.name}`;
  set(card.name, label.name, force);
  set(card.phrase, label.phrase ?? "", force);
  set(card.verbalizer, label.verbalizer ?? "", force);
  const lines = [...label.descriptions, ""];
  while (card.lines.length > lines.length) card.lines.pop().root.remove();
  while (card.lines.length < lines.length) {
    const made = makeLine(card, column, card.lines.length);
    card.lines.push(made);
    card.rows.append(made.root);
  }
  card.lines.forEach((made, place) => {
    set(made.field, lines[place], force);
    made.field.ariaLabel = `Description ${place + 1} of ${label.name}`;
    made.remove.ariaLabel = `Remove description ${place + 1} of ${label.name}`;
    made.remove.hidden = place === lines.length - 1;
  });
  card.excludes.textContent = label.not.length ? `Not: ${label.not.join(" · ")} (edit this in the file)` : "";
  const own = answers()?.labels[column];
  card.share.replaceChildren(...(own ? [bar(own.share, colourOf(column)), `${count(own.count, "document")}, ${percent(own.share)}`] : []));
  card.samples.replaceChildren(...(own ? [sample("Nearest", own.nearest), sample("Most doubtful", own.doubtful)] : []));
}

const colourOf = (column) => `fill-${column % 8}`;

const sample = (title, rows) =>
  el("div", {}, el("h4", {}, title), el("ul", {}, ...rows.map((row) => el("li", { dir: "auto" }, store.documents.texts[row]))));

// Lint and advice beside the line they are about; those of an older version of the labels are shown pale.
export function showNotes() {
  const found = study();
  const findings = found?.lint ?? [];
  const advice = new Map((found?.advice?.descriptions ?? []).map((one) => [`${one.label}\n${one.text}`, one]));
  const trust = new Map((found?.estimate?.labels ?? []).map((one) => [one.name, one]));
  at("labels").classList.toggle("stale", !fresh());
  store.state.labels.forEach((label, column) => {
    const card = cards[column];
    const own = findings.filter((one) => one.labels.includes(label.name));
    const inLine = (one) => label.descriptions.some((description) => one.texts.includes(description));
    const doubts = trust.get(label.name);
    const items = some(own.filter((one) => !inLine(one)), "li");
    if (doubts && doubts.trust !== "trusted") items.unshift(el("li", {}, text(`Its estimate: ${doubts.trust}${doubts.why ? `; ${doubts.why}` : ""}.`)));
    card.findings.replaceChildren(...items);
    card.lines.forEach(({ note }, place) => {
      const words = label.descriptions[place];
      const about = advice.get(`${label.name}\n${words}`);
      const parts = some(own.filter((one) => one.texts.includes(words)), "p");
      if (about) parts.push(el("p", {}, advised(about)));
      note.replaceChildren(...parts);
    });
  });
}

function advised(about) {
  const pulled = `Nearest to ${number(about.wins)} of its documents.`;
  return about.hurts || about.astray ? `${pulled} ${about.hurts ? about.cure : `${number(about.strays)} of the ${number(about.near)} documents nearest to it have another label, mostly ${about.among}.`}` : pulled;
}

const some = (found, tag) => [
  ...found.slice(0, SHOWN).map((one) => finding(one, tag)),
  ...(found.length > SHOWN ? [el(tag, {}, `and ${number(found.length - SHOWN)} more, see labelspace lint`)] : []),
];

const finding = (one, tag) =>
  el(tag, { className: `finding ${one.severity}`, dir: "auto" }, el("strong", {}, `${one.severity}: `), `${one.message} ${one.cure}`);
