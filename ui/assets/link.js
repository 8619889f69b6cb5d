// The page's line to the server; runs inside the rail's component. Three ways: the event "show" mirrors one
// chat into the page until its answer ends, server.act does something, server.frame says what changed in
// the list of chats and the model's state. The open chat stands in the address, so a reload finds it again.
// A hidden tab gives its stream back: browsers allow six for each host.
const WINDOW = 40; // messages on the page
const QUICK_MS = 1000, CALM_MS = 3000; // between two looks
const SILENT_MS = 5000; // a stream that says nothing for so long is asked for again
let shown = WINDOW;
let seen = ""; // the last frame's name
let stamp = Infinity; // when the chat on screen was last changed
let timer = 0;
let heard = 0; // when the stream was asked for, or last said something

const request = (chat) => { heard = performance.now(); trigger("show", { chat, last: shown }); };

// make `chat` the one on screen
function turnTo(chat, push) {
  shown = WINDOW;
  stamp = Infinity;
  const address = new URL(location);
  address.searchParams.delete("__theme");
  if (chat) address.searchParams.set("chat", chat);
  else address.searchParams.delete("chat");
  history[push ? "pushState" : "replaceState"]({ chat }, "", address);
  octavo.set({ chat, notice: null });
  octavo.toEnd();
}
octavo.show = (chat, { push = true } = {}) => {
  if (chat !== octavo.state.chat) turnTo(chat, push);
  request(chat);
};
// call a function of the server; a failure is an answer too (Gradio's client hides it, and gives undefined)
async function ask(name, data) {
  try {
    return (await server[name](data)) ?? { error: octavo.words.unreachable };
  } catch {
    return { error: octavo.words.unreachable };
  }
}
octavo.showEarlier = () => { shown += WINDOW; request(octavo.state.chat); };

// do one of the server's ACTS; its answer, or null with a notice on the page
octavo.act = async (what, more = {}) => {
  const answer = await ask("act", { do: what, ...more });
  octavo.set({ notice: answer.error ?? null });
  if (answer.error) return null;
  if (what !== "text") refresh();
  return answer;
};
octavo.create = async () => {
  const answer = await octavo.act("new");
  if (!answer) return;
  octavo.show(answer.chat);
  octavo.closeDrawer();
  document.getElementById("draft")?.focus();
};

// keep the chat on screen true: to what another tab did, and when its stream was lost on the way
function follow() {
  const { chat, chats, view } = octavo.state;
  if (!view || !chats) return;
  const mine = chats.find(({ id }) => id === chat);
  if (!mine && view.chat === chat) return octavo.show(null, { push: false });
  const changed = !view.busy && (mine?.busy || mine?.updated > stamp);
  const behind = view.chat !== chat || (view.busy && !mine?.busy);
  const silent = view.busy && performance.now() - heard > SILENT_MS;
  if (changed || behind || silent) request(chat);
  stamp = mine?.updated ?? Infinity;
}
async function look() {
  const frame = await ask("frame", { seen });
  if (frame.error) return octavo.set({ online: false });
  if (!octavo.state.online) return location.reload(); // Gradio gives a lost server up for good
  if (frame.seen !== seen) octavo.set({ chats: frame.chats, status: frame.status });
  seen = frame.seen;
  follow();
}
async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return;
  await look();
  const { chats, status, online } = octavo.state;
  const calm = online && status?.state === "ready" && !chats?.some(({ busy }) => busy);
  clearTimeout(timer);
  timer = setTimeout(refresh, calm ? CALM_MS : QUICK_MS);
}

let arrived = null;
octavo.use(({ view, chat }) => {
  if (view === arrived) return;
  arrived = view;
  heard = performance.now();
  document.documentElement.classList.add("is-ready");
  if (chat === null) turnTo(view.chat, false);
  else if (chat !== view.chat) request(chat); // this was a late word from the chat shown before
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return trigger("leave");
  request(octavo.state.chat);
  refresh();
});
addEventListener("popstate", ({ state }) => octavo.show(state?.chat ?? null, { push: false }));
request(new URL(location).searchParams.get("chat"));
refresh();
