// A device in a browser: a window in, one release out, and nothing sent without consent.
import { loadDevice } from "./device.mjs";

const device = loadDevice();
const collector = location.pathname.replace(/\/device$/, "");
const ENROL = "/api/devices";
const RELEASES = "/api/releases";
const RECORD_SECONDS = 5;
const GRAVITY = ["x", "y", "z"];
const TURNS = ["alpha", "beta", "gamma"];
const part = (id) => document.getElementById(id);
const say = (id, text) => { part(id).textContent = text; part(id).classList.remove("notice", "bad"); };
let series = null; // one array per channel; it never leaves
let pending = null; // the body that may leave

// ---- a window: an example, a file, or the motion sensor

function setWindow(rows, name) {
  const { nChannels, nTimepoints } = device;
  if (rows.length !== nChannels) throw new Error(`This model reads ${nChannels} channels, this has ${rows.length}.`);
  if (rows.some((row) => row.length < 2 || row.some((value) => !Number.isFinite(value)))) throw new Error("This holds something that is no number.");
  const stretched = rows[0].length !== nTimepoints;
  series = rows.map((row) => (row.length === nTimepoints ? row : resampled(row, nTimepoints)));
  pending = null;
  part("made").hidden = true;
  part("consent").checked = false;
  part("consent").disabled = part("send").disabled = true;
  part("randomise").disabled = false;
  say("window-state", name + (stretched ? `, resampled from ${rows[0].length} to ${nTimepoints} samples` : ""));
  say("outcome", "");
  draw(series);
}

function resampled(row, steps) {
  return Array.from({ length: steps }, (_, n) => {
    const at = (n * (row.length - 1)) / (steps - 1);
    const low = Math.floor(at);
    const high = Math.min(low + 1, row.length - 1);
    return row[low] + (at - low) * (row[high] - row[low]);
  });
}

function rowsOfText(text) {
  const trimmed = text.trim();
  let table;
  if (trimmed.startsWith("[")) {
    const found = JSON.parse(trimmed);
    table = Array.isArray(found[0]) ? found : [found];
  } else {
    table = trimmed.split(/\r?\n/).map((line) => line.split(/[,;\t ]+/).filter(Boolean).map(Number));
    if (table.length > 1 && table[0].some(Number.isNaN)) table = table.slice(1); // names of columns
  }
  const across = table[0].length;
  if (table.some((row) => row.length !== across)) throw new Error("The lines of this file have different lengths.");
  return table.length === device.nChannels ? table : table[0].map((_, column) => table.map((row) => row[column]));
}

async function fillExamples() {
  const offered = await (await fetch(`${collector}/device/examples.json`)).json();
  const list = part("example");
  offered.forEach(({ name }, place) => list.append(new Option(name, place)));
  list.addEventListener("change", () => attempt(() => {
    if (list.value !== "") setWindow(offered[list.value].series, offered[list.value].name);
  }));
}

async function record() {
  if (typeof DeviceMotionEvent === "undefined") throw new Error("This browser has no motion sensor.");
  if (typeof DeviceMotionEvent.requestPermission === "function" && (await DeviceMotionEvent.requestPermission()) !== "granted") throw new Error("The motion sensor was not allowed.");
  const felt = [];
  const note = (event) => {
    const turn = event.rotationRate;
    const moved = GRAVITY.map((axis) => event.accelerationIncludingGravity?.[axis] ?? 0);
    felt.push([...moved, ...TURNS.map((axis) => turn?.[axis] ?? 0)]);
  };
  addEventListener("devicemotion", note);
  part("motion").disabled = true;
  for (let left = RECORD_SECONDS; left > 0; left--) {
    say("window-state", `Move. ${left} s left.`);
    await new Promise((done) => setTimeout(done, 1000));
  }
  removeEventListener("devicemotion", note);
  part("motion").disabled = false;
  if (felt.length < 10) throw new Error("No motion was felt; this device may have no sensor.");
  setWindow(channelsOf(felt), `${RECORD_SECONDS} s of motion`);
}

// One channel: how strong the motion is. Three: acceleration. Six: turning too.
function channelsOf(felt) {
  const { nChannels } = device;
  if (nChannels === 1) return [felt.map(([x, y, z]) => Math.hypot(x, y, z))];
  if (nChannels !== 3 && nChannels !== 6) throw new Error(`This model reads ${nChannels} channels; the motion sensor has 3 or 6.`);
  return Array.from({ length: nChannels }, (_, channel) => felt.map((row) => row[channel]));
}

function draw(rows) {
  const drawn = part("window-drawn");
  const values = rows.flat();
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const line = (row) => row.map((value, n) => `${((470 * n) / (row.length - 1) + 5).toFixed(1)},${(123 - (116 * (value - low)) / span).toFixed(1)}`).join(" ");
  drawn.replaceChildren(...rows.map((row, n) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    made.setAttribute("points", line(row));
    made.setAttribute("style", `fill:none;stroke:var(--local);stroke-width:1.8;opacity:${(1 - 0.6 * (n / rows.length)).toFixed(2)}`);
    return made;
  }));
  drawn.removeAttribute("hidden");
  say("window-caption", "It stays in this browser.");
}

