// Where one writes: the composer, what stands in its way (a model still loading, an error), and the
// greeting of an empty chat.
const root = element.querySelector(".desk");
const { el, tool, icon, mark, number, fill, words: w } = octavo;
const draft = el("textarea", {
  id: "draft", rows: 1, placeholder: w.ask, "aria-label": w.ask, "aria-describedby": "keys", disabled: true,
  "aria-keyshortcuts": "/", oninput: typed, onkeydown: key,
});
const send = tool("up", w.send, () => submit(draft.value), { id: "send", class: "round" });
const stopLabel = { title: `${w.stop} (Esc)`, hidden: true };
const stop = tool("stop", w.stop, halt, { id: "stop", class: "round", ...stopLabel });
const notice = el("div", { class: "notice", role: "status" });
const idea = (name) => el("button", { type: "button", onclick: () => submit(w[name]) }, w[name]);
const ideas = el("div", { class: "ideas" }, idea("try_1"), idea("try_2"), idea("try_3"));
root.append(
  tool("down", w.to_end, () => octavo.toEnd(), { id: "to-end", class: "round" }),
  el("section", { class: "hello" }, mark(), el("h2", {}, w.hello), el("p", {}, w.hello_text), ideas),
  notice,
  el("div", { class: "composer", onclick: () => draft.focus() }, draft, send, stop),
  el("p", { id: "keys" }, w.keys),
);

// what is written and not sent stays with its chat, in this tab
const place = (chat) => "octavo.draft." + chat;
let chatNow = null;
let sending = false;
function keep() {
  if (draft.value) sessionStorage.setItem(place(chatNow), draft.value);
  else sessionStorage.removeItem(place(chatNow));
  send.disabled = !draft.value.trim();
}
function fit() {
  draft.style.height = "auto";
  draft.style.height = `${draft.scrollHeight}px`;
}
function put(text) { draft.value = text; keep(); fit(); }
function typed() {
  keep();
  fit();
  if (octavo.state.notice) octavo.set({ notice: null }); // it was about what stood here before
}

function key(event) {
  // 229: the Enter that ends a word of an input method
  const composing = event.isComposing || event.keyCode === 229;
  if (event.key !== "Enter" || event.shiftKey || composing) return;
  event.preventDefault();
  submit(draft.value);
}
async function submit(text) {
  const { chat, view } = octavo.state;
  const busy = view?.chat === chat && view.busy;
  if (sending || busy || !text.trim()) return;
  sending = true;
  const answer = await octavo.act("send", { chat, text });
  sending = false;
  if (!answer) return;
  sessionStorage.removeItem(place(chat));
  if (octavo.state.chat !== chat) return;
  if (draft.value === text) draft.value = "";
  chatNow = answer.chat; // what was written meanwhile goes on there
  keep();
  fit();
  octavo.toEnd();
  octavo.show(answer.chat);
}
function halt(event) {
  event.stopPropagation();
  octavo.act("stop", { chat: octavo.state.chat });
  draft.focus();
}

// what stands in the way: [kind, sentence, what its button does, the button's icon]
function obstacle({ notice: error, status, online }) {
  if (!online) return ["error", w.unreachable];
  if (error) return ["error", error, () => octavo.set({ notice: null }), "close"];
  if (!status || status.state === "ready") return [];
  const sentence = status.message || w[status.state];
  if (status.state !== "loading") return ["error", sentence, () => octavo.act("again"), "again"];
  const percent = status.progress ? ` (${number(100 * status.progress)} %)` : "";
  return ["info", fill(w.wait_loading, { percent })];
}
let told = "";
function tell(state) {
  const [kind, sentence, act, name] = obstacle(state);
  const sign = JSON.stringify([kind, sentence, name]);
  if (sign === told) return;
  told = sign;
  notice.hidden = !sentence;
  if (!sentence) return;
  notice.className = "notice " + kind;
  const picture = kind === "error" ? icon("alert") : el("span", { class: "spin" });
  notice.replaceChildren(picture, el("span", {}, sentence));
  if (act) notice.append(tool(name, name === "close" ? w.dismiss : w.again, act));
}
octavo.use((state) => {
  const { view, chat } = state;
  const here = view?.chat === chat;
  if (chat !== chatNow) {
    chatNow = chat;
    put(sessionStorage.getItem(place(chat)) ?? "");
  }
  if (here && draft.disabled) {
    draft.disabled = false;
    if (matchMedia("(hover: hover)").matches) draft.focus(); // on a phone the keyboard would cover the page
  }
  stop.hidden = !(here && view.busy);
  send.hidden = !stop.hidden;
  if (here || !chat) document.documentElement.classList.toggle("is-empty", !chat);
  tell(state);
});
