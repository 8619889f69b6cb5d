// Shortcuts, and the narrow screen's drawer. Runs early; finds what it acts on by id when a key is pressed.
(() => {
  const page = document.documentElement.classList;
  const narrow = matchMedia("(max-width: 767px)");
  // the list of chats is a column on wide screens, open unless closed, and on narrow ones a drawer, closed
  // unless opened
  octavo.toggleDrawer = () => page.toggle(narrow.matches ? "drawer-open" : "rail-closed");
  octavo.closeDrawer = () => page.remove("drawer-open");

  const find = (id) => document.getElementById(id);
  function leave() {
    if (page.contains("drawer-open")) octavo.closeDrawer();
    else if (octavo.state.page === "chat") find("stop")?.click(); // elsewhere nobody sees what it would end
  }
  function write() {
    octavo.closeDrawer();
    octavo.turnPage("chat");
    find("draft")?.focus();
  }
  function copyLast() {
    const copies = document.querySelectorAll("#talk .bot-row [data-tool=copy]");
    copies[copies.length - 1]?.click();
  }
  // All of them, as the help sheet lists them. Those without `run` are the writing place's own; `alone`: not
  // while one types.
  octavo.shortcuts = [
    { keys: ["Enter"], word: "key_send" },
    { keys: ["Shift", "Enter"], word: "key_line" },
    { keys: ["Esc"], word: "key_stop", run: leave },
    { keys: ["ArrowUp"], word: "key_edit" },
    { keys: ["/"], word: "key_write", alone: true, run: write },
    { keys: ["Ctrl", "Shift", "O"], word: "key_new", run: () => find("new-chat")?.click() },
    { keys: ["Ctrl", "K"], word: "key_search", run: () => octavo.search() },
    { keys: ["Ctrl", "B"], word: "key_list", run: () => octavo.toggleDrawer() },
    { keys: ["Ctrl", "Shift", "C"], word: "key_copy", run: copyLast },
    { keys: ["Ctrl", "U"], word: "key_attach", run: () => { write(); find("attach")?.click(); } },
    { keys: ["Ctrl", "/"], word: "key_help", run: () => octavo.help() },
    { keys: ["?"], word: "key_help", alone: true, run: () => octavo.help() },
  ];
  const NAMES = { escape: "esc" };
  const isPressed = (event, keys) => {
    const pressed = event.key.toLowerCase();
    const last = keys[keys.length - 1];
    // a sign like ? may need Shift, or not, as the keyboard has it
    const shift = keys.includes("Shift") === event.shiftKey || (last.length === 1 && !/[a-z]/i.test(last));
    return (
      last.toLowerCase() === (NAMES[pressed] ?? pressed) && shift && !event.altKey
      && keys.includes("Ctrl") === (event.ctrlKey || event.metaKey)
    );
  };
  addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
    for (const { keys, run, alone } of octavo.shortcuts) {
      if (!run || (alone && typing) || !isPressed(event, keys)) continue;
      event.preventDefault();
      run();
    }
  });
})();
