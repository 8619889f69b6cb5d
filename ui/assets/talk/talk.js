// The conversation's manners, around Gradio's two Chatbots (the last turn, and all before it): it stays at
// the newest line only while the reader is there, around each message stands what belongs to it (thoughts.js,
// foot.js, rewrite.js), below all what waits (line.js). Runs early; the Chatbots are found when they appear.
(() => {
  const NEAR = 48, FAR = 200; // pixels from the end
  const { el, adjust, fill, number, words: w } = octavo;
  const pane = () => document.getElementById("talk");
  const turn = () => document.querySelector("#now .message-wrap"); // the last one
  const messages = () => document.querySelectorAll("#talk .message-row");
  const gap = (box) => box.scrollHeight - box.scrollTop - box.clientHeight;
  let stick = true; // the reader is at the end
  let last = 0; // where the pane was scrolled to
  let kept = null; // the message that stays where it is when older ones come in above it

  let aim = 0; // the message that is to be shown as soon as it is there

  octavo.toEnd = () => { stick = true; kept = null; aim = 0; settle(); };
  octavo.toMessage = (id) => { stick = false; kept = null; aim = id; settle(); };
  function show(row) {
    aim = 0;
    row.scrollIntoView({ block: "center" });
    row.classList.add("is-found");
    row.onanimationend = () => row.classList.remove("is-found");
  }
  const top = (row) => row.getBoundingClientRect().top;
  function keepPlace() {
    stick = false;
    kept = { id: octavo.state.view.notes[0].id, top: top(messages()[0]) };
  }
  function settle() {
    const box = pane();
    if (!box) return;
    const rows = messages();
    const { notes } = octavo.state.view ?? { notes: [] };
    const aimed = aim && notes.length === rows.length ? rows[notes.findIndex(({ id }) => id === aim)] : null;
    if (aimed) show(aimed);
    else if (kept && notes.length === rows.length && notes[0].id !== kept.id) {
      const row = rows[notes.findIndex(({ id }) => id === kept.id)];
      if (row) box.scrollTop += top(row) - kept.top;
      kept = null;
    } else if (stick && gap(box) > 1) box.scrollTop = box.scrollHeight;
    note(box);
  }
  function note(box) {
    last = box.scrollTop;
    document.documentElement.classList.toggle("is-away", gap(box) > FAR);
  }
  const onWheel = ({ deltaY }) => { if (deltaY < 0) stick = false; };
  const onScroll = ({ target }) => {
    const box = pane();
    if (target !== box) return;
    if (gap(box) < NEAR) stick = true;
    else if (box.scrollTop < last - 2) stick = false;
    note(box);
  };
  addEventListener("wheel", onWheel, { passive: true });
  addEventListener("scroll", onScroll, true);

  // what Gradio's Markdown leaves out: a code's language, its button's name, and that keys can scroll it
  function furnish(row) {
    for (const wrap of row.querySelectorAll(".code_wrap:not([data-language])")) {
      wrap.dataset.language = wrap.querySelector("code")?.className.match(/language-([\w+#-]+)/)?.[1] ?? "";
      wrap.querySelector("button")?.setAttribute("aria-label", w.copy_code);
    }
    if (row.classList.contains("is-growing")) return;
    for (const each of row.querySelectorAll(":is(pre, table):not([data-wide])")) {
      each.dataset.wide = each.scrollWidth > each.clientWidth;
      if (each.dataset.wide === "true") each.tabIndex = 0;
    }
  }
  function label(row, { role, streaming }) {
    const name = role === "user" ? w.you : w.answer; // Gradio's own repeats the whole message
    const said = row.querySelector("[data-testid]");
    if (said) adjust(said, { role: "group", ariaLabel: name });
    row.classList.toggle("is-growing", streaming);
  }
  // what stands below it, anew if it says something else now
  function drawFoot(row, about, isLast, busy) {
    const reading = octavo.speech?.reading() === about.id;
    const { chat, status } = octavo.state;
    const sign = JSON.stringify([chat, about, isLast, busy, reading, status?.name]);
    const old = row.querySelector(":scope > .foot");
    if (old && row.octavoSign === sign) return;
    const held = old?.contains(document.activeElement) && document.activeElement.dataset.tool;
    old?.remove();
    row.octavoSign = sign;
    row.append(octavo.foot(row, about, isLast, busy));
    focusFoot(row, about.id, held);
  }
  // put the cursor where somebody asked for it, or where it was: on the tool called `held`
  function focusFoot(row, id, held) {
    const isAsked = octavo.focusOn?.message === id;
    const wanted = isAsked ? octavo.focusOn.name : held;
    if (isAsked) octavo.focusOn = null;
    if (!wanted) return;
    const find = (which) => row.querySelector(`.foot [data-tool${which}]:enabled`);
    const next = find(`="${wanted}"`) ?? find("");
    if (next) next.focus();
    else octavo.toDraft();
  }
  // what has the cursor inside an answer: as it grows, Gradio draws its last paragraph anew
  let held = null;
  const within = (row) => [...row.querySelectorAll(".prose :is(a[href], button, [tabindex])")];
  addEventListener("focusin", ({ target }) => {
    const row = target.closest("#now .message-row");
    const place = row ? within(row).indexOf(target) : -1;
    held = place < 0 ? null : { row, target, place };
  });
  addEventListener("pointerdown", () => { held = null; });
  function giveBack(row) {
    if (held?.row === row && !held.target.isConnected) within(row)[held.place]?.focus({ preventScroll: true });
  }
  // Of a long chat only those rows are gone through that something has happened to: while an answer grows that
  // is one of hundreds.
  const touched = new WeakSet(); // rows that Gradio has drawn in since
  let drawn = ""; // what all rows depend on, as they were gone through
  function decorate({ notes, busy }) {
    const rows = messages();
    if (rows.length !== notes.length) return; // the other half of this update is still to come
    const compared = notes.filter(({ beside }) => beside).length;
    turn()?.classList.toggle("is-comparing", compared > 0);
    if (turn()) adjust(turn().dataset, { beside: String(compared) });
    const { chat, status } = octavo.state;
    const all = [chat, busy, status?.name, rows.length, octavo.rewrite.open(), octavo.speech?.reading()];
    const sign = JSON.stringify(all);
    rows.forEach((row, place) => {
      const about = notes[place];
      if (sign === drawn && row.octavoAbout === about && !touched.has(row)) return;
      row.octavoAbout = about;
      touched.delete(row);
      row.classList.toggle("beside", about.beside);
      label(row, about);
      octavo.drawThoughts(row, about);
      drawFoot(row, about, place === rows.length - 1, busy);
      octavo.rewrite.attach(row, about);
      furnish(row);
      giveBack(row);
    });
    drawn = sign;
  }
  const onEarlier = () => { keepPlace(); octavo.showEarlier(); };
  const earlier = el("button", { id: "earlier", type: "button", onclick: onEarlier });
  function arrange() {
    const { view } = octavo.state;
    const box = pane();
    if (!box || !view) return;
    if (!earlier.isConnected) box.prepend(earlier);
    adjust(earlier, { hidden: !view.earlier, textContent: fill(w.earlier, { count: number(view.earlier) }) });
    adjust(box, { role: "log", ariaLive: "polite", ariaLabel: w.conversation }); // one for both Chatbots
    watchSizes(box);
    decorate(view);
    octavo.drawLine(view, box);
    settle();
  }
  let queued = false;
  function soon() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; arrange(); });
  }
  octavo.use(soon);
  const sizes = new ResizeObserver(soon);
  let lists = null;
  function watchSizes(box) {
    const found = [...box.getElementsByClassName("message-wrap")];
    if (found.length === lists?.length && found.every((list, place) => list === lists[place])) return;
    sizes.disconnect();
    lists = found;
    for (const list of lists) sizes.observe(list);
    for (const part of box.querySelectorAll("[role=log]")) part.role = part.ariaLive = part.ariaLabel = null;
  }
  const changes = new MutationObserver((records) => {
    for (const { target } of records) {
      const row = (target.closest ? target : target.parentElement)?.closest("#talk .message-row");
      if (row) touched.add(row);
    }
    soon();
  });
  const everything = { subtree: true, childList: true, characterData: true };
  addEventListener("DOMContentLoaded", () => changes.observe(document.body, everything));
})();
