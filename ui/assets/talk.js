// The conversation's manners, around Gradio's Chatbot: it stays at the newest line only while the reader is
// there, and under each message stands what belongs to it (copy, try again, figures, errors). Runs early;
// the Chatbot is found when it appears.
(() => {
  const NEAR = 48, FAR = 200; // pixels from the end
  const { el, tool, icon, fill, number, words: w } = octavo;
  const ENDS = { cancelled: w.stopped, interrupted: w.interrupted, length: w.cut }; // ends that need a word
  const pane = () => document.querySelector("#talk .bubble-wrap");
  const messages = () => document.querySelectorAll("#talk .message-row");
  const gap = (box) => box.scrollHeight - box.scrollTop - box.clientHeight;
  let stick = true; // the reader is at the end
  let last = 0; // where the pane was scrolled to
  let kept = null; // the message that stays where it is when older ones come in above it

  octavo.toEnd = () => { stick = true; kept = null; settle(); };
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
    if (kept && notes.length === rows.length && notes[0].id !== kept.id) {
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

  function figures({ stats, finish }) {
    const parts = ENDS[finish] ? [ENDS[finish]] : [];
    if (!stats?.tokens) return parts.join(); // stopped before its first word
    if (stats.tokens_per_s) parts.push(fill(w.speed, { value: number(stats.tokens_per_s, 1) }));
    parts.push(fill(w.first, { value: number(stats.first_token_s, 2) }));
    parts.push(fill(w.cached, { cached: number(stats.cached_tokens), prompt: number(stats.prompt_tokens) }));
    return parts.join(" · ");
  }
  async function copy(id, button) {
    const answer = await octavo.act("text", { chat: octavo.state.chat, message: id });
    if (!answer) return;
    await navigator.clipboard.writeText(answer.text);
    button.replaceChildren(icon("tick"));
    setTimeout(() => button.replaceChildren(icon("copy")), 1200);
  }
  async function retry() {
    const { chat } = octavo.state;
    if (await octavo.act("retry", { chat })) octavo.show(chat);
  }
  function foot(about, isLast) {
    const line = el("div", { class: "foot" });
    const oops = () => el("p", { class: "oops", role: "alert" }, icon("alert"), el("span", {}, about.error));
    if (about.error) line.append(oops());
    if (about.streaming) return line;
    const onCopy = ({ currentTarget }) => copy(about.id, currentTarget);
    if (about.text) line.append(tool("copy", w.copy, onCopy, { "data-tool": "copy" }));
    const canRetry = isLast && about.role === "assistant";
    if (canRetry) line.append(tool("again", w.retry, retry, { "data-tool": "again" }));
    line.append(el("span", { class: "figures" }, figures(about)));
    return line;
  }
  function decorate({ chat, notes }) {
    const rows = messages();
    if (rows.length !== notes.length) return; // the other half of this update is still to come
    rows.forEach((row, place) => {
      const about = notes[place];
      const isLast = place === rows.length - 1;
      const sign = JSON.stringify([chat, about, isLast]);
      const old = row.querySelector(":scope > .foot");
      if (old && row.octavoSign === sign) return;
      old?.remove();
      row.octavoSign = sign;
      row.append(foot(about, isLast));
      const who = about.role === "user" ? w.you : w.answer; // Gradio's own label repeats the whole message
      row.querySelector("[data-testid]")?.setAttribute("aria-label", who);
    });
  }
  const onEarlier = () => { keepPlace(); octavo.showEarlier(); };
  const earlier = el("button", { id: "earlier", type: "button", onclick: onEarlier });
  function arrange() {
    const { view } = octavo.state;
    const box = pane();
    if (!box || !view) return;
    if (!earlier.isConnected) box.prepend(earlier);
    earlier.hidden = !view.earlier;
    const label = fill(w.earlier, { count: number(view.earlier) });
    if (earlier.textContent !== label) earlier.textContent = label; // a change calls this function again
    box.setAttribute("aria-label", w.conversation);
    decorate(view);
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
  let list = null;
  const changes = new MutationObserver(() => {
    const found = document.querySelector("#talk .message-wrap");
    if (found !== list) {
      sizes.disconnect();
      list = found;
      if (list) sizes.observe(list);
    }
    soon();
  });
  const everything = { subtree: true, childList: true, characterData: true };
  addEventListener("DOMContentLoaded", () => changes.observe(document.body, everything));
})();
