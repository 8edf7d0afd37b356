// What pages do beyond showing: drop a file, send a form, follow a job, move a budget, answer.

const json = { "Accept": "application/json", "Content-Type": "application/json" };

const SILENT = "The studio does not answer; start it again with 'tacit studio'. Jobs go on without it.";
const ELSEWHERE = "The studio was started again; open the address that 'tacit studio' printed last. Jobs go on without it.";

async function send(path, body, method = "POST", headers = json) {
  const answer = await fetch(path, { method, headers, body }).catch(() => { throw new Error(SILENT); });
  const said = await answer.json().catch(() => ({ error: answer.status === 403 ? ELSEWHERE : SILENT }));
  if (!answer.ok) throw new Error(said.error ?? `refused with status ${answer.status}`);
  return said;
}

// Follow a stream of events; a studio that was stopped is asked again until it is back. A studio that
// was started again wants its own token first: `silent` is told which of the two it is.
function follow(path, take, silent) {
  const events = new EventSource(path);
  events.onmessage = (event) => take(JSON.parse(event.data), events);
  events.onerror = () => {
    events.close();
    fetch("/style.css").then((answer) => silent(answer.ok ? SILENT : ELSEWHERE), () => silent(SILENT));
    setTimeout(() => follow(path, take, silent), 2000);
  };
}

function followForms() {
  for (const form of document.querySelectorAll("form[data-post]")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const trouble = form.querySelector("[role=alert]");
      trouble.hidden = true;
      try {
        const fields = JSON.stringify(Object.fromEntries(new FormData(form)));
        const made = await send(form.dataset.post, fields);
        location.href = made.path ?? `/jobs/${made.job}`;
      } catch (error) {
        trouble.textContent = error.message;
        trouble.hidden = false;
      }
    });
  }
}

function followDrop() {
  const area = document.getElementById("drop");
  if (!area) return;
  const state = document.getElementById("upload-state");
  const plain = (name) => name.replace(/[^A-Za-z0-9_. -]+/g, "-").replace(/^[^A-Za-z0-9]+/, "") || "upload";
  const put = (path, file) => send(`/data/upload/${path}`, file, "PUT", { "Accept": "application/json" });
  const take = async (files) => {
    try {
      let made;
      if (files.length > 1) {
        made = await send("/data/uploads", JSON.stringify({ name: plain(files[0].name) }));
        for (const file of files) {
          state.textContent = `Storing ${file.name} …`;
          await put(`${encodeURIComponent(made.name)}/${encodeURIComponent(plain(file.name))}`, file);
        }
      } else {
        state.textContent = `Storing ${files[0].name} …`;
        made = await put(encodeURIComponent(plain(files[0].name)), files[0]);
      }
      location.href = `/data/import/${encodeURIComponent(made.name)}`;
    } catch (error) {
      state.textContent = error.message;
    }
  };
  document.getElementById("file").addEventListener("change", (event) => take([...event.target.files]));
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.classList.add("over"); });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => { event.preventDefault(); area.classList.remove("over"); take([...event.dataTransfer.files]); });
}

// What the importer would make of it, with what is said in the address.
function followTry() {
  const tried = document.getElementById("tried");
  if (!tried) return;
  const line = tried.querySelector("p");
  send(`${tried.dataset.tried}${location.search}`, undefined, "GET").then((said) => {
    line.textContent = said.sentences.join(" ");
    if (said.refused) line.className = "notice bad";
    tried.querySelector("ul").append(...said.figures.map(([value, word]) => {
      const item = document.createElement("li");
      for (const [tag, text] of [["b", value], ["span", word]]) item.appendChild(document.createElement(tag)).textContent = text;
      return item;
    }));
  }, (error) => { line.textContent = error.message; line.className = "notice bad"; });
}

