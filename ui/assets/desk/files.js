// What is said of an attached file: how long it is, and which parts of it the model gets. Runs early.
(() => {
  const { el, icon, fill, number, words: w } = octavo;
  octavo.limits = { most: 20, largest: 100_000_000 }; // files with a message, bytes of one
  const run = ([first, last]) => (first === last ? number(first) : `${number(first)}–${number(last)}`);

  // "pages 3, 7–9 of 120"
  octavo.aboutFile = ({ unit, count, blank, size, chosen, parts }, withSize = false) => {
    const about = [];
    if (parts.length && !parts[0][0]) about.push(w.file_none);
    else if (parts.length) {
      const name = parts.length === 1 && parts[0][0] === parts[0][1] ? "part" : "parts";
      const runs = parts.map(run).join(", ");
      about.push(fill(w[`file_${unit}_${name}`], { runs, count: number(count) }));
    } else about.push(fill(w[`file_${unit}${count === 1 ? "_1" : ""}`], { count: number(count) }));
    if (blank) about.push(fill(w.file_blank, { blank: number(blank) }));
    if (chosen && !parts.length) about.push(w.file_whole);
    if (withSize && !chosen && size >= 1000) about.push(octavo.bytes(size));
    return about.join(" · ");
  };
  // the files of a message, as a line under it
  octavo.fileList = (files) => {
    const item = (file) =>
      el("li", {}, icon("file"), el("b", {}, file.name), el("span", {}, octavo.aboutFile(file)));
    return el("ul", { class: "given", "aria-label": w.files }, ...files.map(item));
  };
})();
