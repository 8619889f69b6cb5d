// What is asked before several answers are made to one question: how many, and what makes them differ. Runs
// early.
(() => {
  const { el, number, words: w } = octavo;
  const MOST = 4; // answers side by side
  const choice = (type, name, value, label, checked) =>
    el("label", {}, el("input", { type, name, value, checked }), el("span", {}, label));
  const group = (label, nodes, more = {}) => el("fieldset", more, el("legend", {}, label), ...nodes);
  const chosen = (form, name) => [...form.querySelectorAll(`[name=${name}]:checked`)].map(({ value }) => value);

  // `run` is given what the server calls a comparison
  octavo.askCompare = async (run) => {
    const { here = [] } = (await octavo.modelsHere()) ?? {};
    const counts = [2, 3, 4].map((count) => choice("radio", "count", count, number(count), count === 2));
    const kinds = [["chance", w.by_chance], ["heat", w.by_heat]];
    if (here.length > 1) kinds.push(["model", w.by_model]);
    const howMany = group(w.how_many, counts);
    const boxes = here.map(({ id, name }, place) => choice("checkbox", "model", id, name, place < 2));
    const whose = group(w.by_models, boxes, { hidden: true });
    const how = group(w.differ, kinds.map(([id, label]) => choice("radio", "kind", id, label, id === "chance")));
    const form = el("form", { class: "compare" }, how, howMany, whose);
    form.onchange = ({ target }) => {
      const byModel = chosen(form, "kind")[0] === "model", count = chosen(form, "model").length;
      if (target.name === "model" && (count < 2 || count > MOST)) target.checked = !target.checked;
      howMany.hidden = byModel;
      whose.hidden = !byModel;
    };
    octavo.question({
      title: w.compare, body: [form], yes: w.start,
      run: () => {
        const [kind] = chosen(form, "kind");
        const asked = kind === "model" ? chosen(form, "model") : [];
        const answers = asked.length || Number(chosen(form, "count")[0]);
        octavo.toEnd();
        run({ answers, by_heat: kind === "heat", models: asked });
      },
    });
  };
})();
