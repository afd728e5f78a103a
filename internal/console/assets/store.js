// The state of the page, kept current by server-sent events.
import { setServerTime } from "./time.js";

export const state = {
  rows: new Map(), // by name
  cluster: { name: "", program: "lifeboat", listed: false, failures: [] },
  summary: null, needs: [], health: null, wiring: null,
  connected: false, lastUpdate: 0,
};

const listeners = new Set();
let changedNames = new Set();
let all = false;
let frame = 0;

// onChange calls f after each update with the names of changed rows, and whether all can differ.
// At most once for each frame.
export const onChange = (f) => listeners.add(f);

function notify() {
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    const names = changedNames, everything = all;
    changedNames = new Set();
    all = false;
    for (const f of listeners) f(names, everything);
  });
}

function apply(update) {
  setServerTime(update.now);
  state.lastUpdate = update.now;
  if (update.all) {
    state.rows.clear();
    all = true;
  }
  for (const row of update.rows ?? []) {
    state.rows.set(row.name, row);
    changedNames.add(row.name);
  }
  for (const name of update.gone ?? []) {
    state.rows.delete(name);
    changedNames.add(name);
  }
  for (const part of ["cluster", "summary", "needs", "health", "wiring"]) {
    if (update[part]) state[part] = update[part];
  }
  if (update.needsNone) state.needs = [];
}

export function connect() {
  const source = new EventSource("events");
  source.onopen = () => { state.connected = true; notify(); };
  source.onmessage = (message) => { apply(JSON.parse(message.data)); notify(); };
  source.onerror = () => { state.connected = false; notify(); };
}

// fetchJSON returns the answer, or throws an error whose message a person can read.
export async function fetchJSON(path, signal) {
  let response;
  try {
    response = await fetch(path, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The console's server does not answer. Start `lifeboat console` again.");
  }
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}
