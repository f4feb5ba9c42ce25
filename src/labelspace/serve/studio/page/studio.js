// The page as a whole: what is asked when, and which view shows it.

import { get, post, say, tell } from "./api.js";
import { showClicks, startClicks } from "./clicks.js";
import { at, el, number } from "./dom.js";
import { showDocuments, startDocuments } from "./documents.js";
import { showLabels, showNotes, startLabels } from "./labels.js";
import { showMap } from "./map.js";
import { showEstimate, showExport, showPairs, showTraining } from "./panels.js";
import { answers, store } from "./store.js";

const PAUSE = 120; // milliseconds without a key, then the documents are labelled anew
const AGAIN = 5000; // milliseconds, then what got no answer is asked again
const VIEWS = ["documents", "pairs", "map", "clicks", "train", "export"];
const SHOW = { documents: showDocuments, pairs: showPairs, map: showMap, clicks: showClicks, train: showTraining, export: showExport };

// ---- edits: one request at a time, and of a field that is typed in only the newest text

let queue = [];
let sending = false;
let sent = 0;
let lost = false; // the first of the queue has not reached the studio
let timer = null;

// An edit says what the page shows at its place, so that the server refuses one that was meant for another label.
function edit(change, { burst = null, wait = false, force = false, then = null } = {}) {
  const label = store.state.labels[change.label];
  if (label) change.of = label.name;
  if (label && "place" in change) change.was = label.descriptions[change.place] ?? null;
  const key = burst && JSON.stringify([change.do, change.label, change.place]);
  const edit_id = `${performance.timeOrigin} ${sent++}`; // so that it is made once, though it may be sent again
  const made = { key, name: "edit", values: { edit: change, burst, edit_id }, force, then };
  if (!key && queue.some((each) => JSON.stringify(each.values.edit) === JSON.stringify(change))) return; // asked for twice while it waits
  const before = key ? queue.findIndex((each) => each.key === key) : -1;
  queue.splice(before < 0 ? queue.length : before, before < 0 ? 0 : 1, made);
  clearTimeout(timer);
  timer = setTimeout(flush, wait ? PAUSE : 0);
}

// The edits that wait for the same place are about what this one has put there.
function follow(done) {
  const label = store.state.labels[done.label];
  for (const { values } of queue) {
    const next = values.edit;
    if (!label || next?.label !== done.label) continue;
    if (done.do === "name" && next.of === done.of) next.of = label.name;
    if (done.do === "description" && next.place === done.place && next.was === done.was) next.was = label.descriptions[done.place];
  }
}

const ask = (name, values = {}, then = null) => {
  queue.push({ key: null, name, values, force: true, then });
  clearTimeout(timer);
  flush();
};

async function flush() {
  if (sending) return;
  sending = true;
  while (queue.length) {
    const made = queue.shift();
    const { name, values, force, then } = made;
    try {
      const state = await post(name, values);
      lost = false;
      if (!values.edit) document.querySelectorAll("[aria-invalid]").forEach(accept);
      else if (fieldOf(values.edit)) accept(fieldOf(values.edit));
      take(state, force && !queue.length); // what waits is typed already, and must not be overwritten
      if (values.edit) follow(values.edit);
      if (!document.querySelector("[aria-invalid]")) tell("");
      then?.();
    } catch (error) {
      tell(error.message);
      if (error.lost && values.edit) { // perhaps it was made and only its answer is lost, so it is sent again as it is
        queue.unshift({ ...made, key: null });
        lost = true;
        queue = queue.filter((each) => each.values.edit); // an undo of what nobody can see yet is not made later
        showHead();
        clearTimeout(timer);
        timer = setTimeout(flush, AGAIN);
        break;
      }
      if (!error.lost) lost = false;
      const state = await get("state").catch(() => store.state);
      const moved = state.version !== store.state.version || elsewhere(values.edit, state);
      if (values.edit && !moved) refuse(fieldOf(values.edit));
      take(state, moved || (force && !values.edit));
    }
  }
  sending = false;
  poll();
}

// Whether the labels have moved under an edit, so that its text must not stay where another label is now.
function elsewhere(edit, state) {
  const label = state.labels[edit?.label];
  return edit?.of !== undefined && (label?.name !== edit.of || ("place" in edit && (label.descriptions[edit.place] ?? null) !== edit.was));
}

