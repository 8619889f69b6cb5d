// The list of chats: a new one, pinned ones, folders, the archive, which ones answer, which have news; below
// it the other pages and the theme. The server sends the rows that are looked at, more when one scrolls.
const { el, tool, icon, mark, fill, number, words: w } = octavo;
const DAY_MS = 86_400_000;
const MORE_ROWS = 100, NEAR_END = 400; // rows; pixels
const BIN_MS = 15_000; // a deleted chat is gone for good by then
const UNREAD = "octavo.unread", PLACE = "sessionStorage"; // so that a reload leaves the marks
const unread = new Set(octavo.kept(UNREAD, PLACE)?.split(" "));
let busyBefore = [];
let renaming = null;
let drawn = "";
Object.assign(octavo.icons, { // on a square of 24
  dots: "M5 12v.5M12 12v.5M19 12v.5", pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7", folder: "M3 6h6l2 2h10v11H3z",
  box: "M4 8h16v11H4zM3 5h18v3H3zM10 12h4", out: "M12 15V4M8 8l4-4 4 4M5 13v7h14v-7", back: "M14 6l-6 6l6 6",
  into: "M12 4v11M8 11l4 4 4-4M5 15v5h14v-5",
  secret: "M4 9c3-2 13-2 16 0c0 6-2 8-4.500 8c-2 0-2.500-2-3.500-2s-1.500 2-3.500 2C6 17 4 15 4 9M8 11h2M14 11h2",
});

const list = el("nav", { class: "chats", "aria-label": w.chats });
const newKeys = { title: `${w.new} (Ctrl+Shift+O)`, "aria-keyshortcuts": "Control+Shift+O" };
const how = { id: "new-chat", type: "button", ...newKeys, onclick: octavo.create };
const create = el("button", how, icon("plus"), el("span", {}, w.new));
const more = tool("dots", w.list_menu, listMenu, { id: "list-menu", "aria-haspopup": "menu" });
const searchKeys = { type: "button", "aria-keyshortcuts": "Control+K", onclick: () => octavo.search() };
const search = el("button", { id: "search", class: "search", ...searchKeys },
  icon("find"), el("span", {}, w.search), el("kbd", { "aria-hidden": "true" }, "Ctrl K"));
const themes = el("div", { class: "themes", role: "group", "aria-label": w.theme });
for (const name of ["light", "dark", "system"]) {
  const theme = name === "system" ? "" : name;
  const choose = () => octavo.setTheme(theme);
  themes.append(tool(name, w["theme_" + name], choose, { class: "", "data-theme-choice": theme }));
}
const helpKeys = { id: "about-keys", "aria-keyshortcuts": "?" };
const help = tool("help", `${w.shortcuts} (?)`, () => { octavo.closeDrawer(); octavo.help(); }, helpKeys);
const pages = el("nav", { class: "pages", "aria-label": w.pages });
for (const name of ["models", "memory", "settings"]) {
  const onclick = () => { octavo.turnPage(name); octavo.closeDrawer(); };
  pages.append(el("button", { type: "button", "data-page-link": name, onclick }, icon(name), w[name]));
}
element.querySelector(".rail").append(
  el("header", { class: "brand" }, mark(), el("span", {}, "Octavo")),
  el("div", { class: "begin" }, create, more),
  search, list, pages, el("div", { class: "ends" }, themes, help),
);
document.body.append(el("div", { id: "scrim", onclick: octavo.closeDrawer }));
list.onscroll = () => {
  const { chats, shelf } = octavo.state;
  const isNear = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_END;
  if (isNear && chats.length < shelf.total) octavo.browse({ rows: chats.length + MORE_ROWS });
};