// ---- classify and randomise: once for each window

async function randomise() {
  const digest = hex(await crypto.subtle.digest("SHA-256", new Float64Array(series.flat())));
  const account = `tacit released ${device.model}`;
  const released = JSON.parse(localStorage.getItem(account) ?? "[]");
  if (released.includes(digest)) throw new Error("This window was released already; a second release would cost as much again.");
  const own = device.classify({ kind: device.kind, model: device.model, values: [device.privateSymbol(series)] })[0];
  const release = device.release(series);
  localStorage.setItem(account, JSON.stringify([...released, digest])); // debited before it can leave
  const said = device.classify(release)[0];
  pending = JSON.stringify({ model: release.model, kind: release.kind, windows: [crypto.randomUUID()], values: release.values });
  say("own", described(own));
  say("said", described(said));
  say("size", `Exactly these ${new TextEncoder().encode(pending).length} bytes will leave:`);
  say("bytes", pending);
  part("made").hidden = false;
  part("randomise").disabled = true;
  part("consent").disabled = false;
}

const described = ({ label, place }) => (place === undefined ? label : `${label}, place ${place + 1}`);

// ---- sending: the key is made here and cannot be taken out of the browser

async function send() {
  part("send").disabled = true;
  const about = await asked("GET", "/api/collector");
  if (about.model !== device.model) throw new Error("The collector counts another model now; load this page again.");
  const keys = await ownKeys(about.collector);
  if (!keys.enrolled) await enrol(keys, about.collector);
  const answer = await signed(keys, about.collector, RELEASES, pending);
  pending = null;
  part("consent").disabled = true;
  say("outcome", `Sent and counted: ${answer.stored} stored, ${answer.repeated} repeated.`);
  part("onward").hidden = false;
}

async function enrol(keys, name) {
  const code = part("code").value.trim() || decodeURIComponent(location.hash.slice(1));
  if (!code) {
    part("code-label").hidden = false;
    throw new Error("The first time a one-time code is needed; the operator has one.");
  }
  const raw = await crypto.subtle.exportKey("raw", keys.publicKey);
  await signed(keys, name, ENROL, JSON.stringify({ code, public_key: base64(raw) }));
  keys.enrolled = true;
  await kept("readwrite", (store) => store.put(keys, name));
  part("code-label").hidden = true;
}

async function signed(keys, name, path, body) {
  const bytes = new TextEncoder().encode(body);
  const head = new TextEncoder().encode(`tacit request 1\n${name}\n${path}\n`);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const message = new Uint8Array([...head, ...digest]);
  const signature = await crypto.subtle.sign("Ed25519", keys.privateKey, message);
  return asked("POST", path, bytes, `Tacit-Ed25519 ${keys.name}:${base64(signature)}`);
}

async function asked(method, path, body, authorization) {
  const headers = authorization ? { "Authorization": authorization, "Content-Type": "application/json" } : {};
  const answer = await fetch(collector + path, { method, headers, body });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error ?? `The collector refused with status ${answer.status}.`);
  return said;
}

async function ownKeys(name) {
  const found = await kept("readonly", (store) => store.get(name));
  if (found) return found;
  const { publicKey, privateKey } = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  const raw = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
  const prefix = new TextEncoder().encode("tacit device\0");
  const digest = hex(await crypto.subtle.digest("SHA-256", new Uint8Array([...prefix, ...raw])));
  const made = { publicKey, privateKey, name: digest.slice(0, 32), enrolled: false };
  await kept("readwrite", (store) => store.put(made, name)); // kept before anything is sent
  return made;
}

function kept(mode, action) {
  return new Promise((done, fail) => {
    const opening = indexedDB.open("tacit device", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
    opening.onerror = () => fail(new Error("This browser keeps nothing; allow storage for this page."));
    opening.onsuccess = () => {
      const asking = action(opening.result.transaction("keys", mode).objectStore("keys"));
      asking.onsuccess = () => { opening.result.close(); done(asking.result); };
      asking.onerror = () => fail(asking.error);
    };
  });
}

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));

async function attempt(action, where = "window-state") {
  try {
    await action();
  } catch (error) {
    say(where, error.message);
    part(where).classList.add("notice", "bad");
  }
}

part("window-file").addEventListener("change", (event) => attempt(async () => {
  const file = event.target.files[0];
  setWindow(rowsOfText(await file.text()), file.name);
}));
part("motion").addEventListener("click", () => attempt(record).finally(() => { part("motion").disabled = false; }));
part("randomise").addEventListener("click", () => attempt(randomise, "refused"));
part("consent").addEventListener("change", () => { part("send").disabled = !part("consent").checked || pending === null; });
part("send").addEventListener("click", () => attempt(send, "outcome").finally(() => { part("send").disabled = pending === null || !part("consent").checked; }));
attempt(fillExamples);
