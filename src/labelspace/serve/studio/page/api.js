// The requests to the studio's own server; a refusal is shown at the top of the page.

import { at } from "./dom.js";

export function tell(problem) {
  const place = at("problem");
  place.hidden = !problem;
  place.textContent = problem;
}

async function read(response) {
  if (response.headers.get("content-type")?.startsWith("application/json")) return response.json();
  return { problem: await response.text() };
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The studio does not answer. Start it again with the same command, and open the new address.");
  }
  const found = await read(response);
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
