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
const keys = { title: `${w.list} (Ctrl+B)`, "aria-keyshortcuts": "Control+B" };
const toggle = tool("list", w.list, octavo.toggleDrawer, { id: "toggle-rail", ...keys });
element.querySelector(".head").append(toggle, title, chip, meter);

function drawModel({ model: name, state, message, progress }) {
  const percent = state === "loading" && progress ? ` ${number(100 * progress)} %` : "";
  dot.className = "state " + state;
  // without the ending that says how a file is quantized
  const short = name.replace(/[.-](IQ|Q|BF|F)\d\w*$/i, "");
  model.textContent = state === "ready" ? short : `${short} · ${w[state]}${percent}`;
  chip.title = `${name}: ${message || w[state]}`;
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
octavo.use(({ view, status, chats, chat, online }) => {
  const here = view?.chat === chat ? view : null;
  const listed = chats?.find(({ id }) => id === chat);
  title.textContent = title.title = (listed ?? here)?.title || w.untitled;
  document.title = `${here?.busy ? "● " : ""}${title.title} · Octavo`;
  chip.hidden = !status || !online;
  meter.hidden = !view?.limit;
  if (status) drawModel(status);
  if (view?.limit) drawMeter(view);
});
const receive = () => {
  const { value } = props;
  if (value?.error) octavo.set({ notice: value.error });
  else if (value?.notes) octavo.set({ view: value, status: value.status });
};
watch("value", receive);
receive();
