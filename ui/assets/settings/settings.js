// The page of settings: appearance, the fields of settings.toml, the API's key, the data folder, about, the end.
const { el, fill, words: w } = octavo;
const GROUPS = ["chat", "memory", "net", "api"];
const fields = new Map(); // name -> { input, note, alarm }
let frame = null;

const ask = (what, more = {}) => octavo.ask(server, "act", { do: what, ...more });
const card = (title, ...children) => el("section", { class: "card" }, el("h2", {}, title), ...children);
const button = (text, onclick, more = {}) => el("button", { type: "button", class: "quiet", onclick, ...more }, text);
const soft = (text, more = {}) => el("p", { class: "soft small", ...more }, text);
const notice = el("p", { class: "told", role: "status", hidden: true });
function tell(text, isBad = false) {
  notice.textContent = octavo.said(text);
  notice.className = isBad ? "told is-bad" : "told";
  notice.hidden = !text;
}

// one of a few: [value, words]; `now` says which is chosen
function choice(label, options, now, choose) {
  const group = el("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const name = `choice-${label}`;
  for (const [value, text] of options) {
    const radio = el("input", { type: "radio", name, value, onchange: () => choose(value) });
    group.append(el("label", {}, radio, el("span", {}, text)));
  }
  octavo.use(() => { for (const each of group.querySelectorAll("input")) each.checked = each.value === now(); });
  return el("div", { class: "line" }, el("h3", {}, label), group);
}
const look = card(w.set_look,
  choice(w.set_language, [["", w.set_language_auto], ["en", "English"], ["zh", "中文"]],
    () => octavo.chosenLanguage, octavo.setLanguage),
  choice(w.theme, [["light", w.theme_light], ["dark", w.theme_dark], ["", w.theme_system]],
    () => octavo.theme, octavo.setTheme));

// a setting: label, field, what it does, when it counts, what is wrong with it
function field({ name, kind, when }) {
  const key = name.replace(/.*\./, ""), id = `set-${key}`;
  const alarm = el("p", { id: `${id}-alarm`, class: "alarm", role: "alert", hidden: true });
  const note = soft("", { hidden: true });
  const about = el("p", { id: `${id}-text`, class: "soft small" });
  const props = { id, "aria-describedby": `${id}-text ${id}-alarm`, onchange: () => change(name) };
  const input = kind === "switch" ? el("input", { ...props, type: "checkbox", role: "switch", class: "switch" })
    : kind === "long" ? el("textarea", { ...props, rows: 3 })
    : el("input", { ...props, type: "text", inputmode: kind === "text" ? null : "decimal", autocomplete: "off",
      spellcheck: "false", placeholder: w.set_auto });
  fields.set(name, { input, note, alarm, about, kind, when, key });
  const label = el("label", { for: id }, w["set_" + key]);
  return el("div", { class: `line is-${kind}` }, el("div", { class: "what" }, label, about, note, alarm), input);
}
function put(name, { value, waits }) {
  const { input, note, kind, when } = fields.get(name);
  if (kind === "switch") input.checked = value === "on";
  else if (document.activeElement !== input) input.value = value;
  note.textContent = waits ? w.set_start : "";
  note.hidden = !waits;
  return when;
}
// a sentence that calls a setting as settings.toml does: num_chats is 0. Plain words may mean something else
const inLabels = (sentence, key) =>
  sentence.replace(new RegExp(`${key.includes("_") ? "" : "^"}\\b(\\w+\\.)?${key}\\b`), `“${w["set_" + key]}”`);
async function change(name) {
  const { input, alarm, note, kind, when, key } = fields.get(name);
  const text = kind === "switch" ? (input.checked ? "on" : "") : input.value;
  const answer = await ask("change", { name, text });
  alarm.textContent = inLabels(octavo.said(answer.error) ?? "", key);
  alarm.hidden = !answer.error;
  input.setAttribute("aria-invalid", Boolean(answer.error));
  if (answer.error) return;
  input.blur === undefined || put(name, answer);
  note.textContent = answer.waits ? w.set_start : when === "load" ? w.set_load : w.set_saved;
  note.hidden = false;
}

// the API's key: shown on demand only
const secret = el("code", { class: "secret" }, "••••••••••••••••");
const showKey = button(w.set_key_show, () => toggleKey(), { id: "show-key" });
let key = "";
async function toggleKey(given = "") {
  if (key && !given) key = "";
  else {
    const answer = given ? { key: given } : await ask("key");
    if (answer.error) return tell(answer.error, true);
    key = answer.key;
  }
  secret.textContent = key || "••••••••••••••••";
  showKey.textContent = key ? w.set_key_hide : w.set_key_show;
}
async function copy(text, from) {
  await navigator.clipboard.writeText(text);
  const before = from.textContent;
  from.textContent = w.set_copied;
  setTimeout(() => { from.textContent = before; }, 1500);
}
const copyKey = button(w.copy, async () => {
  const answer = key ? { key } : await ask("key");
  if (answer.error) tell(answer.error, true);
  else copy(answer.key, copyKey);
}, { "aria-label": `${w.copy}: ${w.set_key}` });
const renew = () => sure(w.set_key_renew_title, w.set_key_renew_text, w.set_key_renew, async () => {
  const answer = await ask("renew");
  if (answer.error) tell(answer.error, true);
  else toggleKey(answer.key);
});
const keys = el("div", { class: "line" },
  el("div", { class: "what" }, el("h3", {}, w.set_key), secret),
  el("div", { class: "row" }, showKey, copyKey, button(w.set_key_renew, renew, { id: "renew-key" })));

const sure = (title, text, yes, run) =>
  octavo.question({ title, body: [el("p", {}, text)], yes, danger: true, run });

// the folder, licences, diagnostics, the end
const folder = el("code", { class: "path" });
const copyFolder = button(w.copy, () => copy(folder.textContent, copyFolder), { "aria-label": `${w.copy}: ${w.set_data}` });
const data = card(w.set_data, soft(w.set_data_text), el("div", { class: "row" }, folder, copyFolder),
  el("details", {}, el("summary", {}, w.set_move), soft(w.set_move_text)));
const facts = el("dl", { class: "facts" });
const packages = el("ul", { class: "packages" });
const licences = el("details", { ontoggle: listPackages }, el("summary", {}, w.set_licences), packages);
async function listPackages() {
  if (!licences.open || packages.children.length) return;
  const answer = await ask("licences");
  if (answer.error) return tell(answer.error, true);
  packages.replaceChildren(...answer.licences.map(({ name, version, licence }) => {
    const text = el("pre", { hidden: true, tabindex: 0 });
    const open = async () => {
      text.hidden = !text.hidden;
      if (!text.textContent) text.textContent = (await ask("licence", { name })).text || licence;
    };
    const title = el("button", { type: "button", class: "link", onclick: open }, `${name} ${version}`);
    return el("li", {}, title, el("span", { class: "soft" }, licence), text);
  }));
}
async function saveDiagnostics() {
  const answer = await ask("diagnostics");
  if (answer.error) return tell(answer.error, true);
  const bytes = Uint8Array.from(atob(answer.data), (letter) => letter.charCodeAt(0));
  const href = URL.createObjectURL(new Blob([bytes], { type: "application/zip" }));
  el("a", { href, download: answer.name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
const end = async (what, words) => {
  const answer = await ask(what);
  if (answer.link) words = w.set_restart_moved;
  tell(answer.error ?? words, Boolean(answer.error));
  if (!answer.error) octavo.set({ goodbye: words });
  if (answer.link) notice.append(" ", el("a", { href: answer.link }, new URL(answer.link).host));
  notice.scrollIntoView({ block: "center" });
};
const about = card(w.set_about, facts, licences,
  el("div", { class: "line" },
    el("div", { class: "what" }, el("h3", {}, w.set_diagnostics), soft(w.set_diagnostics_text)),
    button(w.set_diagnostics_save, saveDiagnostics, { id: "diagnostics" })));
const endButton = (what) => {
  const name = w["set_" + what], run = () => end(what, w[`set_${what}_done`]);
  return button(name, () => sure(w[`set_${what}_title`], w.set_end_text, name, run), { id: what });
};
const ends = card(w.set_end, soft(w.set_end_text),
  el("div", { class: "row" }, endButton("restart"), endButton("quit")));
const groups = new Map(GROUPS.map((name) => [name, card(name === "api" ? w.set_api_card : w["set_" + name])]));
element.querySelector(".settings").append(
  octavo.pageHead(w.settings),
  el("div", { class: "leaf-body" }, notice, look, ...groups.values(), data,
    card(w.set_updates, soft(w.set_updates_text)), about, ends),
);
groups.get("api").append(keys);

function show(next) {
  if (!next.fields) return tell(next.error ?? "", !octavo.state.goodbye);
  if (next.error) tell(next.error, true);
  const address = `http://127.0.0.1:${next.port}/v1`;
  for (const each of next.fields) {
    if (!fields.has(each.name)) {
      const line = field(each);
      each.group === "api" ? keys.before(line) : groups.get(each.group).append(line);
    }
    const { about: text, key: short } = fields.get(each.name);
    text.textContent = fill(w[`set_${short}_text`], { address });
    if (!frame || frame.fields.find(({ name }) => name === each.name).value !== each.value) put(each.name, each);
  }
  folder.textContent = next.home;
  const { octavo: version, python, system, kernels, model, torch, numba, gradio } = next.about;
  const rows = [[w.set_version, version], [w.set_about_model, model], [w.set_kernels, kernels || "–"], ["Python", python],
    ["PyTorch", torch], ["Numba", numba], ["Gradio", gradio], [w.set_system, system]];
  facts.replaceChildren(...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  frame = next;
}
octavo.visit("settings", async () => show(await octavo.ask(server, "frame", {})), 5000);
