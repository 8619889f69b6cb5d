// Ctrl+K: every chat by its title, every message by its words. One writes, goes up and down with the arrows,
// and Enter opens the chat at that message. Runs early.
(() => {
  const { el, icon, fill, words: w } = octavo;
  const WAIT_MS = 120; // after the last key
  let dialog = null;

  const marked = (pieces) => pieces.map(([text, isHit]) => (isHit ? el("mark", {}, text) : text));
  const day = (seconds) =>
    new Date(seconds * 1000).toLocaleDateString(document.documentElement.lang, { dateStyle: "medium" });
  function option(hit, number) {
    const title = el("span", { class: "title" }, hit.title || w.untitled);
    const about = el("span", { class: "about" }, hit.archived ? `${w.archived}, ` : "", day(hit.updated));
    const body = [el("div", {}, icon(hit.message ? "quote" : "page"), title, about)];
    if (hit.message) body.push(el("p", {}, `${hit.role === "user" ? w.you : w.answer}: `, ...marked(hit.pieces)));
    const props = { role: "option", id: `hit-${number}`, "aria-selected": false, onclick: () => open(hit) };
    const node = el("li", props, ...body);
    node.hit = hit;
    return node;
  }
  async function open({ chat, message }) {
    shut();
    octavo.closeDrawer();
    const { last } = message ? ((await octavo.act("reach", { chat, message })) ?? {}) : {};
    octavo.show(chat, { last });
    if (last) octavo.toMessage(message);
  }

  function shut() {
    dialog?.remove();
    dialog = null;
  }

  octavo.search = () => {
    if (dialog) return shut();
    const before = document.activeElement;
    const hits = el("ul", { id: "hits", role: "listbox", "aria-label": w.found });
    const said = el("p", { class: "none", role: "status" });
    const about = { type: "search", placeholder: w.search_all, "aria-label": w.search_all, autocomplete: "off" };
    const combo = { role: "combobox", "aria-controls": "hits", "aria-expanded": "true", maxlength: 1000 };
    const box = el("input", { id: "search-box", ...about, ...combo });
    let timer = 0, asked = 0, shown = "", moved = null;

    const away = () => {
      if (dialog !== mine) return; // it comes a second time, when another is open already
      shut();
      before?.focus();
    };
    const choose = (node) => {
      for (const each of hits.children) each.setAttribute("aria-selected", each === node);
      box.setAttribute("aria-activedescendant", node?.id ?? "");
      node?.scrollIntoView({ block: "nearest" });
    };
    const chosen = () => hits.querySelector("[aria-selected=true]");
    const show = (found, text) => {
      shown = text;
      hits.replaceChildren(...found.map(option));
      said.textContent = text && !found.length ? fill(w.nothing_found, { text }) : "";
      // what was chosen with the arrows since the last key stays chosen, if it is still there
      const kept = moved && [...hits.children].find(({ hit }) => hit.chat === moved.chat && hit.message == moved.message);
      choose(kept || hits.firstElementChild);
    };
    const recent = () => {
      const chats = (octavo.state.chats ?? []).filter((each) => !each.private).slice(0, 8);
      show(chats.map(({ id, title, updated }) => ({ chat: id, title, updated })), "");
    };
    async function look() {
      const text = box.value.trim();
      const mine = ++asked;
      if (!text) return recent();
      const answer = await octavo.quietly("search", { text });
      if (mine === asked && dialog) show(answer.hits ?? [], text);
    }
    async function enter() {
      clearTimeout(timer);
      if (shown !== box.value.trim()) await look(); // what was typed last is not found yet
      if (chosen()) open(chosen().hit);
    }
    box.oninput = () => { moved = null; clearTimeout(timer); timer = setTimeout(look, WAIT_MS); };
    box.onkeydown = (event) => {
      if (event.isComposing || event.keyCode === 229) return;
      const { key } = event;
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[key];
      if (key === "Enter") enter();
      else if (step) {
        choose(chosen()?.[step] ?? chosen());
        moved = chosen()?.hit;
      }
      else if (key === "Escape" || (key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))) away();
      else return;
      event.preventDefault();
    };
    const mine = el("dialog", { id: "search-all", class: "palette", "aria-label": w.search_all });
    dialog = mine;
    dialog.append(el("label", {}, icon("find"), box, el("kbd", {}, "Esc")), said, hits);
    dialog.onclose = away;
    dialog.onclick = (event) => { if (event.target === dialog) away(); }; // beside it
    document.body.append(dialog);
    dialog.showModal();
    recent();
  };
  Object.assign(octavo.icons, { // on a square of 24
    quote: "M4 5h16v11H10l-4 4v-4H4z", page: "M6 3h9l4 4v14H6zM15 3v4h4",
  });
})();
