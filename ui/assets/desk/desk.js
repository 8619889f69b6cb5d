// Where one writes: the composer, what stands in its way (a model still loading, an error), and the
// greeting of an empty chat.
const root = element.querySelector(".desk");
const { el, tool, icon, mark, number, fill, words: w } = octavo;
const draft = el("textarea", {
  id: "draft", rows: 1, placeholder: w.ask, "aria-label": w.ask, "aria-describedby": "keys", disabled: true,
  "aria-keyshortcuts": "/", oninput: typed, onkeydown: key, onpaste: attachments.pasted,
});
const send = tool("up", w.send, () => submitDraft(), { id: "send", class: "round" });
const stopLabel = { title: `${w.stop} (Esc)`, hidden: true };
const stop = tool("stop", w.stop, halt, { id: "stop", class: "round", ...stopLabel });
const compare = tool("compare", w.compare, () => octavo.askCompare(submitDraft), { id: "compare" });
const notice = el("div", { class: "notice", role: "status" });
const idea = (name) => el("button", { type: "button", onclick: () => submit(w[name]) }, w[name]);
const ideas = el("div", { class: "ideas" }, idea("try_1"), idea("try_2"), idea("try_3"));
const toModels = { type: "button", onclick: () => octavo.turnPage("models") };
const tiny = el("p", { id: "tiny", hidden: true }, w.starter_tiny, " ", el("button", toModels, w.starter_larger));
const about = el("p", {}, w.hello_text);
const caution = el("p", { id: "caution", hidden: true });
const firstRun = el("div", { id: "first-run" }); // first.js
const composer = el("div", { class: "composer" },
  attachments.strip, attachments.button, draft, compare, dictation.button, send, stop);
composer.onclick = ({ target }) => { if (target === composer) draft.focus(); };
root.append(
  tool("down", w.to_end, () => octavo.toEnd(), { id: "to-end", class: "round" }),
  el(
    "section", { class: "hello" },
    mark(), el("h2", {}, w.hello), about, tiny, caution, ideas, firstRun,
  ),
  notice,
  costs.box,
  composer,
  attachments.picker,
  costs.line,
  el("p", { id: "keys" }, w.keys),
);
document.body.append(el("div", { id: "drop" }, el("p", {}, icon("clip"), w.drop)));

let chatNow = null;
let sending = null; // a promise, while a message is on its way
// where the cursor goes when what had it is gone; on a phone the keyboard would cover the page
octavo.toDraft = () => { if (matchMedia("(hover: hover)").matches) draft.focus(); };
const isBusy = () => octavo.state.view?.chat === octavo.state.chat && octavo.state.view.busy;
const written = () => ({ text: draft.value, files: attachments.files() });
function keep() {
  drafts.set(chatNow, written());
  arrange();
  costs.changed();
}
// which buttons there are: while an answer grows a message can still be sent, and waits
function arrange() {
  const busy = isBusy(), empty = !draft.value.trim(), held = document.activeElement;
  stop.hidden = !busy;
  send.hidden = busy && empty;
  compare.hidden = busy || empty || attachments.isBusy();
  send.disabled = empty || attachments.isBusy();
  send.title = busy ? w.send_later : w.send;
  if ([stop, send, compare].includes(held) && (held.hidden || held.disabled)) octavo.toDraft();
  document.documentElement.classList.toggle("is-writing", !empty || attachments.files().length > 0);
  draft.placeholder = attachments.files().length ? w.ask_file : w.ask;
}
function fit() {
  draft.style.height = "auto";
  draft.style.height = `${draft.scrollHeight}px`;
}
// lines break anew at another width, and there are none while another page is on screen
let width = 0;
new ResizeObserver(() => {
  if (draft.clientWidth !== width) fit();
  width = draft.clientWidth;
}).observe(draft);
function put({ text, files }) {
  draft.value = text;
  attachments.put(files, chatNow);
  arrange();
  costs.changed();
  fit();
}
function typed() {
  keep();
  fit();
  if (octavo.state.notice) octavo.set({ notice: null }); // it was about what stood here before
}
attachments.use(keep);
costs.use(written);
dictation.use(() => draft.value, (text) => { draft.value = text; typed(); });
octavo.writeMore = (text) => { // below what stands there
  draft.value = [draft.value, text].filter(Boolean).join("\n\n");
  typed();
};
octavo.carryDraft = (chat) => { // into a chat that is made for what is written
  drafts.set(chat, drafts.get(chatNow));
  drafts.forget(chatNow);
  attachments.carry(chatNow, chat);
};
drafts.follow((chat) => { if (chat === chatNow && document.hidden) put(drafts.get(chat)); });

