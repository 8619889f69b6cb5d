// The page of memory: block maps, what each chat takes, plots of the last minutes, what can be given back, the
// plan. Drawn from frames that come once a second while it is open.
const { el, number, bytes, fill, words: w } = octavo;
const FREE = 0, KEPT = 1, CACHED = 2, USED = 3;
let seen = "", pools = [];

const section = (title, ...children) => {
  const heading = el("h2", {}, title);
  return el("section", { class: "card" }, heading, ...children);
};
const button = (label, onclick, more = {}) => el("button", { type: "button", class: "quiet", onclick, ...more }, label);
const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
const key = (look, text) => el("li", {}, el("i", { class: `key ${look}` }), text);

const intro = el("p", { class: "intro" });
const notice = el("p", { class: "told", role: "status", hidden: true });
const maps = el("div", { class: "maps" });
const legend = el("ul", { class: "legend" },
  key("is-used", w.mem_used), key("is-cached", w.mem_cached), key("is-free", w.mem_free),
  key("is-kept", w.mem_kept), key("is-shared", w.mem_shared));
const rows = el("tbody");
const column = (text, more) => el("th", { scope: "col", ...more }, text);
const table = el("table", { class: "takes" },
  el("thead", {}, el("tr", {}, column(w.mem_chat), column(w.mem_blocks, { class: "number" }),
    column(w.mem_bytes, { class: "number" }), column(w.mem_shares, { class: "number" }), column(w.mem_state))),
  rows);
const nothing = el("p", { class: "soft" }, w.mem_chats_none);
const speed = plot(), batch = plot(), use = plot();
const freeNow = button(w.mem_free_now, () => act("free"), { id: "free-now" });
const freeText = el("p", { class: "soft" });
const keep = el("input", {
  id: "keep-free", type: "text", inputmode: "decimal", autocomplete: "off", "aria-describedby": "keep-free-text",
});
const keepForm = el("form", { class: "row", onsubmit: setKeep },
  el("label", { for: "keep-free" }, w.mem_keep), keep, el("button", { class: "quiet" }, w.mem_set));
const available = el("p", { class: "soft" });
const reasons = el("ul", { class: "reasons" });
const facts = el("dl", { class: "facts" });
const unload = button(w.mem_unload, () => act("unload"), { id: "unload", "aria-describedby": "unload-text" });
const load = button(w.mem_load, () => act("load"), { id: "load-now" });
const absent = el("section", { class: "card absent" }, el("p", {}, w.mem_none), load);
const tierRows = el("tbody");
const numbers = [w.mem_blocks, w.mem_taken_bytes, w.mem_most_bytes, w.mem_back];
const tiersTable = el("table", { class: "tiers" },
  el("thead", {},
    el("tr", {}, column(w.mem_tier), ...numbers.map((text) => column(text, { class: "number" })))), tierRows);
const clearDisk = button(w.mem_clear, () => act("clear_disk"), { id: "clear-disk", "aria-describedby": "clear-text" });
const tiers = section(w.mem_tiers, tiersTable, el("p", { class: "soft small" }, w.mem_tiers_text),
  el("div", { class: "row" }, clearDisk, el("p", { id: "clear-text", class: "soft" }, w.mem_clear_text)));
const present = el("div", { class: "present" },
  section(w.mem_map, maps, legend),
  section(w.mem_chats, el("p", { class: "soft small" }, w.mem_chats_text), table, nothing),
  el("div", { class: "pair" }, section(w.mem_speed, speed.root), section(w.mem_batch, batch.root)),
  section(w.mem_use, use.root),
  section(w.mem_plan, facts, reasons));
const give = section(w.mem_give, available,
  el("div", { class: "row" }, freeNow, freeText),
  keepForm, el("p", { id: "keep-free-text", class: "soft" }, w.mem_keep_text),
  el("div", { class: "row" }, unload, el("p", { id: "unload-text", class: "soft" }, w.mem_unload_text)));
element.querySelector(".memory").append(
  octavo.pageHead(w.memory),
  el("div", { class: "leaf-body" }, intro, notice, absent, present, tiers, give),
);

const nameOf = ({ name, chat, title }) =>
  chat ? title || w.untitled : /^api:/.test(name) ? w.mem_api : w.mem_gone;
