// The line above a conversation: its title, the model with its state, how much of the context is used.
// This component receives what "show" sends: props.value is the view of one chat.
const { el, tool, icon, number, fill, words: w } = octavo;
const title = el("h1");
const dot = el("span", { class: "state" });
const model = el("span", { class: "name" });
const opens = { type: "button", id: "pick-model", "aria-haspopup": "menu", "aria-expanded": "false" };
const pick = el("button", { ...opens, onclick: pickModel }, dot, model);
const chip = el("div", { class: "model", role: "status" }, pick);
const bar = el("i");
const count = el("span");
const meter = el("div", { class: "meter", role: "meter", "aria-valuemin": 0 }, el("b", {}, bar), count);
meter.onclick = () => octavo.contextSheet();
const more = tool("fold", w.context_title, () => octavo.contextSheet(), { id: "about-context" });
const options = tool("sliders", w.chat_settings, () => octavo.chatSettings(), { id: "chat-settings" });
const secret = el("span", { class: "secret", title: w.private_text }, icon("secret"), w.private);
const keys = { title: `${w.list} (Ctrl+B)`, "aria-keyshortcuts": "Control+B" };
const toggle = tool("list", w.list, octavo.toggleDrawer, { id: "toggle-rail", ...keys });
element.querySelector(".head").append(toggle, secret, title, chip, meter, more, options);

// the models that are here: for the chat on screen, or on a blank page for the chats to come
async function pickModel() {
  const { chat, status } = octavo.state;
  const { here, chosen } = (await octavo.modelsHere()) ?? {};
  if (!here) return;
  const isNews = (each) => each !== chosen || (each.id && status.next); // what was to come need not any more
  const choose = (each) => () => { if (isNews(each)) octavo.act("pick_model", { chat, model: each.id }); };
  octavo.menu(pick, [
    ...here.map((each) => ["tick", each.name, choose(each), each === chosen]),
    ["models", w.more_models, () => octavo.turnPage("models")],
  ]);
}
function drawModel({ name, state, message, progress, caution }) {
  const percent = state === "loading" && progress ? ` ${number(100 * progress)} %` : "";
  dot.className = "state " + state;
  // without the ending that says how it is quantized
  const short = name.replace(/(, [^,]+|[.-](IQ|Q|BF|F)\d\w*)$/i, "");
  model.textContent = state === "ready" ? short : `${short} · ${w[state]}${percent}`;
  pick.title = [name, octavo.said(message || caution) || w[state], w.pick_model].join(" · ");
}
function drawMeter({ used, limit }) {
  const share = Math.min(1, used / limit);
  bar.style.width = `${Math.max(share * 100, used ? 2 : 0)}%`;
  bar.className = share > 0.9 ? "full" : share > 0.7 ? "high" : "";
  count.textContent = `${number(used)} / ${number(limit)}`;
  meter.title = fill(w.context, { used: number(used), limit: number(limit) });
  const values = { label: meter.title, valuenow: used, valuemax: limit };
  for (const [name, value] of Object.entries(values)) meter.setAttribute("aria-" + name, value);
}
octavo.use(({ view, status, shelf, chat, page, online }) => {
  const here = view?.chat === chat ? view : null;
  const listed = shelf?.here?.id === chat ? shelf.here : null;
  title.textContent = title.title = (listed ?? here)?.title || w.untitled;
  secret.hidden = !octavo.isPrivate(chat);
  // a browser keeps the names of pages
  const name = page !== "chat" ? w[page] : secret.hidden ? title.title : w.private;
  document.title = `${here?.busy ? "● " : ""}${name} · Octavo`;
  chip.hidden = !status || !online;
  meter.hidden = more.hidden = !view?.limit;
  if (status) drawModel(status);
  if (view?.limit) drawMeter(view);
});
let before = "[]", earlier = []; // what was said before the last turn changes seldom
const receive = () => {
  const value = { ...props.value };
  if (value.error) return octavo.set({ notice: value.error });
  if (!value.turn) return;
  if (value.before !== before) earlier = JSON.parse((before = value.before));
  octavo.set({ view: { ...value, notes: [...earlier, ...JSON.parse(value.turn)] }, status: value.status });
};
watch("value", receive);
receive();
