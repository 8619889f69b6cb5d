// What an empty chat says on the first day: a model that suits this machine, or the starter. Draws into the
// element with the id `first-run`, if there is one; asks the server only while such a chat is on screen, and
// until there is a model or the person said "not now".
const FIRST = "octavo.first";
const dayOne = { over: octavo.kept(FIRST) === "over", sign: "" };
function endFirst() {
  dayOne.over = true;
  document.getElementById("first-run")?.replaceChildren();
}
const firstOption = (label, act, more) => press(label, async () => {
  const answer = await ask("act", act);
  drawFirst(answer.error ? { error: answer.error } : await ask("act", { do: "first" }));
}, more);
// what can be done with a download that stands still
const goOn = (key) => el("div", { class: "choices" },
  firstOption(w.models_resume, { do: "resume", key }, { id: "first-resume", class: "solid" }),
  firstOption(w.models_cancel, { do: "cancel", key }, { id: "first-cancel" }));

function drawFirst(first) {
  const place = document.getElementById("first-run");
  if (!place) return;
  const download = first.downloads?.[0];
  const about = [first.error, first.proposal?.id, first.starter_here, download?.key, download?.state];
  const sign = JSON.stringify(about);
  if (sign === dayOne.sign && place.children.length) return dayOne.move?.(download);
  dayOne.sign = sign;
  dayOne.move = null;
  if (first.error) return place.replaceChildren(el("p", { class: "told is-bad", role: "alert" }, octavo.said(first.error)));
  const { proposal, starter } = first;
  const parts = [el("h3", {}, w.first_title), el("p", {}, octavo.said(proposal.reason))];
  if (download) {
    const { node, move } = progressOf(download, download);
    dayOne.move = (now) => now && move(now);
    parts.push(node);
    if (["failed", "paused"].includes(download.state)) parts.push(goOn(download.key));
  } else {
    const key = (each) => `${each.id}@${each.format.toLowerCase().replaceAll(" ", "-")}`;
    const label = (text, each) => fill(text, { name: each.name, size: bytes(each.bytes) });
    const isStarter = proposal.id === starter.id;
    const choices = [];
    const option = (id, key, text, each, kind) =>
      choices.push(firstOption(label(text, each), { do: "start", key, use: true }, { id, class: kind }));
    if (!isStarter) option("first-get", key(proposal), w.first_get, proposal, "solid");
    const small = isStarter ? "solid" : "quiet";
    if (!first.starter_here) option("first-starter", starter.id, w.first_starter, starter, small);
    const notNow = () => { octavo.keep(FIRST, "over"); endFirst(); };
    choices.push(press(w.first_other, () => octavo.turnPage("models"), { id: "first-other" }));
    choices.push(press(w.first_not_now, notNow, { id: "first-not-now" }));
    parts.push(el("div", { class: "choices" }, ...choices));
    if (first.starter_here && !isStarter) parts.push(el("p", { class: "small" }, w.first_starter_here));
    if (first.starter_here && isStarter) return endFirst(); // nothing better fits, and it is here
  }
  place.replaceChildren(...parts);
}
async function glanceFirst() {
  if (dayOne.over || octavo.state.chat || !document.getElementById("first-run")) return;
  const first = await ask("act", { do: "first" });
  if (first.begun && !first.downloads.length) return endFirst();
  drawFirst(first);
}
octavo.visit("chat", glanceFirst, 2000);