function describe(pool, block) {
  const parts = [fill(w.mem_block, { number: number(block + 1) })];
  const owner = pool.groups[pool.owners[block] - 1], sharers = pool.sharers[block];
  parts.push(w["mem_" + STATES[pool.states[block]]]);
  if (owner) parts.push(`“${nameOf(owner)}”`);
  if (sharers > 1) parts.push(fill(w.mem_sharers, { count: number(sharers) }));
  return parts.join(" · ");
}
function inWords(pool) {
  const counts = [0, 0, 0, 0];
  for (const state of unpack(pool).states) counts[state] += 1;
  const [free, kept, cached, used] = counts.map((count) => number(count));
  const total = number(counts.reduce((sum, count) => sum + count));
  return { counts, text: fill(w.mem_map_text, { total, size: bytes(pool.bytes), free, kept, cached, used }) };
}
function drawMaps() {
  while (maps.children.length > pools.length) maps.lastChild.remove();
  pools.forEach((pool, place) => {
    let figure = maps.children[place];
    if (!figure) {
      const map = blockMap(describe);
      figure = el("figure", {}, el("figcaption"), map.root);
      figure.map = map;
      maps.append(figure);
    }
    const { text } = inWords(pool);
    const window = pool.window ? fill(w.mem_map_window, { window: number(pool.window) }) : "";
    figure.firstChild.textContent = [window, text].filter(Boolean).join(" ");
    figure.map.draw(pool, text);
  });
}
function drawTable() {
  const takes = new Map();
  for (const pool of pools) pool.groups.forEach((group, place) => {
    const known = takes.get(group.name) ?? { ...group, place, held: 0, used: 0, shared: 0, bytes: 0 };
    known.held += group.held;
    known.used += group.used;
    known.shared += group.shared;
    known.bytes += group.held * pool.bytes;
    takes.set(group.name, known);
  });
  const cell = (text) => el("td", { class: "number" }, text);
  rows.replaceChildren(...[...takes.values()].sort((a, b) => b.bytes - a.bytes).map((each) => {
    const swatch = el("i", { class: "key" });
    swatch.style.background = colour(each.place);
    const open = { type: "button", class: "link", onclick: () => octavo.show(each.name) };
    const name = each.chat ? el("button", open, nameOf(each)) : nameOf(each);
    return el("tr", {}, el("th", { scope: "row" }, swatch, name), cell(number(each.held)), cell(bytes(each.bytes)),
      cell(number(each.shared)), el("td", {}, each.used ? w.mem_answering : w.mem_idle));
  }));
  table.hidden = !takes.size;
  nothing.hidden = takes.size > 0;
}
function drawPlots(recent) {
  const now = Math.floor(Date.now() / 1000);
  const at = new Map(recent.map((row) => [row[0], row]));
  const last = (second) => recent.findLast(([when]) => when <= second) ?? [0, 0, 0, 0, 0, 0];
  const of = (column) => (second) => at.get(second)?.[column] ?? 0;
  const most = (...columns) => Math.max(1, ...recent.flatMap((row) => columns.map((each) => row[each])));
  const shown = at.get(now) ?? at.get(now - 1) ?? [0, 0, 0, 0];
  const [answers, prompts, count] = shown.slice(1, 4).map((value) => number(value));
  const tokens = most(1, 2), together = most(3), text = fill(w.mem_speed_text, { answers, prompts, count });
  speed.draw(now, [
    { colour: ink("faint"), fill: 0.18, value: of(2) }, { colour: ink("cloth"), fill: 0.25, value: of(1) },
  ], tokens, text, fill(w.mem_speed_line, { answers, prompts, most: number(tokens) }));
  batch.draw(now, [{ colour: ink("cloth"), fill: 0.25, value: of(3) }], together, text,
    fill(w.mem_most, { most: number(together) }));
  const total = pools[0] ? unpack(pools[0]).states.length : 1, share = (blocks) => number((100 * blocks) / total);
  const [, , , , used, cached] = last(now);
  use.draw(now, [
    { colour: ink("faint"), fill: 0.18, value: (second) => last(second)[4] + last(second)[5] },
    { colour: ink("cloth"), fill: 0.3, value: (second) => last(second)[4] },
  ], total, fill(w.mem_use_text, { used: share(used), cached: share(cached) }),
  fill(w.mem_use_text, { used: share(used), cached: share(cached) }));
}
function drawPlan({ plan, backend, gives_back: givesBack }) {
  const written = pools.reduce((sum, pool) => sum + pool.written * pool.bytes, 0);
  const free = pools.reduce((sum, pool) => sum + pool.written * pool.bytes, 0)
    - pools.reduce((sum, pool) => sum + inWords(pool).counts[USED] * pool.bytes, 0);
  facts.replaceChildren(
    fact(w.mem_weights, bytes(plan.weights_bytes)), fact(w.mem_buffers, bytes(plan.activation_bytes)),
    fact(w.mem_pool, bytes(plan.kv_bytes)), fact(w.mem_taken, bytes(written)), fact(w.mem_backend, backend));
  reasons.replaceChildren(...plan.reasons.map((text) => el("li", {}, octavo.said(text))));
  const size = bytes(Math.max(0, free));
  freeText.textContent = givesBack ? fill(w.mem_free_now_text, { size }) : w.mem_not_given;
  intro.textContent = fill(w.mem_intro, { tokens: number(plan.block_size) });
}
function drawTiers(frame) {
  const device = { name: "device", num_blocks: 0, num_bytes: 0, most: frame.plan?.kv_bytes, hits: null };
  for (const pool of pools) {
    const { counts } = inWords(pool), blocks = counts[USED] + counts[CACHED];
    device.num_blocks += blocks;
    device.num_bytes += blocks * pool.bytes;
  }
  const cell = (text) => el("td", { class: "number" }, text);
  tierRows.replaceChildren(...[...(frame.plan ? [device] : []), ...frame.tiers].map((tier) => el("tr", {},
    el("th", { scope: "row" }, w["mem_tier_" + tier.name]), cell(number(tier.num_blocks)), cell(bytes(tier.num_bytes)),
    cell(tier.most ? bytes(tier.most) : w.mem_off), cell(tier.hits === null ? "–" : number(tier.hits)))));
  clearDisk.disabled = !frame.tiers.find((tier) => tier.name === "disk")?.num_bytes;
}
let drawn = "";
function show(frame) {
  if (frame.status) octavo.set({ status: frame.status });
  const here = Boolean(frame.plan) && !frame.error;
  absent.hidden = here;
  absent.classList.toggle("is-bad", Boolean(frame.error) && !octavo.state.goodbye);
  absent.firstChild.textContent = octavo.said(frame.error || frame.status?.message) || w.mem_none;
  load.hidden = frame.status?.state === "loading" || Boolean(frame.error);
  present.hidden = intro.hidden = !here;
  unload.disabled = !here;
  freeNow.disabled = !here || !frame.gives_back;
  if (frame.free) available.textContent = fill(w.mem_now_free, { size: bytes(frame.free) });
  if (document.activeElement !== keep && frame.keep_free !== undefined) keep.value = number(frame.keep_free, 2);
  if (frame.pools) pools = frame.pools;
  if (frame.tiers) drawTiers(frame);
  if (!here) return;
  const theme = document.documentElement.dataset.theme;
  if (frame.pools) seen = frame.seen;
  if (frame.pools || theme !== drawn) { drawMaps(); drawTable(); drawPlan(frame); }
  drawn = theme;
  drawPlots(frame.recent);
}
function tell(text, isBad = false) {
  notice.textContent = octavo.said(text);
  notice.classList.toggle("is-bad", isBad);
  notice.hidden = !text;
}
async function act(what, more = {}) {
  const answer = await octavo.ask(server, "act", { do: what, ...more });
  if (answer.error) tell(answer.error, !octavo.state.goodbye);
  else if (what === "free") tell(answer.freed ? fill(w.mem_freed, { size: bytes(answer.freed) }) : w.mem_freed_none);
  else tell(what === "clear_disk" ? w.mem_cleared : "");
  lookNow();
}
function setKeep(event) {
  event.preventDefault();
  act("keep_free", { gb: keep.value });
}
const lookNow = octavo.visit("memory", async () => show(await octavo.ask(server, "frame", { seen })), 1000);
