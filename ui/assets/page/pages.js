// Which of the pages is open: its name stands in the address beside the chat's (as `leaf`: `page` and `view`
// mean something to Gradio), and on <html>, where the styles look for it. Also the line to a part's functions
// of the server. Runs early.
(() => {
  const PAGES = ["chat", "models", "memory", "settings"];
  const open = (page) => (PAGES.includes(page) ? page : "chat");
  const isSeen = (page) => octavo.state.page === page && !document.hidden;

  // the address says what is open, so a reload finds it again; `push`: and "back" leads to what was
  octavo.remember = (change, push) => {
    const { chat, page } = { ...octavo.state, ...change };
    const address = new URL(location);
    address.search = "";
    if (chat) address.searchParams.set("chat", chat);
    if (page !== "chat") address.searchParams.set("leaf", page);
    history[push ? "pushState" : "replaceState"]({ chat, page }, "", address);
    document.documentElement.dataset.page = page;
    octavo.set(change);
  };
  octavo.turnPage = (page, { push = true } = {}) => {
    if (open(page) !== octavo.state.page) octavo.remember({ page: open(page) }, push);
  };

  // call `look` when the page is opened and every `ms` after an answer, while it is open and the tab is seen
  octavo.visit = (page, look, ms) => {
    let timer = 0, was = false;
    const go = async () => {
      clearTimeout(timer);
      if (!isSeen(page)) return;
      await look();
      clearTimeout(timer);
      if (isSeen(page)) timer = setTimeout(go, ms);
    };
    const turn = () => {
      const is = isSeen(page);
      if (is && !was) go();
      was = is;
    };
    octavo.use(turn);
    document.addEventListener("visibilitychange", turn);
    return go; // look now
  };

  // The line above a page: its name, and on narrow screens the way to the list.
  octavo.pageHead = (text) => {
    const { el, tool, words: w } = octavo;
    return el("header", { class: "leaf-head" }, tool("list", w.list, octavo.toggleDrawer), el("h1", {}, text));
  };
  // Bytes for people, as engine.in_words has them.
  octavo.bytes = (count) => {
    const units = ["kB", "MB", "GB"];
    let value = count / 1000, unit = 0;
    while (value >= 1000 && unit < 2) { value /= 1000; unit += 1; }
    return `${octavo.number(value, unit === 2 ? 2 : 1)} ${units[unit]}`;
  };

  // Call a function of the server; a failure is an answer too (Gradio's client hides it, and gives undefined).
  // Once the person has ended Octavo, `goodbye` says so instead: nothing is wrong then.
  octavo.ask = async (server, name, data) => {
    const silence = () => ({ error: octavo.state.goodbye ?? octavo.words.unreachable });
    try {
      return (await server[name](data)) ?? silence();
    } catch {
      return silence();
    }
  };
  octavo.state.page = open(new URLSearchParams(location.search).get("leaf"));
  document.documentElement.dataset.page = octavo.state.page;
})();