// The field of an edit that was refused keeps its text, so that it can be corrected, and names the reason.
function fieldOf(edit) {
  if (edit.do === "template") return at("template");
  if (edit.do === "add label") return at("new-label");
  const part = { name: "name", phrase: "phrase", verbalizer: "verbalizer", description: `description-${edit.place}` }[edit.do];
  return part ? at(`label-${edit.label}-${part}`) : null;
}

function refuse(field) {
  field?.setAttribute("aria-invalid", "true");
  field?.setAttribute("aria-errormessage", "problem");
}

function accept(field) {
  field.removeAttribute("aria-invalid");
  field.removeAttribute("aria-errormessage");
}

// ---- what comes back

function take(state, force) {
  if (state.version < store.state?.version) return; // asked before an edit, come after its answer
  const before = answers();
  const other = state.labels.some((label, column) => label.name !== store.state?.labels[column]?.name);
  if (force && other && !queue.length) document.querySelectorAll("#labels [aria-invalid]").forEach(accept);
  store.state = state;
  showLabels(force);
  showHead();
  showMoved(before, answers());
  show();
  document.body.dataset.version = state.answers ? String(state.answers.version) : "";
}

function showHead() {
  const state = store.state;
  at("file").textContent = state.file;
  document.title = `${state.file} · labelspace studio`;
  const saved = state.rewritten ? `saved; its form had no room for an edit, so its comments are in ${state.rewritten} now, and Undo brings them back` : "saved";
  say("saved", lost || (state.exists && !state.saved) ? "not saved yet" : state.exists ? saved : "a new file, saved with the first label");
  at("undo").ariaDisabled = String(!state.undo); // and not disabled, which would take the focus away
  at("redo").ariaDisabled = String(!state.redo);
  at("none").checked = state.none;
  showEstimate();
}

function showMoved(before, after) {
  if (!after) return say("moved", "");
  if (!before || (before.version === after.version && before.limit === after.limit)) return;
  const others = after.labels.filter((label, column) => label.name !== before.labels[column]?.name);
  const renamed = before.labels.length === after.labels.length && others.length === 1; // its documents are where they were
  const label = (of, row) => (of.columns[row] < 0 ? null : renamed ? of.columns[row] : of.labels[of.columns[row]].name);
  const moved = after.columns.filter((_, row) => label(before, row) !== label(after, row)).length;
  const who = moved > 1 ? `${number(moved)} documents changed their` : `${moved || "No"} document changed its`;
  say("moved", `${who} label with the last edit.`);
}

function show() {
  const view = VIEWS.find((each) => !at(`panel-${each}`).hidden);
  SHOW[view]();
}

function open(view, focus = false) {
  for (const each of VIEWS) {
    const chosen = each === view;
    at(`panel-${each}`).hidden = !chosen;
    at(`tab-${each}`).setAttribute("aria-selected", String(chosen));
    at(`tab-${each}`).tabIndex = chosen ? 0 : -1;
  }
  if (focus) at(`tab-${view}`).focus();
  show();
}

let clicked = []; // what the clicks on this page were before them, for Ctrl+Z

async function click(row, label, source, back = false) {
  const before = store.state.clicks.rows.find((each) => each.text === store.documents.texts[row]);
  try {
    store.state.clicks = await post("click", { row, label, source });
    if (!back) clicked.push([row, before?.label ?? null, before?.source ?? source]);
    tell("");
    poll();
  } catch (error) {
    tell(error.message);
  }
  show();
}

// ---- what changes without an edit: reading, estimate, training, the file on disk

let polling = null;
let silent = false; // the studio did not answer when it was asked last

