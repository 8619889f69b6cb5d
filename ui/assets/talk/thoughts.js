// What a model thought before it answered, folded above the answer with the time it took. The text is fetched
// when somebody wants to see it, and while it grows only what is new of it. Runs early.
(() => {
  const { el, adjust, fill, number, words: w } = octavo;
  const opened = new Set(); // messages whose thoughts are unfolded

  function make(about) {
    const label = el("span", { class: "label" });
    const text = el("div", { class: "text" });
    const details = el("details", { open: opened.has(about.id) }, el("summary", {}, label), text);
    const onclick = () => { hurry.disabled = true; octavo.act("hurry", { chat: octavo.state.chat }); };
    const hurry = el("button", { type: "button", class: "hurry", onclick }, w.answer_now);
    const box = el("div", { class: "thoughts" }, details, hurry);
    details.ontoggle = () => {
      if (details.open) opened.add(about.id);
      else opened.delete(about.id);
      fetchRest(box);
    };
    return Object.assign(box, { about, have: 0, label, text, details, hurry });
  }
  async function fetchRest(box) {
    if (!box.details.open || box.fetching || box.have >= box.about.thoughts.length) return;
    box.fetching = true;
    const answer = await octavo.read("thoughts", { message: box.about.id, start: box.have });
    box.fetching = false;
    if (!answer?.text) return;
    box.text.append(answer.text);
    box.have += [...answer.text].length; // the server counts characters, not halves of them
    fetchRest(box);
  }
  // called for every row that is drawn
  octavo.drawThoughts = (row, about) => {
    let box = row.querySelector(":scope > .thoughts");
    if (box && box.about.id !== about.id) { box.remove(); box = null; }
    if (!about.thoughts) return box?.remove();
    if (!box) row.prepend((box = make(about)));
    const { seconds, growing } = about.thoughts;
    box.about = about;
    box.classList.toggle("is-growing", growing);
    adjust(box.hurry, { hidden: !growing });
    adjust(box.label, { textContent: fill(growing ? w.thinking : w.thought, { value: number(seconds, 1) }) });
    fetchRest(box);
  };
})();
