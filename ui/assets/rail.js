// The list of chats: a new one, search by title, rename, delete, which ones answer, which have news; below
// it the theme.
const { el, tool, icon, mark, fill, words: w } = octavo;
const DAY_MS = 86_400_000;
const unread = new Set();
let busyBefore = new Set();
let renaming = null;
let drawn = "";

const search = el("input", {
  id: "search", type: "search", placeholder: w.search, "aria-label": w.search, autocomplete: "off",
  "aria-keyshortcuts": "Control+K",
  oninput: () => draw(octavo.state), onkeydown: searchKey,
});
const list = el("nav", { class: "chats", "aria-label": w.chats });
const keys = { title: `${w.new} (Ctrl+Shift+O)`, "aria-keyshortcuts": "Control+Shift+O" };
const how = { id: "new-chat", type: "button", ...keys, onclick: octavo.create };
const create = el("button", how, icon("plus"), el("span", {}, w.new));
const themes = el("div", { class: "themes", role: "group", "aria-label": w.theme });
for (const name of ["light", "dark", "system"]) {
  const theme = name === "system" ? "" : name;
  const choose = () => octavo.setTheme(theme);
  themes.append(tool(name, w["theme_" + name], choose, { class: "", "data-theme-choice": theme }));
}
const pages = el("nav", { class: "pages", "aria-label": w.pages });
for (const name of ["models", "memory", "settings"]) {
  const onclick = () => { octavo.turnPage(name); octavo.closeDrawer(); };
  pages.append(el("button", { type: "button", "data-page-link": name, onclick }, icon(name), w[name]));
}
element.querySelector(".rail").append(
  el("header", { class: "brand" }, mark(), el("span", {}, "Octavo")),
  create,
  el("label", { class: "search" }, icon("find"), search, el("kbd", { "aria-hidden": "true" }, "Ctrl K")),
  list,
  pages,
  themes,
);
document.body.append(el("div", { id: "scrim", onclick: octavo.closeDrawer }));

function searchKey(event) {
  if (event.key === "Enter") list.querySelector(".open")?.click();
  if (event.key !== "Escape") return;
  event.preventDefault();
  search.value = "";
  draw(octavo.state);
  octavo.closeDrawer();
  document.getElementById("draft")?.focus();
}
function rename(chat) {
  renaming = chat.id;
  draw(octavo.state);
  const box = list.querySelector(".rename");
  box.focus();
  box.select();
}
function renameBox(chat) {
  const end = (save) => {
    if (renaming !== chat.id) return;
    renaming = null;
    const title = box.value.trim();
    if (save && title && title !== chat.title) octavo.act("rename", { chat: chat.id, title });
    else draw(octavo.state);
  };
  const onkeydown = (event) => {
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") { event.preventDefault(); end(false); }
  };
  const props = { class: "rename", value: chat.title, "aria-label": w.title, maxlength: 200 };
  const box = el("input", { ...props, onblur: () => end(true), onkeydown });
  return box;
}
function askDelete(chat) {
  const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title" });
  const sure = async () => {
    dialog.close();
    const isCurrent = octavo.state.chat === chat.id;
    if ((await octavo.act("delete", { chat: chat.id })) && isCurrent) octavo.show("", { push: false });
  };
  const choice = (label, onclick, more) => el("button", { type: "button", onclick, ...more }, label);
  const no = choice(w.cancel, () => dialog.close(), { autofocus: true });
  dialog.append(
    el("h2", { id: "ask-title" }, w.delete_title),
    el("p", {}, fill(w.delete_text, { title: chat.title || w.untitled })),
    el("div", { class: "choices" }, no, choice(w.delete, sure, { class: "danger" })),
  );
  dialog.onclose = () => dialog.remove();
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); }; // beside it
  document.body.append(dialog);
  dialog.showModal();
}
function row(chat, isCurrent) {
  const title = chat.title || w.untitled;
  const node = el("div", { class: "chat" + (isCurrent ? " is-current" : ""), "data-chat": chat.id });
  if (renaming === chat.id) {
    node.append(renameBox(chat));
    return node;
  }
  const onclick = () => { octavo.show(chat.id); octavo.closeDrawer(); };
  const props = { type: "button", class: "open", title, "aria-current": isCurrent && "page", onclick };
  const open = el("button", props, el("span", { class: "title" }, title));
  const news = chat.busy ? "answering" : unread.has(chat.id) ? "unread" : null;
  if (news) open.append(el("span", { class: "dot " + news, role: "img", "aria-label": w[news] }));
  const act = (name, label, run) =>
    tool(name, label, () => run(chat), { "data-tool": name, "aria-label": `${label}: ${title}` });
  node.append(open, act("pen", w.rename, rename), act("bin", w.delete, askDelete));
  return node;
}
function age(seconds) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - seconds * 1000) / DAY_MS);
  return days <= 0 ? w.today : days === 1 ? w.yesterday : days <= 7 ? w.week : w.older;
}
function news(chats, chat) {
  const busy = new Set(chats.filter((each) => each.busy).map((each) => each.id));
  for (const id of busyBefore) if (!busy.has(id)) unread.add(id);
  busyBefore = busy;
  unread.delete(chat);
}
function draw({ chats, chat, view, page }) {
  for (const each of pages.children)
    each.toggleAttribute("aria-current", each.dataset.pageLink === page);
  for (const each of themes.children)
    each.setAttribute("aria-pressed", each.dataset.themeChoice === octavo.theme);
  if (!chats) return;
  // the list may be a second old; what is set here stays when the chat is left, or its end would be news
  for (const each of chats) if (each.id === view?.chat) each.busy = view.busy;
  news(chats, chat);
  const wanted = search.value.trim().toLowerCase();
  const sign = JSON.stringify([chats, chat, page, wanted, renaming, [...unread]]);
  if (sign === drawn || (renaming && list.querySelector(".rename"))) return; // an open box is left alone
  drawn = sign;
  const found = chats.filter((each) => (each.title || w.untitled).toLowerCase().includes(wanted));
  const rows = [];
  let heading = "";
  for (const each of found) {
    if (age(each.updated) !== heading) rows.push(el("h2", {}, (heading = age(each.updated))));
    rows.push(row(each, page === "chat" && each.id === chat));
  }
  const nothing = fill(w.nothing_found, { text: search.value.trim() });
  if (wanted && !rows.length) rows.push(el("p", { class: "none" }, nothing));
  list.replaceChildren(...rows);
}
octavo.use(draw);
