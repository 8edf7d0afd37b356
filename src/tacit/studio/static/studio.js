// What pages do beyond showing: drop a file, send a form, follow a job, move a budget, answer.

const json = { "Accept": "application/json", "Content-Type": "application/json" };

async function send(path, body, method = "POST", headers = json) {
  const answer = await fetch(path, { method, headers, body });
  const said = await answer.json().catch(() => ({ error: "the studio does not answer; is it still running?" }));
  if (!answer.ok) throw new Error(said.error ?? `refused with status ${answer.status}`);
  return said;
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
        location.href = `/jobs/${made.job}`;
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
  const take = async (file) => {
    const name = file.name.replace(/[^A-Za-z0-9_. -]+/g, "-").replace(/^[^A-Za-z0-9]+/, "") || "upload";
    state.textContent = `Storing ${name} …`;
    try {
      const made = await send(`/data/upload/${encodeURIComponent(name)}`, file, "PUT", { "Accept": "application/json" });
      location.href = `/data/import/${encodeURIComponent(made.name)}`;
    } catch (error) {
      state.textContent = error.message;
    }
  };
  document.getElementById("file").addEventListener("change", (event) => take(event.target.files[0]));
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.classList.add("over"); });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files[0]); });
}

function followJob() {
  const live = document.getElementById("live");
  if (!live) return;
  const bar = document.getElementById("bar");
  const events = new EventSource(live.dataset.events);
  events.onmessage = (event) => {
    const said = JSON.parse(event.data);
    document.getElementById("message").textContent = said.message;
    if (said.total > 0) { bar.max = said.total; bar.value = said.done; }
    if (said.state !== "running") { events.close(); location.reload(); }
  };
}

function followButtons() {
  for (const button of document.querySelectorAll("button[data-act]")) {
    button.addEventListener("click", async () => {
      button.disabled = true;
      await send(button.dataset.act, "{}");
      location.reload();
    });
  }
}

function followPlan() {
  const slider = document.getElementById("epsilon");
  if (!slider) return;
  const rows = JSON.parse(document.getElementById("plan-rows").textContent);
  const set = (id, text) => { document.getElementById(id).textContent = text; };
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const show = () => {
    const row = rows[slider.value];
    const link = new URL(document.getElementById("train-link").href);
    set("epsilon-shown", row.epsilon);
    set("expected", percent(row.expected));
    set("ceiling", percent(row.ceiling));
    set("odds", `${row.odds < 10 ? row.odds.toFixed(1) : Math.ceil(row.odds)}:1`);
    set("devices", row.devices.toLocaleString("en"));
    set("in-words", `Somebody who thinks two series equally likely will, after one release, believe in the right one with at most ${percent(row.belief)}.`);
    link.searchParams.set("epsilon", row.epsilon);
    document.getElementById("train-link").href = link;
  };
  slider.addEventListener("input", show);
  show();
}

function followChoices() {
  const parts = document.querySelectorAll("[data-for]");
  const show = () => {
    const chosen = document.querySelector("input[name=method]:checked")?.value;
    for (const part of parts) part.hidden = !part.dataset.for.split(" ").includes(chosen);
  };
  for (const input of document.querySelectorAll("input[name=method]")) input.addEventListener("change", show);
  if (parts.length) show();
}

const ADVICE = {
  device: ["local", "Local: each device releases one noised answer per series."],
  organisations: ["silo", "Silo: the organisations compute on secret shares, and one of them gets a model that it can explain."],
  fleet: ["fleet", "Fleet: devices train together with noised, sealed updates."],
};

function followQuestions() {
  const form = document.getElementById("questions");
  if (!form) return;
  form.addEventListener("change", () => {
    const said = Object.fromEntries(new FormData(form));
    if (!said.holder) return;
    let [family, sentence] = ADVICE[said.holder];
    if (family === "local" && said.training === "no") {
      sentence = "Fleet, then local: devices train together first, because nobody's series may be collected; then each releases noised answers. `tacit train hybrid` does both.";
    } else if (family === "fleet" && said.training === "yes" && said.goal === "population") {
      [family, sentence] = ADVICE.device;
    }
    for (const card of document.querySelectorAll(".cards .card")) card.style.opacity = card.id === family ? 1 : 0.45;
    const answer = document.getElementById("answer");
    answer.textContent = sentence;
    answer.hidden = false;
  });
}

followForms();
followDrop();
followJob();
followButtons();
followPlan();
followChoices();
followQuestions();
