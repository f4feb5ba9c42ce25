// The requests to the studio's own server; a refusal is shown at the top of the page.

import { at } from "./dom.js";

export function tell(problem) {
  at("problem").hidden = !problem;
  say("problem", problem);
}

// A screen reader reads a text again that is set again, so the same one is left alone.
export function say(id, words) {
  if (at(id).textContent !== words) at(id).textContent = words;
}

// An error of a request that the studio has not answered, or did not let in: it may be asked again.
function lost(problem) {
  return Object.assign(new Error(problem), { lost: true });
}

async function read(response) {
  if (response.headers.get("content-type")?.startsWith("application/json")) return response.json();
  return { problem: await response.text() };
}

async function ask(path, options) {
  let response, found;
  try {
    response = await fetch(path, options);
    found = await read(response);
  } catch {
    throw lost("The studio does not answer. Start it again with the same command, and open the new address.");
  }
  if (response.status === 403) throw lost(found.problem);
  if (!response.ok) throw new Error(found.problem ?? response.statusText);
  return found;
}

export const get = (name, query = "") => ask(`/api/${name}${query}`);

export const post = (name, values = {}) =>
  ask(`/api/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(values),
  });
