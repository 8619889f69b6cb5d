// What the page of models shares: its line to the server, sizes and times in words, and the questions it asks
// in front of the page: delete, how a model is used. Only text nodes are made of what comes from outside.
const { el, tool, icon, fill, number, bytes, words: w } = octavo;
const ask = (name, data) => octavo.ask(server, name, data);

const span = (seconds) => {
  const [word, length] = seconds < 90 ? ["seconds", 1] : seconds < 5400 ? ["minutes", 60] : ["hours", 3600];
  return fill(w["models_" + word], { count: number(Math.max(1, seconds / length), length === 3600 ? 1 : 0) });
};
const many = (count) => {
  const [unit, size] = count >= 999.5e6 ? [" B", 1e9] : count >= 1e6 ? [" M", 1e6] : ["", 1];
  return `${number(count / size, unit === " B" ? 1 : 0)}${unit}`;
};
const QUIET = { type: "button", class: "quiet" };
const press = (label, onclick, more = {}) => el("button", { ...QUIET, onclick, ...more }, label);

function askRemove(row, variant, remove) {
  const { yours } = variant;
  const facts = { format: variant.format, size: bytes(variant.bytes), path: variant.source };
  octavo.question({
    title: fill(yours ? w.models_forget_title : w.models_delete_title, { name: row.name }),
    body: [el("p", {}, fill(yours ? w.models_forget_text : w.models_delete_text, facts))],
    yes: yours ? w.models_forget : w.models_delete,
    danger: true,
    run: () => { remove(variant.key); },
  });
}

// how a model is used: what is empty counts as the catalogue has it, which stands there in grey
const SAMPLING = [ // name, how a number of it is typed
  ["temperature", "decimal"], ["top_p", "decimal"], ["top_k", "numeric"],
  ["min_p", "decimal"], ["repetition_penalty", "decimal"], ["max_tokens", "numeric"],
];
const GROUPED = { // 8,192 and 1,440.5, but 0,125 is an eighth
  numeric: [/^\d{1,3}([\s,.]\d{3})+$/, /\D/g], decimal: [/^[1-9]\d{0,2}([\s,]\d{3})+(\.\d*)?$/, /[\s,]/g],
};
const asNumber = (text, mode) => {
  const [form, between] = GROUPED[mode];
  return Number(form.test(text.trim()) ? text.replace(between, "") : text.replace(",", "."));
};
// a sentence that calls things as the file does
const inLabels = (sentence) =>
  [["context_length", w.models_context_field], ...SAMPLING.map(([name]) => [name, w["sampling_" + name]])]
    .reduce((text, [name, label]) => text.replace(new RegExp(`(sampling\\.)?\\b${name}\\b`), `“${label}”`), sentence);
async function askUsage(row, tell) {
  const usage = await ask("act", { do: "usage", id: row.id });
  if (usage.error) return tell(usage.error);
  const field = (label, box) => el("label", {}, el("span", {}, label), box);
  const prompt = el("textarea", { rows: 3, maxlength: 100000 });
  prompt.value = usage.system_prompt;
  const box = (value, base, inputmode) =>
    el("input", { type: "text", inputmode, value: value ?? "", placeholder: base ?? "" });
  const context = box(usage.context || "", row.context ? number(row.context) : "", "numeric");
  const boxes = SAMPLING.map(([name, mode]) => [name, box(usage.sampling[name], usage.base[name], mode)]);
  const wrong = el("p", { class: "wrong", role: "alert", hidden: true });
  const complain = (text) => { wrong.textContent = text; wrong.hidden = false; return false; };
  const run = async () => {
    const sampling = { ...usage.sampling };
    for (const [name, { value, inputMode }] of boxes) {
      if (value.trim() === "") delete sampling[name];
      else sampling[name] = asNumber(value, inputMode);
    }
    const typed = [context, ...boxes.map(([, each]) => each)];
    const bad = typed.find(({ value, inputMode }) => isNaN(asNumber(value, inputMode)));
    if (bad) return complain(fill(w.models_not_number, { text: bad.value }));
    const length = asNumber(context.value, "numeric"); // 0: nothing was typed
    const changes = { system_prompt: prompt.value.trim(), context: length, sampling };
    const answer = await ask("act", { do: "use", id: row.id, changes });
    if (answer.error) return complain(inLabels(octavo.said(answer.error.replace(/^model '[^']*': /, ""))));
  };
  const fields = boxes.map(([name, each]) => field(w["sampling_" + name], each));
  octavo.question({
    title: fill(w.models_adjust_title, { name: row.name }),
    body: [
      el("p", {}, w.models_adjust_text), field(w.models_prompt, prompt),
      field(w.models_context_field, context), el("div", { class: "pairs" }, ...fields), wrong,
    ],
    yes: w.models_save,
    run,
  }).classList.add("usage");
}
