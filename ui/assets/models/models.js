// The page of models: what is here first, then what other programs keep here, then the catalogue or what the
// hub found. It looks at the server once a second while it is open; the hub is asked only by a press.
const root = element.querySelector(".models");
const model = { rows: [], found: [], downloads: [], runtime: {}, token: "", problem: "", hits: null };
const cards = new Map(); // "section id" -> card
let seenList = "";

const onEnter = (run) => (event) => { if (event.key === "Enter") run(); };
const box = el("input", {
  type: "search", id: "models-search", placeholder: w.models_find, "aria-label": w.models_find,
  maxlength: 200, autocomplete: "off", oninput: () => draw(), onkeydown: onEnter(() => searchHub()),
});
const searchButton = press(w.models_hub, () => searchHub(), { class: "solid", id: "models-hub" });
const notice = el("div", { class: "told", role: "alert", hidden: true });
const problem = el("p", { class: "told is-bad", hidden: true });
const disk = el("p", { class: "soft" });
const quota = el("meter", { class: "quota", hidden: true, min: 0, max: 1 });
const sections = el("div", { class: "sections" });
const bar = el("div", { class: "bar", role: "search" },
  el("label", { class: "search" }, icon("find"), box), searchButton);
const own = bring();
root.append(
  octavo.pageHead(w.models),
  el("div", { class: "leaf-body" },
    bar, notice, problem, el("div", { class: "space" }, disk, quota), sections, gated()),
);

function say(text, kind = "is-bad") {
  notice.hidden = !text;
  notice.className = "told " + kind;
  notice.replaceChildren(el("span", {}, octavo.said(text)), tool("close", w.dismiss, () => say("")));
}
// do one of the server's acts; its answer, or null when the page says why not
async function does(what, more = {}) {
  const answer = await ask("act", { do: what, ...more });
  if (answer.error) say(answer.error);
  else say("");
  refresh();
  return answer.error ? null : answer;
}
async function act(what, first, second) {
  if (what === "usage") return askUsage(first, say);
  if (what === "look") return look(first);
  if (what === "remove") return askRemove(first, second, remove);
  const more = { start: { use: false } }[what] ?? {};
  const answer = await does(what, { key: first, ...more });
  if (answer?.freed) say(fill(w.models_freed, { size: bytes(answer.freed) }), "good");
}
async function remove(key) {
  const answer = await does("remove", { key });
  if (answer?.freed) say(fill(w.models_freed, { size: bytes(answer.freed) }), "good");
}
async function look(id) {
  const answer = await does("look", { id });
  if (answer) model.hits = model.hits.map((row) => (row.id === id ? answer.row : row));
  draw();
}
async function searchHub() {
  const text = box.value.trim();
  if (!text || searchButton.disabled) return;
  searchButton.disabled = true;
  searchButton.textContent = w.models_searching;
  const answer = await does("search", { text });
  searchButton.disabled = false;
  searchButton.textContent = w.models_hub;
  if (!answer) return;
  model.hits = answer.rows;
  model.asked = text;
  draw();
}
const back = () => { model.hits = null; box.value = ""; draw(); };
const backButton = press(w.models_back, back, { class: "quiet back" });

function bring() {
  const props = { type: "text", id: "models-path", spellcheck: "false", autocomplete: "off" };
  const path = el("input", { ...props, "aria-label": w.models_path, placeholder: w.models_path });
  const told = el("p", { class: "told", role: "alert", hidden: true });
  const use = async () => {
    if (!path.value.trim() || button.disabled) return;
    button.disabled = told.hidden = true;
    button.textContent = w.models_bringing;
    const answer = await ask("act", { do: "bring", path: path.value.trim() });
    button.disabled = told.hidden = false;
    button.textContent = w.models_use;
    told.className = `told ${answer.error ? "is-bad" : "good"}`;
    told.textContent = answer.error ? octavo.said(answer.error) : fill(w.models_brought, { id: answer.id });
    if (!answer.error) path.value = "";
    refresh();
  };
  const button = press(w.models_use, use, { id: "models-bring" });
  path.onkeydown = onEnter(use);
  return el("section", { class: "card own" },
    el("h2", {}, w.models_bring), el("p", { class: "soft" }, w.models_bring_text),
    el("div", { class: "row" }, path, button), told);
}
function gated() {
  const props = { type: "password", autocomplete: "off", spellcheck: "false", placeholder: "hf_…" };
  const field = el("input", { ...props, id: "models-token", "aria-label": w.models_token_field });
  const kept = el("p", { class: "soft", id: "models-token-kept" });
  const forget = press(w.models_token_forget, () => does("forget"), { id: "models-forget" });
  const keep = async () => {
    const token = field.value;
    field.value = ""; // it is never shown again
    if (token.trim()) await does("token", { token });
  };
  field.onkeydown = onEnter(keep);
  model.drawToken = () => {
    kept.textContent = model.token ? w["token_" + model.token] : "";
    kept.hidden = forget.hidden = !model.token;
  };
  const save = press(w.models_token_keep, keep, { id: "models-keep" });
  return el("section", { class: "card own" },
    el("h2", {}, w.models_token), el("p", { class: "soft" }, w.models_token_text),
    el("div", { class: "row" }, field, save, forget), kept);
}

