// Files that go with the message that is written: picked, dropped or pasted. Each is sent to the server at
// once, which reads it and says what it is; what can't be read is said, and nothing else is lost.
const attachments = (() => {
  const { el, tool, icon, number, fill, words: w } = octavo;
  const { most, largest } = octavo.limits;
  const strip = el("ul", { class: "files", "aria-label": w.files, hidden: true });
  const picker = el("input", { type: "file", multiple: true, hidden: true, onchange: picked });
  const button = tool("clip", w.attach, () => picker.click(), { id: "attach" });
  // {file: as the server describes it}, or {chat, name, aborter} while it is on its way
  let entries = [];
  let elsewhere = []; // on their way for chats that are not on screen
  let changed = () => {};
  let sending = Promise.resolve();

  const files = () => entries.filter(({ file }) => file).map(({ file }) => file);
  const isBusy = () => entries.some(({ file }) => !file);
  let refused = []; // of those that were given last, why
  const say = (sentence) => {
    refused.push(sentence);
    octavo.set({ notice: refused.join("\n") });
  };

  function add(list) {
    if (!list.length) return;
    refused = [];
    if (entries.length + list.length > most)
      return say(fill(w.files_many, { count: number(entries.length + list.length), most }));
    const large = list.filter(({ size }) => size > largest);
    for (const { name, size } of large)
      say(fill(w.file_large, { name, size: octavo.bytes(size), most: octavo.bytes(largest) }));
    for (const file of list) if (!large.includes(file)) send(file);
    draw();
  }
  function send(data) {
    const entry = { chat: octavo.state.chat, name: data.name, aborter: new AbortController() };
    entries.push(entry);
    sending = sending.then(async () => {
      if (entry.aborter.signal.aborted) return;
      const query = new URLSearchParams({ chat: entry.chat, name: data.name });
      const file = await upload(`/files?${query}`, data, entry.aborter.signal);
      if (elsewhere.includes(entry)) return arrive(entry, file);
      if (!entries.includes(entry)) return; // taken back
      if (file.error) {
        entries.splice(entries.indexOf(entry), 1);
        if (!entry.aborter.signal.aborted) say(file.error);
      } else entry.file = file;
      draw();
      changed();
    });
  }
  function arrive(entry, file) { // for a chat that is not on screen: with what is written there
    elsewhere.splice(elsewhere.indexOf(entry), 1);
    if (file.error) return say(file.error);
    const { text, files } = drafts.get(entry.chat);
    drafts.set(entry.chat, { text, files: [...files, file] });
  }
  async function upload(url, body, signal) {
    try {
      const answer = await fetch(url, { method: "POST", body, signal });
      return answer.status === 413 ? { error: await answer.text() } : await answer.json();
    } catch {
      return { error: fill(w.file_failed, { name: body.name }) }; // a folder, or the server is gone
    }
  }
  function remove(entry) {
    entry.aborter?.abort();
    entries.splice(entries.indexOf(entry), 1);
    if (entry.file) octavo.quietly("drop", { chat: octavo.state.chat, file: entry.file.id });
    draw();
    changed();
  }
  function draw() {
    strip.hidden = !entries.length;
    strip.replaceChildren(...entries.map((entry) => {
      const name = entry.file?.name ?? entry.name;
      const about = entry.file ? octavo.aboutFile(entry.file, true) : w.file_reading;
      const away = tool("close", `${w.file_remove}: ${name}`, () => remove(entry));
      const sign = entry.file ? icon("file") : el("span", { class: "spin" });
      return el("li", { title: `${name} · ${about}` }, sign, el("b", {}, name), el("span", {}, about), away);
    }));
  }
  // what is chosen of each, as the server would do it now
  function chosen(list) {
    for (const entry of entries) {
      const found = list.find(({ id }) => id === entry.file?.id);
      if (found) entry.file = found;
    }
    draw();
  }
  function put(list, chat) {
    const coming = [...entries, ...elsewhere].filter(({ file }) => !file);
    entries = [...list.map((file) => ({ file })), ...coming.filter((entry) => entry.chat === chat)];
    elsewhere = coming.filter((entry) => entry.chat !== chat);
    draw();
  }
  function carry(chat, to) { // what was on its way for a chat is for another
    for (const entry of [...entries, ...elsewhere]) if (!entry.file && entry.chat === chat) entry.chat = to;
  }

  function picked() {
    add([...picker.files]);
    picker.value = ""; // the same file may be picked again
  }
  function pasted(event) {
    const { files: given, types } = event.clipboardData;
    if (!given.length || types.includes("text/plain")) return; // copied text brings its picture along
    event.preventDefault();
    add([...given]);
  }
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
  const over = (is) => document.documentElement.classList.toggle("is-dropping", is);
  addEventListener("dragover", (event) => {
    if (!hasFiles(event) || octavo.state.page !== "chat") return;
    event.preventDefault();
    over(true);
  });
  addEventListener("dragleave", ({ relatedTarget }) => { if (!relatedTarget) over(false); });
  addEventListener("drop", (event) => {
    over(false);
    if (!hasFiles(event) || octavo.state.page !== "chat") return;
    event.preventDefault();
    event.stopPropagation();
    add([...event.dataTransfer.files]);
  }, true);
  const use = (then) => { changed = then; };
  return { strip, picker, button, files, isBusy, put, carry, chosen, pasted, use };
})();
