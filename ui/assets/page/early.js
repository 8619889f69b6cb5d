// Runs right after <head>, before Gradio's own scripts: language, theme without a flash, and `octavo`, what
// the page's parts share: the words, a small store (set, use), what the browser keeps, the makers of elements
// and icons. It knows no server.
window.octavo = (() => {
  // a browser may deny its storage, and then even a look at it fails; or its room is full
  const storage = (run, otherwise, place) => {
    try { return run(window[place]); } catch { return otherwise; }
  };
  const kept = (key, place = "localStorage") => storage((store) => store.getItem(key), null, place);
  const keptKeys = (place = "localStorage") => storage(Object.keys, [], place);
  // null: no more; whether it is kept
  const keep = (key, value, place = "localStorage") => storage((store) => {
    if (value === null) store.removeItem(key);
    else store.setItem(key, value);
    return true;
  }, false, place);

  // the chosen language counts for Gradio's own words as well, which ask the browser
  const chosenLanguage = kept("octavo.language") || "";
  const spoken = chosenLanguage || navigator.language;
  const language = /^zh/i.test(spoken) ? "zh" : "en";
  const tag = language === "zh" ? "zh-CN" : "en";
  for (const [name, value] of Object.entries({ language: tag, languages: [tag] }))
    if (chosenLanguage) Object.defineProperty(navigator, name, { get: () => value, configurable: true });
  const setLanguage = (name) => {
    keep("octavo.language", name);
    location.reload();
  };
  const words = window.octavoWords[language];
  document.documentElement.lang = tag;

  // `chat` is the one on screen, "" a blank page; `view` is what the server last said of a chat
  const chat = new URLSearchParams(location.search).get("chat") ?? "";
  const state = { chat, page: "chat", chats: null, shelf: null, status: null, view: null, notice: null, online: true };
  // a chat that is written to no disk says so by its id
  const isPrivate = (chat) => chat.startsWith("private-");
  const users = new Set();
  const set = (change) => { Object.assign(state, change); for (const user of users) user(state); };
  const use = (draw) => { users.add(draw); draw(state); };

  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
  const formats = [0, 1, 2].map((most) => new Intl.NumberFormat(tag, { maximumFractionDigits: most }));
  const number = (value, digits = 0) => formats[digits].format(value);

  // el("button", { class: "x", onclick: f, hidden: true }, child, "text"); text only ever becomes a text node
  const el = (tag, props = {}, ...children) => {
    const node = document.createElement(tag);
    // what is written would stand in the browser's own files
    if (tag === "textarea" || tag === "input") node.autocomplete = "off";
    for (const [name, value] of Object.entries(props)) {
      if (name.startsWith("on")) node[name] = value;
      else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  };
  // set what differs: every change of the page is seen by those who watch it
  const adjust = (node, values) => {
    for (const [name, value] of Object.entries(values)) if (node[name] !== value) node[name] = value;
  };
  const svg = (tag, props) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
    return node;
  };
  const icon = (name) => {
    const picture = svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" });
    picture.append(svg("path", { d: octavo.icons[name] }));
    return picture;
  };
  // a button that is only an icon
  const BUTTON = { type: "button", class: "tool" };
  const tool = (name, label, onclick, more = {}) =>
    el("button", { ...BUTTON, title: label, "aria-label": label, onclick, ...more }, icon(name));
  // an opened sheet, one leaf turning: the same as mark.svg
  const LEAVES = [
    ["M6 9.5l10 3.5v13L6 22.5z", 1],
    ["M16 13l10-3.5v13L16 26z", 0.55],
    ["M16 13l6-8v13l-6 8z", 0.8],
  ];
  const mark = () => {
    const picture = svg("svg", { viewBox: "0 0 32 32", class: "mark", "aria-hidden": "true" });
    picture.append(svg("rect", { class: "tile", width: 32, height: 32, rx: 8 }));
    picture.append(...LEAVES.map(([d, opacity]) => svg("path", { class: "leaf", d, opacity })));
    return picture;
  };
  // draw the inside of `box` anew: what has the cursor there has it afterwards, known by its id or data
  const KNOWN = ["id", "data-chat", "data-place", "data-waiting", "data-tool"];
  const way = (node, box) => {
    const known = KNOWN.filter((name) => node.hasAttribute(name)).map((name) => `[${name}="${node.getAttribute(name)}"]`);
    return (node.parentNode === box ? "" : `${way(node.parentNode, box)} `) + node.localName + known.join("");
  };
  const redraw = (box, ...nodes) => {
    const held = document.activeElement;
    const found = held !== box && box.contains(held) && way(held, box);
    box.replaceChildren(...nodes);
    const again = found && box.querySelector(found);
    if (!again) return;
    if (!again.checkVisibility()) again.parentNode.querySelector("button").focus(); // it is seen beside the cursor
    again.focus();
  };
  const shared = { words, state, isPrivate, set, use, fill, number, el, adjust, tool, icon, mark, redraw };
  return { ...shared, kept, keptKeys, keep, chosenLanguage, setLanguage };
})();