function foundRow(each) {
  const use = async () => {
    const answer = await does("bring", { path: each.path });
    if (answer) say(fill(w.models_brought, { id: answer.id }), "good");
  };
  const label = `${w.models_use}: ${each.name}`;
  return el("article", { class: "found", title: each.path },
    el("span", { class: "name" }, each.name),
    el("span", { class: "soft" }, `${each.source} · ${bytes(each.bytes)}`),
    press(w.models_use, use, { "aria-label": label }));
}
// what the hub found, with what is here of it
function withHere(row) {
  const here = model.rows.find(({ id }) => id === row.id);
  const state = (key) => here?.variants.find((each) => each.key === key)?.here ?? "";
  return { ...row, variants: row.variants.map((each) => ({ ...each, here: state(each.key) })) };
}
function section(name, title, rows, more = []) {
  const list = rows.map((row) => {
    const key = `${name} ${row.id}`;
    const made = card(row, model, draw, act, cards.get(key));
    cards.set(key, made);
    return made.node;
  });
  return { name, title, nodes: [...more, ...list] };
}
function draw() {
  const text = box.value.trim().toLowerCase();
  const underway = new Set(model.downloads.map(({ key }) => key));
  const fits = (row) =>
    [row.name, row.id, row.licence, ...purposesOf(row)].some((each) => each.toLowerCase().includes(text));
  const isHere = ({ origin, variants }) =>
    origin === "yours" || variants.some(({ here, key }) => here || underway.has(key));
  const hint = (sentence) => el("p", { class: "soft" }, sentence);
  const found = model.found.filter((each) => each.name.toLowerCase().includes(text)).map(foundRow);
  const all = [];
  if (model.hits) {
    const none = model.hits.length ? [] : [hint(fill(w.models_no_hits, { text: model.asked }))];
    all.push(section("hub", w.models_hits, model.hits.map(withHere), [backButton, ...none]));
  } else {
    const more = found.length ? [hint(w.models_found_text), ...found] : [];
    all.push(section("here", w.models_here, model.rows.filter((row) => isHere(row) && fits(row))));
    all.push({ name: "found", title: w.models_found, nodes: more });
    if (!text) all.push({ name: "own", nodes: [own] }); // above the long list
    const others = model.rows.filter((row) => !isHere(row) && fits(row));
    const isBest = ({ id }) => id === model.proposal?.id;
    const bestFirst = [...others.filter(isBest), ...others.filter((row) => !isBest(row))];
    all.push(section("catalogue", w.models_catalogue, bestFirst));
  }
  const full = all.filter(({ nodes }) => nodes.length);
  if (!full.length && text) full.push({ name: "none", nodes: [hint(fill(w.models_nothing, { text }))] });
  place(full);
}
// only what changed its place is touched, so that the cursor and an open list stay
function place(full) {
  const isSame = (node, all) =>
    all.length === node.children.length && all.every((each, at) => node.children[at] === each);
  const nodes = full.map(({ name, title, nodes: inside }) => {
    const node = sections.querySelector(`:scope > [data-section="${name}"]`)
      ?? el("section", { "data-section": name });
    const heading = node.querySelector(":scope > h2") ?? (title ? el("h2", {}, title) : "");
    const all = [heading, ...inside].filter(Boolean);
    if (!isSame(node, all)) put(node, all);
    return node;
  });
  if (!isSame(sections, nodes)) sections.replaceChildren(...nodes);
}
function put(node, all) {
  const focus = node.contains(document.activeElement) ? document.activeElement : null;
  const where = focus?.closest("[data-model]")?.dataset.model;
  node.replaceChildren(...all);
  if (!focus) return;
  const cardNow = where && node.querySelector(`[data-model="${CSS.escape(where)}"]`);
  const same = focus.isConnected ? focus : cardNow?.querySelector(`[data-do="${focus.dataset.do}"]`);
  (same ?? cardNow?.querySelector(".acts button, .acts select"))?.focus();
}
function drawSpace() {
  const { models, packed, free, quota: most } = model.disk;
  const said = [fill(w.models_disk, { models: bytes(models), free: bytes(free) })];
  if (packed) said.push(fill(w.models_packed, { packed: bytes(packed) }));
  if (most) said.push(fill(w.models_quota, { quota: bytes(most) }));
  if (model.offline) said.push(w.models_offline);
  disk.textContent = said.join(" ");
  quota.hidden = !most;
  if (most) quota.value = Math.min(1, models / most);
}
async function glance() {
  const frame = await ask("frame", { seen: seenList });
  if (frame.error) return say(frame.error, octavo.state.goodbye ? "good" : "is-bad");
  seenList = frame.seen;
  Object.assign(model, frame);
  problem.hidden = !model.problem;
  problem.textContent = octavo.said(model.problem);
  searchButton.hidden = model.offline;
  drawSpace();
  model.drawToken();
  draw();
}
const refresh = octavo.visit("models", glance, 1000);
