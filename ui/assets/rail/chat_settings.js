// A chat's own settings, in a sheet at the right: a preset to take them from, the model, the system prompt, how
// answers are sampled. What is left empty follows the program's settings. Each change is kept at once. Runs early.
(() => {
  const { el, tool, fill, number, words: w } = octavo;
  const NUMBERS = { // what is sampled by -> [least, most, step]
    temperature: [0, 5, 0.1], top_p: [0, 1, 0.05], top_k: [0, 1000, 1], min_p: [0, 1, 0.01],
    repetition_penalty: [0.1, 2, 0.05], max_tokens: [1, 1_000_000, 1], seed: [0, 4_294_967_295, 1],
  };
  const press = (label, onclick, more) => el("button", { type: "button", onclick, ...more }, label);
  const field = (label, control, note) =>
    el("label", { class: "field" }, el("span", {}, label), control, ...(note ? [el("small", {}, note)] : []));
  function choice(options, value, onchange) {
    const node = el("select", { onchange: ({ target }) => onchange(target.value) });
    node.append(...options.map(([id, name]) => el("option", { value: id, selected: id === value }, name)));
    return node;
  }

  // the models that are here, and which of them answers in the chat on screen; one of which nothing but its name
  // is known has no id
  octavo.modelsHere = async () => {
    const { status } = octavo.state;
    const found = await octavo.read("settings");
    if (!found) return null;
    const wanted = [found.model, found.usual, status.model]; // of this chat, of new ones, in memory
    const now = wanted.map((model) => found.models.find(({ id }) => id === model)).find(Boolean);
    const chosen = now ?? { id: "", name: status.name };
    return { here: now ? found.models : [chosen, ...found.models], chosen };
  };

  octavo.chatSettings = async () => {
    let { chat } = octavo.state;
    const body = el("div", { class: "chat-settings" });
    const oops = el("p", { class: "oops", role: "alert" });
    let sampling = {}, last = Promise.resolve();
    async function tell(what, more) {
      const answer = await octavo.quietly(what, { chat, ...more });
      oops.textContent = octavo.said(answer.error) ?? "";
      if (answer.error) oops.scrollIntoView({ block: "nearest" });
      if (answer.error) return null;
      if (answer.chat && answer.chat !== chat) { // settings for a chat to come make it
        octavo.carryDraft(answer.chat);
        octavo.show((chat = answer.chat), { push: false });
      }
      return answer;
    }
    // one after the other: the first may make the chat
    const inTurn = (what, more = {}) => (last = last.then(() => tell(what, more)));
    const change = (more) => inTurn("change_settings", { change: more }); // the boxes show it already
    const send = async (what, more) => { const answer = await inTurn(what, more); if (answer) draw(answer); };

    function presets({ presets: all, preset }) {
      const mine = all.find(({ name }) => name === preset);
      const options = [["", w.no_preset], ...all.map(({ id, name }) => [id, name])];
      const take = (id) => (id ? send("take_preset", { preset: id }) : send("reset_settings"));
      const away = () => send("delete_preset", { preset: mine.id });
      const select = choice(options, mine?.id ?? "", take);
      select.setAttribute("aria-label", w.preset);
      const line = el("div", { class: "line" }, select);
      if (mine) line.append(tool("bin", fill(w.delete_preset, { name: mine.name }), away, { id: "delete-preset" }));
      return el("div", { class: "field" }, el("span", { "aria-hidden": true }, w.preset), line);
    }
    function amount(name, usual) {
      const [min, max, step] = NUMBERS[name];
      const placeholder = usual === null ? w["usual_" + name] : number(usual, 2);
      const box = el("input", { type: "number", inputmode: "decimal", min, max, step, value: sampling[name] ?? "", placeholder });
      box.onchange = () => {
        const { [name]: _, ...rest } = sampling;
        sampling = box.value === "" ? rest : { ...rest, [name]: Number(box.value) };
        change({ sampling });
      };
      return field(w["set_" + name], box);
    }
    function keep({ preset }) {
      const name = el("input", { value: preset, placeholder: w.preset_name, "aria-label": w.preset_name, maxlength: 100 });
      const save = () => send("keep_preset", { name: name.value });
      name.onkeydown = ({ key }) => { if (key === "Enter") save(); };
      return el("div", { class: "line" }, name, press(w.keep_preset, save));
    }
    function draw(found) {
      const { system_prompt: text, usual_prompt: usual, models, model } = found;
      const held = document.activeElement?.closest(".field")?.querySelector("span")?.textContent;
      sampling = found.sampling;
      const prompt = el("textarea", { rows: 6, placeholder: usual || w.no_prompt });
      prompt.value = text;
      prompt.onchange = () => change({ system_prompt: prompt.value });
      const options = [["", w.any_model], ...models.map(({ id, name }) => [id, name])];
      if (model && !models.some(({ id }) => id === model)) options.push([model, model]);
      body.replaceChildren(
        presets(found),
        field(w.set_model, choice(options, model, (id) => change({ model: id })), w.set_model_text),
        field(w.set_prompt, prompt),
        el("div", { class: "numbers" }, ...Object.keys(NUMBERS).map((name) => amount(name, found.usual[name]))),
        el("p", {}, w.settings_count),
        keep(found),
        el("div", { class: "choices" }, press(w.reset_settings, () => send("reset_settings"), { id: "reset-settings" })),
      );
      for (const each of body.querySelectorAll(".field"))
        if (held === each.querySelector("span").textContent) each.querySelector("select, input, textarea").focus();
    }
    const found = await octavo.read("settings");
    if (!found) return;
    draw(found);
    octavo.sheet("chat-sheet", w.chat_settings, oops, body)?.classList.add("at-side");
  };
  octavo.icons.sliders = "M6 4v9M6 17v3M12 4v3M12 11v9M18 4v11M18 19v1M4 13h4M10 9h4M16 17h4"; // on a square of 24
})();