octavo.icons = { // on a square of 24
  plus: "M12 5v14M5 12h14", up: "M12 19V6M6 12l6-6l6 6", down: "M12 5v13M6 12l6 6l6-6",
  tick: "M5 13l4 4L19 7",
  models: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5l8-4.5M12 12v9",
  memory: "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
  settings: "M4 7h10M18 7h2M16 5v4M4 17h2M10 17h10M8 15v4",
  close: "M6 6l12 12M18 6L6 18", list: "M4 6h16M4 12h16M4 18h10", stop: "M7 7h10v10H7z",
  pen: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3", bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  find: "M11 5a6 6 0 1 0 0 12a6 6 0 0 0 0-12M15.5 15.5L20 20", copy: "M9 9h10v11H9zM15 9V5H5v11h4",
  left: "M14 6l-6 6l6 6", right: "M10 6l6 6l-6 6", more: "M5 12h.5M12 12h.5M19 12h.5",
  branch: "M7 4v16M7 14c8 0 10-3 10-8M14 9l3-3l3 3", compare: "M4 5h7v14H4zM13 5h7v14h-7z",
  speak: "M4 10v4h3l5 4V6L7 10zM15.5 9a4 4 0 0 1 0 6M18 6.5a7.5 7.5 0 0 1 0 11",
  again: "M19 12a7 7 0 1 1-2-5M19 4v4h-4", alert: "M12 8v5M12 16.5v.5M12 3l10 18H2z",
  clip: "M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.3a3 3 0 0 1 4.3 4.3L9.5 16.3a1.5 1.5 0 0 1-2.1-2.1L14.5 7",
  file: "M6 3h8l4 4v14H6zM14 3v4h4", help: "M9 9.5a3 3 0 1 1 4.2 2.7c-.8.4-1.2 1-1.2 1.8M12 17v.5",
  mic: "M12 4a2.5 2.5 0 0 0-2.5 2.5v5a2.5 2.5 0 0 0 5 0v-5A2.5 2.5 0 0 0 12 4M6 11.5a6 6 0 0 0 12 0M12 17.5V20",
  fold: "M4 5l8 3l8-3v14l-8-3l-8 3zM12 8v8",
  light: "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8M12 3v1M12 20v1M3 12h1M20 12h1"
    + "M5.6 5.6l.7.7M17.7 17.7l.7.7M5.6 18.4l.7-.7M17.7 6.3l.7-.7",
  dark: "M19 14.5A7.5 7.5 0 1 1 9.5 5a6 6 0 0 0 9.5 9.5", system: "M4 5h16v11H4zM9 20h6M12 16v4",
};

// Theme: "light", "dark" or "" for the system's. Gradio reads ?__theme while it starts; later its class on
// <body> is enough.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => {
    const dark = octavo.theme ? octavo.theme === "dark" : system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.body?.classList.toggle("dark", dark);
  };
  octavo.setTheme = (theme) => {
    octavo.theme = theme;
    octavo.keep("octavo.theme", theme);
    paint();
    octavo.set({});
  };
  octavo.theme = octavo.kept("octavo.theme") || "";
  const address = new URL(location);
  address.searchParams.set("__theme", octavo.theme || "system");
  history.replaceState(history.state, "", address);
  system.addEventListener("change", paint);
  addEventListener("DOMContentLoaded", paint);
  paint();
})();

// Gradio's progress clocks, which this page never shows, go on at the screen's rate once an event has run: a
// twentieth of a processor core on an idle page, for ever. They may look once a second.
(() => {
  const draw = window.requestAnimationFrame.bind(window);
  const isClock = (run) => run.length === 0 && /performance\.now\(\)-/.test(run);
  window.requestAnimationFrame = (run) => (isClock(run) ? setTimeout(run, 1000) : draw(run));
})();
