// A line at the foot of the page that says what was done, for some seconds, with a way to take it back. Runs
// early.
(() => {
  const { el, tool, words: w } = octavo;
  const LASTS_MS = 10_000;
  let timer = 0;
  const line = el("div", { id: "toast", role: "status" });
  const away = () => { clearTimeout(timer); line.replaceChildren(); };
  // `stay`: until something else is said
  octavo.toast = (text, { label = "", run = null, stay = false } = {}) => {
    away();
    line.append(el("span", {}, text));
    if (run) line.append(el("button", { type: "button", onclick: () => { away(); run(); } }, label));
    line.append(tool("close", w.dismiss, away));
    if (!stay) timer = setTimeout(away, LASTS_MS);
  };
  addEventListener("DOMContentLoaded", () => document.body.append(line));
})();
