// One model: its facts, how it would do here, and what can be done with it. A card is drawn anew only when
// something but its numbers has changed; progress moves in place, so that the cursor stays where it is.
const wanted = new Map(); // model -> the variant that its card shows

const GOING = ["queued", "fetching", "checking", "waiting"];
function chosen(row, downloads) {
  const byKey = (key) => row.variants.find((each) => each.key === key);
  const underway = downloads.find(({ key }) => byKey(key));
  const here = row.variants.find((each) => each.here);
  const best = row.variants.find(({ format }) => format === row.choice);
  const least = row.variants.reduce((one, other) => (other.bytes < one.bytes ? other : one)); // misses the least
  return byKey(wanted.get(row.id)) ?? byKey(underway?.key) ?? here ?? best ?? least;
}

// where the model in memory stands, if it is this one: ["in_memory" | "loading" | "next", progress]
function answers(variant, { model, state, progress, next }) {
  if (variant.key === next) return ["next"];
  if (variant.key !== model) return [];
  return state === "ready" ? ["in_memory"] : state === "loading" ? ["loading", progress] : [];
}

const purposesOf = (row) => row.purposes.map((each) => w["purpose_" + each]);
function facts(row, variant) {
  const size = variant.about ? fill(w.models_about, { size: bytes(variant.bytes) }) : bytes(variant.bytes);
  const together = new Intl.ListFormat(document.documentElement.lang, { type: "conjunction" });
  const purposes = together.format(purposesOf(row));
  const list = [
    purposes && fill(w.models_for, { purposes }),
    row.origin === "hub" ? variant.source : "", // who made it: names alone are easily alike
    row.origin === "yours" ? "" : row.licence || w.models_licence_unknown,
    row.parameters ? fill(w.models_parameters, { count: many(row.parameters) }) : "",
    row.context ? fill(w.models_context, { count: number(row.context) }) : "",
    size,
    row.downloads ? fill(w.models_downloads, { count: many(row.downloads) }) : "",
  ];
  return el("p", { class: "about" }, ...list.filter(Boolean).map((each) => el("span", {}, each)));
}

function badge(kind, reason, id) {
  const props = { class: "badge " + kind, title: reason, "aria-describedby": id };
  return el("span", props, w["badge_" + kind]);
}

function picker(row, variant, redraw) {
  const select = el("select", { "aria-label": fill(w.models_variant, { name: row.name }) });
  for (const each of row.variants) {
    const about = each.about ? "~" : "";
    const fit = each.badge ? ` · ${w["badge_" + each.badge]}` : "";
    const text = `${each.format} · ${about}${bytes(each.bytes)}${each.here ? " ✓" : fit}`;
    select.append(el("option", { value: each.key, selected: each === variant }, text));
  }
  select.onchange = () => { wanted.set(row.id, select.value); redraw(); };
  return select;
}

function buttons(row, variant, download, [memory], act) {
  const made = [];
  const add = (what, label, kind = "quiet", run = () => act(what, variant.key)) =>
    made.push(press(label, run, { class: kind, "data-do": what, "aria-label": `${label}: ${row.name}` }));
  if (download) {
    if (GOING.includes(download.state)) add("pause", w.models_pause);
    else add("resume", w.models_resume, "solid");
    add("cancel", w.models_cancel);
    return made;
  }
  const { here, about, badge: fit } = variant;
  if (memory === "in_memory") add("unload", w.models_unload);
  else if (here === "ready" && !memory) add("load", w.models_use, "solid");
  if (!here && fit !== "unserved") add("start", w.models_download, fit === "large" ? "quiet" : "solid");
  if (about && row.origin === "hub") add("look", w.models_more, "quiet", () => act("look", row.id));
  if (here === "ready") add("usage", w.models_adjust, "quiet", () => act("usage", row));
  const gone = variant.yours ? w.models_forget : w.models_delete;
  if (here && !memory) add("remove", gone, "quiet", () => act("remove", row, variant));
  return made;
}

// {node, move}: `move(download)` brings the numbers up to date
function progressOf(row, download) {
  const bar = el("progress", { max: 1, "aria-label": fill(w.download_of, { name: row.name }) });
  const text = el("span", { class: "numbers" });
  const why = el("p", { class: "why", role: "alert" });
  const move = ({ state, done, bytes: all, speed, left_s: left, message }) => {
    bar.value = all ? done / all : 0;
    const parts = [fill(w["download_" + state], { done: bytes(done), all: bytes(all) })];
    if (state === "fetching" && speed > 0) {
      parts.push(fill(w.download_speed, { speed: bytes(speed) }));
      if (left !== null) parts.push(fill(w.download_left, { time: span(left) }));
    }
    text.textContent = parts.join(" · ");
    why.hidden = !message;
    why.textContent = octavo.said(message);
  };
  move(download);
  return { node: el("div", { class: "progress " + download.state }, bar, text, why), move };
}

// a card, made or kept: {node, sign, move}
function card(row, state, redraw, act, before) {
  const variant = chosen(row, state.downloads);
  const download = state.downloads.find(({ key }) => key === variant.key);
  const memory = answers(variant, state.runtime);
  const { id: bestId, format, reason: whyBest } = state.proposal;
  const isBest = bestId === row.id && format === variant.format;
  const isShort = !download && !variant.here && variant.bytes > state.disk.room; // it would be refused
  const sign = JSON.stringify([row, isBest && whyBest, variant.key, download?.state, memory[0], isShort]);
  if (before?.sign === sign) {
    before.move(download, memory);
    return before;
  }
  const id = `model-${row.id}`;
  const reason = octavo.said((isBest && whyBest) || variant.reason || row.reason);
  const mark = el("span", { class: "mark-here" });
  const where = variant.yours ? fill(w.models_yours, { path: variant.source }) : "";
  const full = isShort ? fill(w.models_no_room, { room: bytes(Math.max(0, state.disk.room)) }) : "";
  const why = [reason, full, where].filter(Boolean).join(" ");
  const gated = el("span", { class: "badge gated", title: w.models_gated_why }, w.models_gated);
  const head = el("header", {}, el("h3", { id: `${id}-name` }, row.name));
  if (isBest) head.append(badge("best", reason, `${id}-why`));
  else if (variant.badge) head.append(badge(variant.badge, reason, `${id}-why`));
  if (row.gated) head.append(gated);
  head.append(mark);
  const props = { class: "card model", "data-model": row.id, "aria-labelledby": `${id}-name` };
  const reasons = el("p", { class: "soft", id: `${id}-why` }, why);
  const node = el("article", props, head, facts(row, variant), reasons);
  const progress = download ? progressOf(row, download) : null;
  if (progress) node.append(progress.node);
  const tools = buttons(row, variant, download, memory, act);
  const pick = row.variants.length > 1 && !download ? [picker(row, variant, redraw)] : [];
  node.append(el("div", { class: "acts" }, ...pick, ...tools));
  const move = (now, [kind, part]) => {
    if (now) progress?.move(now);
    const percent = part ? `${number(100 * part)} %` : "";
    const word = kind === "loading" ? fill(w.models_loading, { percent }) : kind === "next" ? w.models_next
      : kind === "in_memory" ? w.models_in_memory
      : variant.here === "damaged" ? w.models_damaged : variant.here ? w.models_ready : "";
    mark.textContent = word.trim();
    mark.className = "mark-here " + (kind ?? variant.here);
  };
  move(download, memory);
  return { node, sign, move };
}
