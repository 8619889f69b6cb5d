// Shortcuts, and the narrow screen's drawer. Runs early; finds what it acts on by id when a key is pressed.
(() => {
  const page = document.documentElement.classList;
  const narrow = matchMedia("(max-width: 767px)");
  // the list of chats is a column on wide screens, open unless closed, and on narrow ones a drawer, closed
  // unless opened
  octavo.toggleDrawer = () => page.toggle(narrow.matches ? "drawer-open" : "rail-closed");
  octavo.openList = () => { page.remove("rail-closed"); page.toggle("drawer-open", narrow.matches); };
  octavo.closeDrawer = () => page.remove("drawer-open");

  const find = (id) => document.getElementById(id);
  const leave = () => (page.contains("drawer-open") ? octavo.closeDrawer() : find("stop")?.click());
  const SHORTCUTS = [ // [key, Ctrl or Cmd, Shift, what it does]
    ["o", true, true, () => find("new-chat")?.click()],
    ["k", true, false, () => { octavo.openList(); find("search")?.focus(); }],
    ["b", true, false, () => octavo.toggleDrawer()],
    ["/", false, false, () => { octavo.closeDrawer(); find("draft")?.focus(); }],
    ["escape", false, false, () => leave()],
  ];
  addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const pressed = event.key.toLowerCase();
    const control = event.ctrlKey || event.metaKey;
    const typing = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName);
    for (const [key, withControl, withShift, run] of SHORTCUTS) {
      if (key !== pressed || withControl !== control || withShift !== event.shiftKey) continue;
      if (key === "/" && typing) continue;
      event.preventDefault();
      run();
    }
  });
})();
