// The page's line to the server; runs inside the rail's component. Three ways: the event "show" mirrors one
// chat into the page until its answer ends, server.act does something, server.frame says what changed in
// the list of chats and the model's state. The open chat stands in the address, so a reload finds it again.
// A hidden tab has no stream: browsers allow six for each host.
const WINDOW = 40; // messages on the page
const QUICK_MS = 1000, CALM_MS = 3000; // between two looks
const SILENT_MS = 5000; // a stream that says nothing for so long is asked for again
const PATIENCE_MS = 700, ENOUGH_MS = 5000; // for an answer to "show": the first time, and the last
const SETTLED_MS = 60_000; // a page that was just loaded anew for want of an answer is not so at once again
let shown = WINDOW;
const listed = { place: "", rows: 100 }; // what of the list of chats is looked at
let seen = ""; // the last frame's name
let stamp = Infinity; // when the chat on screen was last changed
let timer = 0, again = 0;
let asked = 0; // requests so far; each view says which one it answers
let isOutdated = false; // the notice says that something is not there any more: until it is gone here, too
let heard = 0; // when the stream was asked for, or last said something

// Gradio's client closes its stream when the last event has ended. What is asked for in that very moment is
// answered into the closed stream, and comes out when something opens it again: so ask until there is a view.
// Where none comes for ten seconds though the server answers, the stream is lost for good: load the page anew.
function request(chat, patience = PATIENCE_MS) {
  heard = performance.now();
  asked += 1;
  trigger("show", { chat, last: shown, ask: asked });
  clearTimeout(again);
  again = setTimeout(() => {
    if (!octavo.state.online || document.hidden) return;
    if (patience > ENOUGH_MS && !isFresh()) return location.reload();
    request(octavo.state.chat, 2 * patience);
  }, patience);
}
const isFresh = () =>
  performance.getEntriesByType("navigation")[0]?.type === "reload" && performance.now() < SETTLED_MS;

// make `chat` the one on screen
function turnTo(chat, push, last = 0) {
  shown = Math.max(WINDOW, last);
  stamp = Infinity;
  octavo.remember({ chat, notice: null }, push);
  octavo.toEnd();
}
octavo.show = (chat, { push = true, last = 0 } = {}) => { // `last`: messages that must be on the page
  octavo.turnPage("chat", { push: push && chat === octavo.state.chat });
  if (chat !== octavo.state.chat) turnTo(chat, push, last);
  shown = Math.max(shown, last);
  request(chat);
};
// look at another place of the list, or at more of it
octavo.browse = (change) => { Object.assign(listed, change); return refresh(); };
const ask = (name, data) => octavo.ask(server, name, data);
octavo.showEarlier = () => { shown += WINDOW; request(octavo.state.chat); };

// do one of the server's ACTS; its answer, or null with a notice on the page
octavo.act = async (what, more = {}) => {
  const answer = await ask("act", { do: what, ...more });
  octavo.set({ notice: answer.error ?? null });
  isOutdated = !!answer.outdated;
  if (isOutdated) request(octavo.state.chat);
  if (answer.error) return null;
  refresh();
  return answer;
};
// ask for something of a chat that changes nothing; its answer, or null with a notice on the page
octavo.read = async (what, more = {}) => {
  const answer = await ask("act", { do: what, chat: octavo.state.chat, ...more });
  if (answer.error) octavo.set({ notice: answer.error });
  return answer.error ? null : answer;
};
// the same, but what comes of it is its asker's affair alone
octavo.quietly = (what, more = {}) => ask("act", { do: what, ...more });
octavo.create = async () => {
  const { place } = octavo.state.shelf ?? {};
  const isFolder = place && place !== "archive";
  octavo.show(isFolder ? ((await octavo.act("new", { folder: place }))?.chat ?? "") : "");
  octavo.closeDrawer();
  document.getElementById("draft")?.focus();
};

// keep the chat on screen true: to what another tab did, and when its stream was lost on the way
function follow() {
  const { chat, shelf, view } = octavo.state;
  if (!chat || view?.chat !== chat) return;
  const mine = shelf.here;
  const changed = !view.busy && (mine?.busy || mine?.updated > stamp);
  const lost = view.busy && (!mine?.busy || performance.now() - heard > SILENT_MS);
  if (!mine || changed || lost) request(chat);
  stamp = mine?.updated ?? Infinity;
}
async function look() {
  const asking = octavo.state.chat;
  const frame = await ask("frame", { seen, ...listed, chat: asking });
  if (frame.error) return octavo.set({ online: false });
  if (!octavo.state.online) return location.reload(); // Gradio gives a lost server up for good
  if (octavo.state.notice === octavo.words.unreachable) octavo.set({ notice: null });
  if (frame.seen !== seen) octavo.set({ chats: frame.chats, shelf: frame.shelf, status: frame.status });
  seen = frame.seen;
  if (asking === octavo.state.chat) follow();
}
async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return;
  await look();
  const { shelf, status, online } = octavo.state;
  const calm = online && status?.state === "ready" && !shelf?.busy.length;
  clearTimeout(timer);
  timer = setTimeout(refresh, calm ? CALM_MS : QUICK_MS);
}

function begin() {
  request(octavo.state.chat);
  refresh();
}
let arrived = null;
octavo.use(({ view, chat }) => {
  if (view === arrived) return;
  const before = arrived;
  arrived = view;
  heard = performance.now();
  document.documentElement.classList.add("is-ready");
  if (view.ask === asked) {
    clearTimeout(again);
    if (!before || view.chat !== chat) {
      turnTo(view.chat, false);
      if (view.chat !== chat) octavo.rewrite.rescue(chat); // the wanted one is not there
    } else if (isOutdated || before.busy !== view.busy) { // "still answering", for instance
      isOutdated = false;
      octavo.set({ notice: null });
    }
  } else if (view.chat !== chat) request(chat); // a late word of the chat that was shown before
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return trigger("leave");
  begin();
});
addEventListener("popstate", ({ state }) => {
  const { chat = "", page = "chat" } = state ?? {};
  if (page === "chat" || chat !== octavo.state.chat) octavo.show(chat, { push: false });
  octavo.turnPage(page, { push: false });
});
if (!document.hidden) begin(); // one that is opened behind another waits until it is seen
