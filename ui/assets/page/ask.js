// Questions in front of the page, and small menus beside a button. Runs early.
(() => {
  const { el, icon, words: w } = octavo;
  const press = (label, onclick, more) => el("button", { type: "button", onclick, ...more }, label);

  // `body`: nodes; `run` is called when the person says yes, and gives false to leave the question open
  octavo.question = ({ title, body, yes, danger, run }) => {
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title" });
    const sure = async () => { if ((await run()) !== false) dialog.close(); };
    const no = press(w.cancel, () => dialog.close(), { autofocus: danger });
    const go = press(yes, sure, { class: danger ? "danger" : "sure" });
    const choices = el("div", { class: "choices" }, no, go);
    dialog.append(el("h2", { id: "ask-title" }, title), ...body, choices);
    dialog.onclose = () => dialog.remove();
    dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); }; // beside it
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
  };

  let place; // of the button that was pressed last: the row of an open menu may be drawn anew, or be hidden

  // `items`: [icon, label, what it does, whether it is the chosen one of several]
  octavo.menu = (button, items) => {
    const item = ([name, label, run, chosen = null]) => {
      const onclick = () => { close(); run(); };
      const kind = chosen === null ? { role: "menuitem" } : { role: "menuitemradio", "aria-checked": String(chosen) };
      const props = { type: "button", ...kind, "data-item": name, onclick };
      return el("button", props, icon(name), el("span", {}, label));
    };
    const menu = el("div", { class: "menu", role: "menu", popover: "auto" }, ...items.map(item));
    const close = () => { if (menu.matches(":popover-open")) menu.hidePopover(); button.focus(); };
    const steps = { ArrowDown: 1, ArrowUp: -1, Home: 0, End: 0 };
    menu.onkeydown = (event) => {
      const nodes = [...menu.children], at = nodes.indexOf(document.activeElement);
      if (event.key === "Escape" || event.key === "Tab") close();
      else if (!(event.key in steps)) return;
      else if (event.key === "Home") nodes[0].focus();
      else if (event.key === "End") nodes.at(-1).focus();
      else nodes[(at + steps[event.key] + nodes.length) % nodes.length].focus();
      event.preventDefault();
    };
    menu.ontoggle = ({ newState }) => {
      button.setAttribute("aria-expanded", newState === "open");
      if (newState === "closed") menu.remove();
    };
    document.body.append(menu);
    menu.showPopover();
    const box = button.getBoundingClientRect();
    if (box.width) place = box;
    const { left, right, top, bottom } = place;
    const fitsBelow = bottom + menu.offsetHeight + 8 < innerHeight;
    menu.style.top = `${fitsBelow ? bottom + 4 : Math.max(8, top - menu.offsetHeight - 4)}px`;
    const fitsRight = left + menu.offsetWidth < innerWidth - 8;
    menu.style.left = `${fitsRight ? left : Math.max(8, right - menu.offsetWidth)}px`;
    (menu.querySelector('[aria-checked="true"]') ?? menu.firstChild).focus();
  };
})();
