// Messages that wait below the conversation until the answer has ended. Runs early.
(() => {
  const { el, tool, words: w } = octavo;
  const list = el("section", { id: "line", "aria-label": w.line, hidden: true });
  let editing = null, drawn = "";

  const change = async (id, text) => {
    const { chat } = octavo.state;
    if (await octavo.act("change_waiting", { chat, waiting: id, text })) octavo.show(chat);
  };
  const sendNow = async (id) => {
    const { chat } = octavo.state;
    octavo.toEnd();
    if (await octavo.act("send_now", { chat, waiting: id })) octavo.show(chat);
  };
  function edit(id) {
    editing = id;
    octavo.drawLine(octavo.state.view);
    list.querySelector("textarea")?.focus();
  }
  function box({ id, text }) {
    const end = (save) => {
      if (editing !== id) return;
      editing = null;
      drawn = "";
      const now = draft.value;
      if (save && now.trim() && now !== text) change(id, now);
      octavo.drawLine(octavo.state.view);
    };
    const onkeydown = (event) => {
      const composing = event.isComposing || event.keyCode === 229;
      if (composing || (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey))) return;
      event.preventDefault();
      end(event.key === "Enter");
      list.querySelector(`[data-waiting="${id}"] [data-tool=pen]`)?.focus();
    };
    const draft = el("textarea", { "aria-label": w.edit_said, rows: 2, onkeydown, onblur: () => end(true) });
    draft.value = text;
    return draft;
  }
  function row(waiting) {
    const { id, text: said, files, lost } = waiting;
    if (editing === id) return el("div", { class: "waits" }, box(waiting), el("small", {}, w.line_keys));
    const text = el("p", {}, said);
    if (files.length) text.append(octavo.fileList(files));
    if (lost) text.append(el("b", { class: "lost", role: "alert" }, w.line_lost));
    return el("div", { class: "waits", "data-waiting": id },
      text,
      tool("up", w.send_now, () => sendNow(id), { "data-tool": "up" }),
      tool("pen", w.edit_said, () => edit(id), { "data-tool": "pen" }),
      tool("bin", w.unsend, () => change(id, ""), { "data-tool": "bin" }));
  }
  // `box`: the scrolled pane, in which it stands last
  octavo.drawLine = (view, pane) => {
    if (pane && list.parentNode !== pane) pane.append(list);
    const line = view?.chat === octavo.state.chat ? view.line : [];
    const sign = JSON.stringify([view?.chat, line, editing, view?.busy]);
    if (sign === drawn) return;
    if (editing !== null && list.querySelector("textarea") && line.some(({ id }) => id === editing)) return;
    drawn = sign;
    list.hidden = !line.length;
    octavo.redraw(list, el("h2", {}, view?.busy ? w.line : w.line_held), ...line.map(row));
  };
})();
