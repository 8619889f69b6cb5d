// What app and engine say, in the page's language. They say it in plain English; each of their sentences is a
// template with {holes} that has a Chinese form. Whole sentences are found, several in a row, and those inside
// of others; what nobody knows stays as it is. Runs early.
(() => {
  const LONGEST = 3000, MOST_ENDS = 40; // characters, and ends of sentences, of what may be a sentence or several
  const MOST_KEPT = 1000; // sentences remembered
  const HOLE = /\{(\w+)\}/;
  const known = new Map(); // sentence -> {text, sure}
  let templates = null;

  const compiled = ([english, chinese]) => {
    const parts = english.trim().split(HOLE); // what stands there, a hole's name, what stands there, ...
    const fixed = parts.filter((_, at) => at % 2 === 0);
    return { fixed, names: parts.filter((_, at) => at % 2), chinese, length: fixed.join("").length };
  };
  // what the holes hold, each as short as can be; null where the text is not made by this template
  function holes({ fixed }, text) {
    const last = fixed.length - 1;
    if (!last) return text === fixed[0] ? [] : null;
    if (!text.startsWith(fixed[0])) return null;
    const found = [];
    let at = fixed[0].length;
    for (const part of fixed.slice(1, last)) {
      const next = text.indexOf(part, at);
      if (next < 0) return null;
      found.push(text.slice(at, next));
      at = next + part.length;
    }
    const end = text.length - fixed[last].length;
    if (end < at || !text.endsWith(fixed[last])) return null;
    return [...found, text.slice(at, end)];
  }
  // of all ways to take a text apart the one that knows most of its letters; `sure`: how many
  function translated(text) {
    text = text.trim();
    if (known.has(text)) return known.get(text);
    let best = { text, sure: 0 };
    const small = text.charAt(0).toLowerCase() + text.slice(1); // a piece may begin a sentence
    for (const template of templates) {
      const found = holes(template, text) ?? (small === text ? null : holes(template, small));
      if (!found) continue;
      const inside = found.map(translated);
      const sure = inside.reduce((sum, each) => sum + each.sure, template.length);
      if (sure <= best.sure) continue;
      const values = Object.fromEntries(template.names.map((name, at) => [name, inside[at].text]));
      best = { text: octavo.fill(template.chinese, values), sure };
    }
    const ends = [...text.matchAll(/[.!?:] /g)];
    for (const { index } of ends.length > MOST_ENDS ? [] : ends) {
      const [left, right] = [translated(text.slice(0, index + 1)), translated(text.slice(index + 2))];
      const sure = left.sure + right.sure;
      if (sure > best.sure) best = { text: left.text + (left.sure ? "" : " ") + right.text, sure };
    }
    known.set(text, best);
    return best;
  }
  octavo.said = (sentence) => {
    if (!sentence || sentence.length > LONGEST || document.documentElement.lang === "en") return sentence;
    const table = () => JSON.parse(document.getElementById("octavo-sentences").textContent);
    templates ??= Object.entries(table()).map(compiled);
    if (known.size > MOST_KEPT) known.clear();
    return translated(sentence).text;
  };
})();
