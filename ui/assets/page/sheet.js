// Sheets that are laid over the page for a moment: all shortcuts, and how the context of a chat is used. Runs
// early.
(() => {
  const { el, tool, fill, number, words: w } = octavo;
  octavo.sheet = (name, title, ...content) => {
    const before = document.getElementById(name);
    if (before) return before.close();
    const dialog = el("dialog", { id: name, class: "ask sheet", "aria-labelledby": `${name}-title` });
    const away = tool("close", w.dismiss, () => dialog.close());
    dialog.append(el("header", {}, el("h2", { id: `${name}-title` }, title), away), ...content);
    dialog.onclose = () => dialog.remove();
    dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); }; // beside it
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
  };

  const isMac = /mac|iphone|ipad/i.test(navigator.platform);
  const NAMES = { ArrowUp: "↑", ...(isMac ? { Ctrl: "⌘", Shift: "⇧" } : {}) };
  const keys = (combination) =>
    el("span", {}, ...combination.map((key) => el("kbd", {}, NAMES[key] ?? key)));
  octavo.help = () => {
    const rows = new Map(); // what it does -> the keys, one way or several
    for (const { keys: pressed, word } of octavo.shortcuts)
      rows.set(word, [...(rows.get(word) ?? []), keys(pressed)]);
    const list = [...rows].flatMap(([word, ways]) => [el("dt", {}, ...ways), el("dd", {}, w[word])]);
    octavo.sheet("help", w.shortcuts, el("dl", {}, ...list));
  };

  octavo.contextSheet = async () => {
    const { chat, view } = octavo.state;
    if (!view?.limit) return;
    const about = chat ? await octavo.quietly("context", { chat }) : {};
    const { older = 0, summed_up: summed = 0, summary = "" } = about;
    const { used, limit } = view;
    const numbers = { used: number(used), limit: number(limit), left: number(Math.max(0, limit - used)) };
    const content = [el("p", {}, fill(w.context_text, numbers))];
    const press = (label, onclick) => el("button", { type: "button", onclick }, label);
    const choices = el("div", { class: "choices" });
    const then = (act) => async () => { dialog.close(); await act(); };
    if (summed) {
      content.push(el("h3", {}, fill(w.context_summed, { count: number(summed) })));
      content.push(el("blockquote", {}, summary));
      choices.append(press(w.undo_summary, then(() => octavo.act("uncompact", { chat }))));
    }
    content.push(el("p", {}, older ? fill(w.context_older, { count: number(older) }) : w.context_new));
    if (older) choices.append(press(w.sum_up, then(() => octavo.sumUp(chat))));
    const dialog = octavo.sheet("context", w.context_title, ...content, choices);
  };
})();