// A corrected column changes what is said about the file; the page is asked for again with it.
function followColumns() {
  const form = document.getElementById("import");
  const lists = document.querySelectorAll("select[data-column]");
  const KEYS = { label: "label", person: "subject", time: "time", series: "series", "left out": "ignore", samples: "" };
  const names = (key) => form.elements[key].value.split(",").map((name) => name.trim()).filter(Boolean);
  for (const list of lists) {
    list.addEventListener("change", () => {
      const column = list.dataset.column;
      for (const key of ["label", "subject", "time", "series", "ignore"]) {
        form.elements[key].value = names(key).filter((name) => name !== column).join(",");
      }
      const key = KEYS[list.value];
      const many = key === "series" || key === "ignore";
      if (key) form.elements[key].value = many ? [...names(key), column].join(",") : column;
      const was = list.querySelector("option[selected]").value;
      if (key === "" && was === "label") form.elements.label.value = "none";
      if (key === "" && was === "person") form.elements.subject.value = "none";
      const said = [...new FormData(form)].filter(([, value]) => value);
      location.search = new URLSearchParams(said);
    });
  }
}

// An attack says its hits as it goes: "published 97 of 100; sound 31 of 2400".
function countHits(message) {
  if (!document.getElementById("hits")) return;
  for (const [, word, hits, tries] of message.matchAll(/(published|sound) (\d+) of (\d+)/g)) {
    if (tries === "0") continue;
    document.getElementById(`${word}-rate`).textContent = `${(100 * hits / tries).toFixed(1)} %`;
    document.getElementById(`${word}-count`).textContent = `${Number(hits).toLocaleString("en")} of ${Number(tries).toLocaleString("en")} named right`;
    document.getElementById(`${word}-meter`).value = hits / tries;
  }
}

function followJob() {
  const live = document.getElementById("live");
  if (!live) return;
  const bar = document.getElementById("bar");
  const message = document.getElementById("message");
  const take = (said, events) => {
    message.textContent = said.message;
    if (said.total > 0) { bar.max = said.total; bar.value = said.done; }
    countHits(said.message);
    if (said.state !== "running") { events.close(); location.reload(); }
  };
  follow(live.dataset.events, take, (why) => { message.textContent = why; });
}

// A run of several parties: numbers change in place, and a new round or state is a new page.
function followRun() {
  const run = document.getElementById("run");
  if (!run) return;
  const silence = document.getElementById("silence");
  const take = (said, events) => {
    silence.textContent = "";
    if (said.state !== run.dataset.state) { events.close(); location.reload(); }
    for (const [id, value] of Object.entries(said.values)) {
      const place = document.getElementById(id);
      if (!place || value === null) continue;
      if (Array.isArray(value)) { place.max = value[1] || 1; place.value = value[0]; }
      else place.textContent = value;
    }
  };
  follow(run.dataset.events, take, (why) => { silence.textContent = why; });
}

function followButtons() {
  for (const button of document.querySelectorAll("button[data-act]")) {
    const trouble = button.closest("div").querySelector("[role=alert]");
    button.addEventListener("click", async () => {
      button.disabled = true;
      trouble.hidden = true;
      try {
        await send(button.dataset.act, JSON.stringify({ name: button.dataset.name }));
        if (button.dataset.next) location.href = button.dataset.next;
        else location.reload();
      } catch (error) {
        trouble.textContent = error.message;
        trouble.hidden = false;
        button.disabled = false;
      }
    });
  }
}

function followChain() {
  const place = document.querySelector("[data-verify]");
  if (!place) return;
  const say = (word, rest) => {
    const big = place.querySelector("b");
    if (big) { big.textContent = word; place.querySelector("span").textContent = rest; }
    else place.textContent = `The ledger's chain is ${word}: ${rest}.`;
  };
  send(place.dataset.verify, undefined, "GET").then(
    (said) => say(said.intact ? "intact" : "broken", said.problem ?? `chain of ${said.entries.toLocaleString("en")} entries, recomputed now`),
    (error) => say("unknown", error.message),
  );
}

