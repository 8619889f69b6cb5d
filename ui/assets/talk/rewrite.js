// A message in other words: a box in its place. What the person said is asked anew, an answer stands as it is
// written; either way the old one stays as a version. What is written is kept by the tab, so that a reload
// finds it, that of a private chat by the page's memory alone; if the chat is deleted meanwhile, it moves
// into the box for the next message. Runs early.
(() => {
  const { el, words: w } = octavo;
  const KEPT = "octavo.rewrite", PLACE = "sessionStorage";
  let open = null; // { chat, id, role, was, text }: one at a time
  let box = null; // once the row of its message is drawn
  let saving = false; // nothing changes meanwhile: what is written is there if that fails
  try { open = JSON.parse(octavo.kept(KEPT, PLACE)); } catch { /* it is none of ours */ }

  function keep(change) {
    open = change && { ...open, ...change };
    const mayStay = open && !octavo.isPrivate(open.chat);
    if (mayStay && octavo.keep(KEPT, JSON.stringify(open), PLACE)) return;
    octavo.keep(KEPT, null, PLACE); // what is there is older
    if (mayStay) octavo.warnUnkept();
  }
  function end() {
    const row = box?.closest(".message-row");
    box?.remove();
    box = null;
    keep(null);
    row?.classList.remove("is-rewriting");
    octavo.set({});
    row?.querySelector(".foot :is([data-tool=pen], [data-tool=more])")?.focus({ preventScroll: true });
  }

  async function start({ id, role }) {
    const { chat } = octavo.state;
    const answer = await octavo.read("text", { message: id });
    if (!answer || saving || octavo.state.chat !== chat) return;
    end();
    keep({ chat, id, role, was: answer.text, text: answer.text });
    octavo.set({});
  }
  const cancel = () => { if (!saving) end(); };
  async function save() {
    const { chat, id, role, was, text } = open;
    if (saving || !text.trim()) return;
    if (text === was && role !== "user") return end();
    const draft = box.querySelector("textarea");
    draft.readOnly = saving = true;
    const isSaved = await octavo.act("edit", { chat, message: id, role, text });
    draft.readOnly = saving = false;
    if (!isSaved) return;
    end();
    if (octavo.state.chat !== chat) return;
    octavo.toEnd();
    octavo.show(chat);
  }
  function make({ role, text }) {
    const isMine = role === "user";
    const draft = el("textarea", { "aria-label": isMine ? w.edit_said : w.edit_answer, rows: 1 });
    draft.value = text;
    draft.oninput = () => { keep({ text: draft.value }); fit(draft); };
    draft.onkeydown = (event) => {
      const composing = event.isComposing || event.keyCode === 229;
      if (event.key === "Escape" && !composing) cancel();
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
      else return;
      event.preventDefault();
    };
    const button = (word, onclick, more) => el("button", { type: "button", onclick, ...more }, word);
    const [sure, keys] = isMine ? [w.ask_again, w.ask_again_keys] : [w.keep, w.keep_keys];
    return el("div", { class: "rewrite" }, draft, el("div", { class: "choices" },
      el("small", {}, keys), button(w.cancel, cancel), button(sure, save, { class: "sure" })));
  }
  function fit(draft) {
    draft.style.height = "auto";
    draft.style.height = `${draft.scrollHeight + 2}px`;
  }
  // called for every row that is drawn
  function attach(row, about) {
    const mine = open?.id === about.id && open.chat === octavo.state.chat;
    row.classList.toggle("is-rewriting", mine);
    if (!mine || row.contains(box)) return;
    box ??= make(open);
    row.append(box);
    const draft = box.querySelector("textarea");
    fit(draft);
    draft.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }
  const forget = (chat) => { if (open?.chat === chat) end(); };
  // the chat on screen is not there any more; what was written in a private one goes with it
  function rescue(chat) {
    const { was, text } = open?.chat === chat ? open : {};
    forget(chat);
    if (text === was || octavo.isPrivate(chat)) return;
    octavo.writeMore(text);
    octavo.toast(w.rewrite_rescued);
  }
  octavo.rewrite = { start, attach, rescue, forget, open: () => open?.id, chat: () => open?.chat };
  octavo.editLast = () => {
    const { view, chat } = octavo.state;
    const last = view?.chat === chat && !view.busy && view.notes.findLast(({ role }) => role === "user");
    if (last) start(last);
    return Boolean(last);
  };
})();
