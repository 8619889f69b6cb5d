// What stands under a message: its versions, what can be done with it, figures, errors. Runs early.
(() => {
  const { el, tool, icon, fill, number, words: w } = octavo;
  const LONG = 500; // tokens before an answer, from which on it is said how many are read
  const ENDS = { cancelled: w.stopped, interrupted: w.interrupted, length: w.cut }; // ends that need a word

  // do something with the chat on screen, then show what has become of it
  async function act(what, more) {
    const { chat } = octavo.state;
    const answer = await octavo.act(what, { chat, ...more });
    if (answer && octavo.state.chat === chat) octavo.show(answer.chat ?? chat);
  }
  const ofSeveral = ({ notes }) => new Set(notes.filter(({ beside }) => beside).map(({ model }) => model)).size > 1;
  function figures({ stats, finish, model, beside, text, thoughts }, { status, view }) {
    const parts = ENDS[finish] ? [ENDS[finish]] : finish === "stop" && !text && !thoughts ? [w.silent] : [];
    if (model && ((status && model !== status.name) || (beside && ofSeveral(view)))) parts.push(model);
    if (!stats?.tokens) return parts.join(" · "); // stopped before its first word
    if (stats.temperature !== null) parts.push(fill(w.heat, { value: number(stats.temperature, 2) }));
    if (stats.tokens_per_s) parts.push(fill(w.speed, { value: number(stats.tokens_per_s, 1) }));
    parts.push(fill(w.first, { value: number(stats.first_token_s, 2) }));
    parts.push(fill(w.cached, { cached: number(stats.cached_tokens), prompt: number(stats.prompt_tokens) }));
    return parts.join(" · ");
  }
  async function copy(id, button) {
    const answer = await octavo.read("text", { message: id });
    if (!answer) return;
    await navigator.clipboard.writeText(answer.text);
    button.replaceChildren(icon("tick"));
    setTimeout(() => button.replaceChildren(icon("copy")), 1200);
  }
  function versions({ id, versions: all }) {
    const place = all.indexOf(id);
    const arrow = (name, label, step) => {
      const message = all[place + step];
      const more = { "data-tool": name, disabled: message === undefined };
      const go = () => { octavo.focusOn = { message, name }; act("version", { message }); };
      return tool(name, label, go, more);
    };
    return el("span", { class: "versions", role: "group", "aria-label": w.versions },
      arrow("left", w.version_before, -1),
      el("span", { class: "count" }, `${number(place + 1)} / ${number(all.length)}`),
      arrow("right", w.version_after, 1));
  }
  function askRemove({ id, role, versions: all }) {
    octavo.question({
      title: role === "user" ? w.remove_said : w.remove_answer,
      body: [el("p", {}, all.length > 1 ? w.remove_version : w.remove_text)],
      yes: w.delete, danger: true, run: () => act("remove", { message: id }),
    });
  }
  function more(about, busy) {
    const { id, role } = about;
    const items = [["branch", w.branch, () => act("branch", { message: id })]];
    if (busy) return items;
    if (role === "assistant") {
      const compare = (compared) => act("compare", { message: id, compared });
      items.unshift(["compare", w.compare, () => octavo.askCompare(compare)]);
      if (about.text) items.unshift(["pen", w.edit_answer, () => octavo.rewrite.start(about)]);
    }
    return [...items, ["bin", w.delete, () => askRemove(about)]];
  }
  const isFull = ({ stats }, { limit }) => stats && limit && stats.prompt_tokens + stats.tokens >= limit;
  const canGoOn = (about, view) =>
    (about.text || about.thoughts) && ENDS[about.finish] && !isFull(about, view);

  // `row`: where it will stand; `isLast`: nothing comes below it; `busy`: something grows in this chat
  octavo.foot = (row, about, isLast, busy) => {
    const line = el("div", { class: "foot" });
    const { id, role } = about;
    if (about.error)
      line.append(el("p", { class: "oops", role: "alert" }, icon("alert"), el("span", {}, octavo.said(about.error))));
    if (about.streaming) {
      const [done, total] = about.reading ?? [0, 0];
      const said = fill(w.reading, { done: number(done), total: number(total) });
      if (total >= LONG) line.append(el("span", { class: "figures" }, said));
      return line;
    }
    if (about.files.length) line.append(octavo.fileList(about.files));
    const isAnswer = role === "assistant";
    const add = (name, label, run, props) =>
      line.append(tool(name, label, run, { "data-tool": name, ...props }));
    const addWide = (label, what, more) => {
      const onclick = () => act(what, { message: id });
      line.append(el("button", { type: "button", class: "wide" + more, "data-tool": what, onclick }, label));
    };
    if (about.beside && !busy) addWide(w.pick, "pick", " sure");
    if (about.versions.length > 1 && !about.beside) line.append(versions(about));
    if (about.text) add("copy", w.copy, ({ currentTarget }) => copy(id, currentTarget));
    if (isAnswer && about.text && octavo.speech) {
      const reading = octavo.speech.reading() === id;
      const toggle = () => octavo.speech.toggle(id, row);
      const more = { "data-tool": "speak", class: reading ? "tool is-on" : "tool" };
      add(reading ? "stop" : "speak", reading ? w.hush : w.speak, toggle, more);
    }
    if (!busy && !about.beside) {
      const again = () => { octavo.toEnd(); act("retry", { message: id }); };
      if (isAnswer || isLast) add("again", w.retry, again);
      if (!isAnswer) add("pen", w.edit_said, () => octavo.rewrite.start(about));
    }
    if (!about.beside) {
      const open = ({ currentTarget }) => octavo.menu(currentTarget, more(about, busy));
      add("more", w.more_acts, open, { "aria-haspopup": "menu", "aria-expanded": "false" });
    }
    if (isAnswer && (isLast || about.beside) && !busy && canGoOn(about, octavo.state.view))
      addWide(w.go_on, "resume", "");
    if (isAnswer) line.append(el("span", { class: "figures" }, figures(about, octavo.state)));
    return line;
  };
})();