function followPlan() {
  const slider = document.getElementById("epsilon");
  if (!slider) return;
  const rows = JSON.parse(document.getElementById("plan-rows").textContent);
  const fleet = JSON.parse(document.getElementById("fleet-rows").textContent);
  const set = (id, text) => { document.getElementById(id).textContent = text; };
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const upTo = (value) => (Math.ceil(10 * value - 1e-9) / 10).toFixed(1);  // a bound is never shown smaller
  const chart = document.querySelector(".chart > div");
  const mark = () => chart.view?.signal("chosen", rows[slider.value].epsilon).runAsync();
  chart.addEventListener("drawn", mark);
  const show = () => {
    const row = rows[slider.value];
    mark();
    const link = new URL(document.getElementById("train-link").href);
    set("epsilon-shown", row.epsilon);
    set("expected", percent(row.expected));
    set("ceiling", `${upTo(100 * row.ceiling)} %`);
    set("odds", `${row.odds < 10 ? upTo(row.odds) : Math.ceil(row.odds)}:1`);
    set("devices", row.devices.toLocaleString("en"));
    set("in-words", `Somebody who thinks two series equally likely will, after one release, believe in the right one with at most ${upTo(100 * row.belief)} %.`);
    link.searchParams.set("epsilon", row.epsilon);
    document.getElementById("train-link").href = link;
    const run = fleet[slider.value];
    const simulated = document.getElementById("fleet-link");
    const there = new URL(simulated.href);
    there.searchParams.set("epsilon", row.epsilon);
    if (run.clients) there.searchParams.set("clients", Math.min(run.clients, Number(simulated.dataset.most)));
    simulated.href = there;
    set("clients", run.clients?.toLocaleString("en") ?? "too small");
    set("clients-words", run.clients ? "clients, from which on the noise is small" : "a budget for a fleet of this data");
    set("rounds", run.rounds);
    set("kilobytes", run.clients ? `${run.kilobytes} kB` : "none");
  };
  slider.addEventListener("input", show);
  show();
}

function followChoices() {
  const parts = document.querySelectorAll("[data-for]");
  const show = () => {
    const chosen = document.querySelector("input[name=method]:checked")?.value;
    const mode = document.querySelector("[data-for~=" + chosen + "] select[name=mode]")?.value ?? "sound";
    for (const part of parts) part.hidden = !part.dataset.for.split(" ").includes(chosen) || (part.dataset.mode ?? mode) !== mode;
  };
  document.querySelector("select[name=mode]")?.addEventListener("change", show);
  for (const input of document.querySelectorAll("input[name=method]")) input.addEventListener("change", show);
  if (parts.length) show();
}

function followQuestions() {
  const form = document.getElementById("questions");
  if (!form) return;
  const advice = JSON.parse(document.getElementById("advice").textContent);
  const answer = document.getElementById("answer");
  form.addEventListener("change", () => {
    const said = Object.fromEntries(new FormData(form));
    const found = advice[`${said.holder} ${said.training} ${said.goal}`];
    answer.hidden = !found;
    const unanswered = document.getElementById("unanswered");
    const left = 3 - Object.keys(said).length;
    unanswered.hidden = left === 0;
    unanswered.textContent = left === 1 ? "One more question." : "Two more questions.";
    for (const card of document.querySelectorAll(".cards .card")) card.classList.toggle("chosen", card.id === found?.family);
    if (!found) return;
    answer.querySelector("p").textContent = found.sentence;
    const link = answer.querySelector("a");
    link.textContent = found.link;
    link.href = found.path;
  });
}

function followTables() {
  const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      const compare = (a, b) => way * key(a, column).localeCompare(key(b, column), "en", { numeric: true });
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    }));
  }
}

followForms();
followDrop();
followTry();
followColumns();
followJob();
followRun();
followButtons();
followChain();
followPlan();
followChoices();
followQuestions();
followTables();
