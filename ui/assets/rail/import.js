// Chats from a file: Octavo's own, ChatGPT's or Open WebUI's. It goes to the server as it is, which reads it.
// Runs early.
(() => {
  const { el, fill, number, words: w } = octavo;
  const MOST = 2 ** 31; // bytes
  const LOOK_MS = 1000;
  const TYPES = ".json,.zip,application/json,application/zip";

  function send(file) {
    const call = new XMLHttpRequest();
    call.responseType = "json";
    const tell = (text, share, run) =>
      octavo.toast(fill(text, { name: file.name, percent: number(100 * share) }), { label: w.stop, run, stay: true });
    const sending = ({ loaded, total }) => tell(w.importing, loaded / total, () => call.abort());
    let isStopped = false;
    const stop = () => { isStopped = true; fetch("import", { method: "DELETE" }); };
    async function follow() { // until the answer is there
      const { share, undone } = await fetch("import").then((answer) => answer.json()).catch(() => ({ share: 0 }));
      if (call.readyState === XMLHttpRequest.DONE) return;
      if (isStopped || undone) tell(w.import_stopping, undone ? share : 0);
      else tell(w.import_sorting, share, stop);
      setTimeout(follow, LOOK_MS);
    }
    call.upload.onprogress = sending;
    call.upload.onload = follow;
    call.onload = () => done(call.response ?? { error: w.unreachable });
    call.onerror = () => done({ error: w.unreachable });
    call.open("POST", "import");
    call.send(file);
    sending({ loaded: 0, total: 1 });
  }
  function done({ error, chats, messages, known, empty }) {
    if (error) return octavo.toast(octavo.said(error), { stay: true });
    const count = number(known);
    const said = [fill(w.imported, { chats: number(chats), messages: number(messages) })];
    if (known && !chats) said[0] = fill(w.import_all_known, { count });
    else if (known) said.push(fill(w.import_known, { count }));
    if (empty) said.push(fill(w.import_skipped, { count: number(empty) }));
    octavo.toast(said.join(" "));
    octavo.browse({});
  }
  octavo.importChats = () => {
    const box = el("input", { type: "file", accept: TYPES, "aria-label": w.import });
    box.onchange = () => {
      const [file] = box.files;
      const large = { name: file?.name, size: octavo.bytes(file?.size ?? 0), most: octavo.bytes(MOST) };
      if (file && file.size > MOST) octavo.toast(fill(w.import_large, large), { stay: true });
      else if (file) send(file);
    };
    box.click();
  };
})();
