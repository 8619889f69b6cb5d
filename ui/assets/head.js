// The line above a conversation: its title, the model with its state, how much of the context is used.
// This component receives what "show" sends: props.value is the view of one chat.
const { el, tool, number, fill, words: w } = octavo;
const title = el("h1");
const dot = el("span", { class: "state" });
const model = el("span", { class: "name" });
const chip = el("div", { class: "model", role: "status" }, dot, model);
const bar = el("i");
const count = el("span");
const meter = el("div", { class: "meter", role: "meter", "aria-valuemin": 0 }, el("b", {}, bar), count);
const toggle = tool("list", w.list, octavo.toggleDrawer, { id: "toggle-rail" });
element.querySelector(".head").append(toggle, title, chip, meter);

function drawModel({ model: name, state, message, progress }) {
  const percent = state === "loading" && progress ? ` ${number(100 * progress)} %` : "";
  dot.className = "state " + state;
  model.textContent = state === "ready" ? name : `${name} · ${w[state]}${percent}`;
  chip.title = message || w[state];
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
octavo.use(({ view, status, chats, chat }) => {
  const listed = chats?.find(({ id }) => id === chat);
  title.textContent = title.title = (listed ?? view)?.title || w.untitled;
  document.title = `${view?.busy ? "● " : ""}${title.title} · Octavo`;
  chip.hidden = !status;
  meter.hidden = !view?.limit;
  if (status) drawModel(status);
  if (view?.limit) drawMeter(view);
});
const receive = () => { if (props.value?.chat) octavo.set({ view: props.value }); };
watch("value", receive);
receive();