async function poll() {
  clearTimeout(polling);
  let wait = 2500;
  try {
    const before = store.status;
    store.status = await get("status");
    if (silent && !lost && !document.querySelector("[aria-invalid]")) tell("");
    silent = false;
    const { pool, training, study } = store.status;
    at("reading").hidden = pool.ready;
    at("read").value = pool.total ? pool.done / pool.total : 0;
    say("read-count", pool.problem || `${number(pool.done)} of ${number(pool.total)}`);
    if (pool.ready && !store.documents.map.length) {
      store.documents = await get("documents");
      take(await get("state"), false);
    } else if (store.status.version !== store.state.version && !sending && !queue.length) {
      const state = await get("state"); // another tab, or the page before a reload, has changed the labels
      if (state.version > store.state.version && !sending && !queue.length) take(state, true);
    }
    if (JSON.stringify(before?.study) !== JSON.stringify(study)) {
      showNotes();
      showEstimate();
      if (!at("panel-pairs").hidden) showPairs();
    }
    if (!at("panel-train").hidden) showTraining();
    if (!at("panel-export").hidden && before?.training.state !== training.state) showExport();
    showConflict(store.status.conflict);
    document.body.dataset.study = study.complete ? String(study.version) : "";
    if (!pool.ready || training.state === "running" || study.version !== store.state.version || !study.complete) wait = 500;
  } catch (error) {
    tell(error.message);
    silent = true;
    wait = AGAIN;
  }
  polling = setTimeout(poll, wait);
}

function showConflict(found) {
  const dialog = at("conflict");
  if (!found) { if (dialog.open) dialog.close(); return; }
  if (!dialog.open || at("theirs").textContent !== found.theirs) {
    at("mine").replaceChildren(...marked(store.state.text, found.theirs));
    at("theirs").replaceChildren(...marked(found.theirs, store.state.text));
  }
  at("conflict-problem").hidden = !found.problem;
  at("conflict-problem").textContent = found.problem && `${found.problem} If you keep this page’s, a copy of it stays beside it, as ${store.state.file}.other.`;
  at("keep-theirs").disabled = Boolean(found.problem);
  if (dialog.open) return;
  dialog.showModal();
  for (const side of ["mine", "theirs"]) at(side).scrollTop = (at(side).querySelector("mark")?.offsetTop ?? 0) - at(side).offsetTop - 40;
}

// The lines of one text, those that the other lacks with a mark.
function marked(words, other) {
  const known = new Set(other.split("\n"));
  return words.split("\n").flatMap((line) => [known.has(line) ? line : el("mark", {}, line), "\n"]);
}

// ---- start

function startTabs() {
  for (const view of VIEWS) at(`tab-${view}`).addEventListener("click", () => open(view));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const now = VIEWS.findIndex((each) => at(`tab-${each}`) === event.target);
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: VIEWS.length - 1 }[event.key];
    if (next === undefined || now < 0) return;
    event.preventDefault();
    open(VIEWS[(next + VIEWS.length) % VIEWS.length], true);
  });
}

function startKeys() {
  for (const name of ["undo", "redo"]) at(name).addEventListener("click", () => { if (at(name).ariaDisabled === "false") ask(name); });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase();
    const name = key === "y" || (key === "z" && event.shiftKey) ? "redo" : key === "z" ? "undo" : "";
    // In a line whose text is sent when it is left, the browser takes the typing back.
    if (!name || event.target.matches("input:not([type=checkbox], [type=radio])")) return;
    event.preventDefault();
    if (at("panel-clicks").hidden || at("left").contains(event.target)) return ask(name);
    if (name === "undo" && clicked.length && !event.repeat && !at("conflict").open) click(...clicked.pop(), true);
  });
}

async function start() {
  history.replaceState(null, "", "/"); // the token is in a cookie now, and out of sight
  startLabels(edit);
  startDocuments(click);
  startClicks(click);
  startTabs();
  at("none").addEventListener("change", () => ask("none", { wanted: at("none").checked }));
  for (const keep of ["mine", "theirs"]) at(`keep-${keep}`).addEventListener("click", () => ask("resolve", { keep }, poll));
  at("conflict").addEventListener("cancel", (event) => event.preventDefault());
  document.addEventListener("input", (event) => accept(event.target));
  window.addEventListener("beforeunload", (event) => { if (lost) event.preventDefault(); });
  begin();
}

// An edit says which label it is about, so the page takes no key and no click until it knows the labels.
async function begin() {
  try {
    [store.documents, store.status] = [await get("documents"), await get("status")];
    take(await get("state"), true);
  } catch (error) {
    tell(error.message);
    setTimeout(begin, AGAIN);
    return;
  }
  tell("");
  open("documents");
  startKeys();
  window.addEventListener("focus", poll);
  document.querySelector("main").inert = false;
  poll();
}

start();
