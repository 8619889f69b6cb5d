// A message in other words: a box in its place. What the person said is asked anew, an answer stands as it is
// written; either way the old one stays as a version. Runs early.
(() => {
  const { el, words: w } = octavo;
  let open = null; // { id, role, box }: one at a time
  function end() {
    const row = open?.box.closest(".message-row");
    open?.box.remove();
    open = null;
    row?.classList.remove("is-rewriting");
    octavo.set({});
    row?.querySelector(".foot :is([data-tool=pen], [data-tool=more])")?.focus({ preventScroll: true });
  }

  async function start({ id, role }) {
    const { chat } = octavo.state;
    const answer = await octavo.read("text", { message: id });
    if (!answer || octavo.state.chat !== chat) return;
    end();
    open = { id, role, chat, box: make(id, role, answer.text) };
    octavo.set({});
  }
  function make(id, role, text) {
    const label = role === "user" ? w.edit_said : w.edit_answer;
    const draft = el("textarea", { "aria-label": label, rows: 1, oninput: () => fit(draft) });
    const save = async () => {
      if (!draft.value.trim()) return;
      if (draft.value === text && role !== "user") return end();
      const { chat } = octavo.state;
      if (!(await octavo.act("edit", { chat, message: id, role, text: draft.value }))) return;
      end();
      octavo.toEnd();
      octavo.show(chat);
    };
    draft.value = text;
    draft.onkeydown = (event) => {
      const composing = event.isComposing || event.keyCode === 229;
      if (event.key === "Escape" && !composing) end();
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
      else return;
      event.preventDefault();
    };
    const button = (word, onclick, more) => el("button", { type: "button", onclick, ...more }, word);
    const [sure, keys] = role === "user" ? [w.ask_again, w.ask_again_keys] : [w.keep, w.keep_keys];
    return el("div", { class: "rewrite" }, draft, el("div", { class: "choices" },
      el("small", {}, keys), button(w.cancel, end), button(sure, save, { class: "sure" })));
  }
  function fit(draft) {
    draft.style.height = "auto";
    draft.style.height = `${draft.scrollHeight + 2}px`;
  }
  // called for every row that is drawn
  function attach(row, about) {
    const mine = open?.id === about.id && open.chat === octavo.state.chat;
    row.classList.toggle("is-rewriting", mine);
    if (!mine || row.contains(open.box)) return;
    row.append(open.box);
    const draft = open.box.querySelector("textarea");
    fit(draft);
    draft.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }
  octavo.rewrite = { start, attach, open: () => open?.id };
  octavo.editLast = () => {
    const { view, chat } = octavo.state;
    const last = view?.chat === chat && !view.busy && view.notes.findLast(({ role }) => role === "user");
    if (last) start(last);
    return Boolean(last);
  };
})();