function key(event) {
  // 229: the Enter that ends a word of an input method
  const composing = event.isComposing || event.keyCode === 229;
  if (event.key === "ArrowUp" && !draft.value && !composing) {
    if (octavo.editLast?.()) event.preventDefault();
    return;
  }
  if (event.key !== "Enter" || event.shiftKey || composing) return;
  event.preventDefault();
  submitDraft();
}
async function submitDraft(compared) {
  const text = draft.value;
  await sending; // and if that was this very message, it is not here any more
  if (draft.value === text) submit(text, compared);
}
async function submit(text, compared = {}) {
  const { chat } = octavo.state;
  if (sending || !text.trim() || attachments.isBusy() || costs.blocks(chat, text)) return;
  dictation.stop();
  const files = attachments.files();
  sending = octavo.act("send", { chat, text, files: files.map(({ id }) => id), compared });
  const answer = await sending;
  sending = null;
  if (!answer) return;
  // what was written meanwhile goes on where this message went
  const isHere = chat === chatNow;
  const left = isHere ? written() : drafts.get(chat);
  drafts.forget(chat);
  const there = drafts.get(answer.chat);
  const rest = {
    text: [there.text, left.text === text ? "" : left.text].filter(Boolean).join("\n\n"),
    files: [...there.files, ...left.files.filter(({ id }) => !files.some((sent) => sent.id === id))],
  };
  drafts.set(answer.chat, rest);
  attachments.carry(chat, answer.chat);
  if (isHere) chatNow = answer.chat;
  if (chatNow === answer.chat) put(rest);
  if (!isHere) return;
  octavo.toEnd();
  octavo.show(answer.chat);
}
function halt(event) {
  event.stopPropagation();
  octavo.act("stop", { chat: octavo.state.chat });
  draft.focus();
}

// what stands in the way: [kind, sentence, what its button does, the button's icon]
function obstacle({ notice: error, status, online, goodbye }) {
  if (goodbye) return ["info", goodbye, null, "tick"];
  if (!online) return ["error", w.unreachable];
  if (error) return ["error", error.split("\n").map(octavo.said).join(" "), () => octavo.set({ notice: null }), "close"];
  if (status?.next) return ["info", octavo.said(status.message)]; // another model, when answers have ended
  if (!status || ["ready", "unloaded"].includes(status.state)) return [];
  const sentence = octavo.said(status.message) || w[status.state];
  if (status.state !== "loading") return ["error", sentence, () => octavo.act("again"), "again"];
  const percent = status.progress ? ` (${number(100 * status.progress)} %)` : "";
  const what = sentence.replace(/[.。]$/, ""); // which step of loading it is
  return ["info", fill(w.wait_loading, { what, percent })];
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
  const picture = kind === "error" ? icon("alert") : name ? icon(name) : el("span", { class: "spin" });
  notice.replaceChildren(picture, el("span", {}, sentence));
  if (act) notice.append(tool(name, name === "close" ? w.dismiss : w.again, act));
}
octavo.use((state) => {
  const { view, chat } = state;
  const here = view?.chat === chat;
  if (chat !== chatNow) {
    chatNow = chat;
    put(drafts.get(chat));
    firstRun.hidden = octavo.isPrivate(chat);
    about.textContent = firstRun.hidden ? w.private_text : w.hello_text;
  }
  if (here && draft.disabled) {
    draft.disabled = false;
    drafts.tidy();
    octavo.toDraft();
  }
  arrange();
  tiny.hidden = !state.status?.starter;
  caution.textContent = octavo.said(state.status?.caution) ?? "";
  caution.hidden = !caution.textContent;
  if (here || !chat) document.documentElement.classList.toggle("is-empty", !(here && view.notes.length));
  tell(state);
});