const go = (place) => { list.scrollTop = 0; octavo.browse({ place, rows: MORE_ROWS }); };
async function beginPrivate() {
  const answer = await octavo.act("new_private");
  if (answer) octavo.show(answer.chat);
  octavo.closeDrawer();
}
// a question for a name; `save` does one of the server's ACTS with it. What it refuses is said below the name.
function askName(title, value, save, ...body) {
  const oops = el("p", { id: "name-oops", class: "oops", role: "alert" });
  const about = { "aria-label": w.folder_name, "aria-describedby": oops.id, maxlength: 100, autofocus: true };
  const box = el("input", { value, ...about });
  async function run() {
    const { error } = await save(box.value);
    oops.textContent = octavo.said(error) ?? "";
    if (error) box.focus();
    else octavo.browse({});
    return !error;
  }
  octavo.question({ title, body: [box, oops, ...body], yes: w.save, run });
  box.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // or it would press the button that is given the focus
    box.closest("dialog").querySelector(".sure").click();
  };
  box.select();
}
const newFolder = (then = () => go("")) => askName(w.new_folder_title, "", async (name) => {
  const answer = await octavo.quietly("new_folder", { name });
  if (!answer.error) then(answer.folder);
  return answer;
});
const download = (path) => el("a", { href: path, download: "" }).click();
function listMenu() {
  octavo.menu(more, [
    ["secret", w.new_private, beginPrivate],
    ["folder", w.new_folder, () => newFolder()],
    ["into", w.import, () => octavo.importChats()],
    ["out", w.export_all_md, () => download("export/chats.zip")],
    ["out", w.export_all_json, () => download("export/chats.json")],
  ]);
}
function folderMenu(folder, button) {
  const prompt = el("textarea", { rows: 5, "aria-label": w.folder_prompt, placeholder: w.folder_prompt });
  prompt.value = folder.system_prompt;
  const note = el("p", {}, w.folder_prompt_text);
  const save = (name) => octavo.quietly("change_folder", { folder: folder.id, name, prompt: prompt.value });
  octavo.menu(button, [
    ["pen", w.folder_change, () => askName(w.folder_change, folder.name, save, note, prompt)],
    ["bin", w.folder_delete, () => octavo.act("delete_folder", { folder: folder.id })],
  ]);
}
function moveMenu(chat, button) {
  const move = (folder) => octavo.act("move", { chat: chat.id, folder });
  const others = octavo.state.shelf.folders.filter(({ id }) => id !== chat.folder);
  octavo.menu(button, [
    ...(chat.folder ? [["back", w.no_folder, () => move("")]] : []),
    ...others.map(({ id, name }) => ["folder", name, () => move(id)]),
    ["plus", w.new_folder, () => newFolder(move)],
  ]);
}
function chatMenu(chat, button) {
  const put = (what, on) => () => octavo.act(what, { chat: chat.id, on });
  const take = (kind) => () => download(`export/${chat.id}.${kind}`);
  const end = ["bin", chat.private ? w.close_private : w.delete, () => (chat.private ? askClose : discard)(chat)];
  const shelf = [
    ["pin", chat.pinned ? w.unpin : w.pin, put("pin", !chat.pinned)],
    ["folder", w.move, () => moveMenu(chat, button)],
    ["box", chat.archived ? w.unarchive : w.archive, put("archive", !chat.archived)],
  ];
  octavo.menu(button, [
    ["pen", w.rename, () => rename(chat)],
    ...(chat.private ? [] : shelf),
    ["out", w.export_md, take("md")],
    ["out", w.export_json, take("json")],
    end,
  ]);
}
async function discard(chat) {
  const isHere = octavo.state.chat === chat.id;
  if (!(await octavo.act("delete", { chat: chat.id }))) return;
  if (isHere) octavo.show("", { push: false });
  if (chat.private) return octavo.tidyDrafts();
  const back = async () => {
    if ((await octavo.act("restore", { chat: chat.id })) && isHere) octavo.show(chat.id, { push: false });
  };
  setTimeout(octavo.tidyDrafts, BIN_MS);
  octavo.toast(fill(w.deleted, { title: chat.title || w.untitled }), { label: w.undo, run: back });
}
const askClose = (chat) => octavo.question({
  title: w.close_private_title, body: [el("p", {}, w.close_private_text)], yes: w.close_private, danger: true,
  run: () => discard(chat),
});

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
  if (chat.private) open.prepend(icon("secret"));
  const news = chat.busy ? "answering" : unread.has(chat.id) ? "unread" : null;
  if (news) open.append(el("span", { class: "dot " + news, role: "img", "aria-label": w[news] }));
  const menu = ({ currentTarget }) => chatMenu(chat, currentTarget);
  const about = { "data-tool": "more", "aria-haspopup": "menu", "aria-label": `${w.more}: ${title}` };
  node.append(open, tool("dots", w.more, menu, about));
  return node;
}
function place(name, label, count, id) {
  const open = el("button", { type: "button", class: "open", onclick: () => go(id) }, icon(name));
  const many = { class: "count", title: fill(w.place_count, { count: number(count) }) };
  open.append(el("span", { class: "title" }, label), el("span", many, number(count)));
  return el("div", { class: "chat place", "data-place": id }, open);
}
function placeHead({ place: id, folders }) {
  const folder = folders.find((each) => each.id === id);
  const back = tool("back", w.all_chats, () => go(""), { id: "all-chats" });
  const head = el("header", { class: "place-head" }, back, el("h2", {}, folder?.name ?? w.archived));
  const menu = ({ currentTarget }) => folderMenu(folder, currentTarget);
  if (folder) head.append(tool("dots", w.more, menu, { id: "folder-menu", "aria-haspopup": "menu" }));
  return head;
}
function heading(chat) {
  if (chat.private) return w.private;
  if (chat.pinned) return w.pinned;
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - chat.updated * 1000) / DAY_MS);
  return days <= 0 ? w.today : days === 1 ? w.yesterday : days <= 7 ? w.week : w.older;
}
function news({ busy }, chat) {
  for (const id of busyBefore) if (!busy.includes(id)) unread.add(id);
  busyBefore = busy;
  unread.delete(chat);
  const now = [...unread].join(" ") || null;
  if (now !== octavo.kept(UNREAD, PLACE)) octavo.keep(UNREAD, now, PLACE);
}
function rows({ chats, shelf, chat, page }) {
  const nodes = shelf.place
    ? [placeHead(shelf)]
    : shelf.folders.map(({ id, name, chats: count }) => place("folder", name, count, id));
  let last = "";
  for (const each of chats) {
    const name = shelf.place ? "" : heading(each);
    if (name !== last) nodes.push(el("h2", {}, (last = name)));
    nodes.push(row(each, page === "chat" && each.id === chat));
  }
  if (shelf.place && !chats.length) nodes.push(el("p", { class: "none" }, w.nothing_here));
  if (!shelf.place && shelf.archived) nodes.push(place("box", w.archived, shelf.archived, "archive"));
  return nodes;
}
function draw(state) {
  const { chats, shelf, chat, view, page } = state;
  for (const each of pages.children)
    each.toggleAttribute("aria-current", each.dataset.pageLink === page);
  for (const each of themes.children)
    each.setAttribute("aria-pressed", each.dataset.themeChoice === octavo.theme);
  if (!chats) return;
  // the list may be a second old; what is set here stays when the chat is left, or its end would be news
  for (const each of chats) if (each.id === view?.chat) each.busy = view.busy;
  news(shelf, chat);
  const sign = JSON.stringify([chats, { ...shelf, here: null }, chat, page, renaming, [...unread]]);
  if (sign === drawn || (renaming && list.querySelector(".rename"))) return; // an open box is left alone
  drawn = sign;
  octavo.redraw(list, ...rows(state));
}
octavo.use(draw);
