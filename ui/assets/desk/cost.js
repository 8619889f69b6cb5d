// Under the writing place: what the message would cost, while it is written. Above it, what does not fit:
// nothing is ever cut in silence, the older part of the chat is summed up if the person wants that.
const costs = (() => {
  const { el, tool, icon, number, fill, words: w } = octavo;
  const PAUSE_MS = 400, LOOK_MS = 700;
  const line = el("p", { id: "cost", hidden: true });
  const box = el("div", { class: "fit", role: "status", hidden: true });
  let timer = 0, asked = 0;
  let known = null; // {chat, text, cost}: what was said last
  const jobs = new Map(); // chat -> {state, messages, tokens, error}: summing up
  let draft = () => ({ text: "", files: [] });

  function changed() {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
    if (known?.text !== draft().text || known?.chat !== octavo.state.chat) forget();
  }
  function forget() {
    known = null;
    draw();
  }
  const isReady = ({ status, view, chat }) =>
    status?.state === "ready" && !(view?.chat === chat && view.busy);
  async function ask() {
    const { chat } = octavo.state;
    const { text, files } = draft();
    if (!text.trim() || !isReady(octavo.state)) return forget();
    const turn = ++asked;
    const cost = await octavo.quietly("cost", { chat, text, files: files.map(({ id }) => id) });
    if (turn !== asked || chat !== octavo.state.chat || text !== draft().text) return;
    known = cost.error ? null : { chat, text, cost };
    if (known) attachments.chosen(cost.files);
    draw();
  }

  const left = ({ limit, tokens }) => limit - tokens;
  // whether what is written can't be sent: [kind, sentence], or nothing
  function obstacle() {
    const { cost } = known ?? {};
    if (!cost) return [];
    if (cost.problem && cost.tokens < cost.limit) return ["error", octavo.said(cost.problem)];
    const numbers = { tokens: number(cost.tokens), limit: number(cost.limit), left: number(left(cost)) };
    if (left(cost) < 1) return ["error", fill(cost.older ? w.fit_over : w.fit_long, numbers)];
    if (left(cost) < cost.answer) return ["info", fill(cost.older ? w.fit_tight : w.fit_little, numbers)];
    return [];
  }
  const blocks = (chat, text) =>
    isSumming(chat) || (known?.chat === chat && known.text === text && obstacle()[0] === "error");
  const isSumming = (chat) => jobs.get(chat)?.state === "running";

  function draw() {
    const { cost } = known ?? {};
    const isSaid = !!cost && obstacle()[0] !== "error"; // what can't be sent has no first word
    line.hidden = !isSaid;
    document.documentElement.classList.toggle("has-cost", isSaid);
    if (isSaid) {
      const seconds = number(cost.seconds, cost.seconds < 10 ? 1 : 0);
      line.textContent = fill(cost.cached ? w.cost_cached : w.cost, {
        tokens: number(cost.tokens), cached: number(cost.cached), seconds,
      });
    }
    const [kind, parts] = notice(octavo.state.chat);
    box.hidden = !kind;
    box.className = `fit ${kind ?? ""}`;
    if (kind) box.replaceChildren(...parts);
  }
  const press = (label, onclick) => el("button", { type: "button", class: "press", onclick }, label);
  function notice(chat) {
    const job = jobs.get(chat);
    if (job?.state === "running") {
      const sentence = fill(w.summing, { count: number(job.messages), tokens: number(job.tokens) });
      const stop = press(w.stop, () => octavo.quietly("stop_compacting", { chat }));
      return ["info", [el("span", { class: "spin" }), el("span", {}, sentence), stop]];
    }
    if (job?.state === "done") {
      const sentence = el("span", {}, fill(w.summed, { count: number(job.messages) }));
      const away = tool("close", w.dismiss, () => { jobs.delete(chat); draw(); });
      return ["info", [icon("fold"), sentence, press(w.undo, () => undo(chat)), away]];
    }
    const [kind, sentence] = obstacle();
    if (!kind) return [];
    const parts = [icon(kind === "error" ? "alert" : "fold"), el("span", {}, sentence)];
    if (known.cost.older) parts.push(press(w.sum_up, () => sumUp(chat)));
    return [kind, parts];
  }

  async function sumUp(chat) {
    if (await octavo.act("compact", { chat })) follow(chat);
  }
  async function undo(chat) {
    if (!(await octavo.act("uncompact", { chat }))) return;
    jobs.delete(chat);
    ask();
    draw();
  }
  // how far it is, until it has ended
  async function follow(chat) {
    const before = jobs.get(chat)?.state;
    const job = await octavo.quietly("compacting", { chat });
    if (job.state === "running") {
      jobs.set(chat, job);
      setTimeout(() => follow(chat), LOOK_MS);
    } else if (before === "running") {
      if (job.state === "done") jobs.set(chat, job);
      else jobs.delete(chat);
      if (job.error) octavo.set({ notice: job.error });
      ask();
    }
    draw();
  }
  octavo.sumUp = sumUp;

  let chatNow = null, wasReady = false;
  octavo.use((state) => {
    if (state.chat !== chatNow) {
      chatNow = state.chat;
      jobs.forEach((job, chat) => { if (job.state === "done") jobs.delete(chat); });
      forget();
      if (chatNow) follow(chatNow); // it may have been begun in another tab
    }
    const ready = isReady(state);
    if (ready !== wasReady) changed();
    wasReady = ready;
  });
  const use = (read) => { draft = read; };
  return { line, box, changed, blocks, isSumming, use };
})();
