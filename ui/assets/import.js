// Chats from a file: Octavo's own, ChatGPT's or Open WebUI's. It goes to the server as it is, which reads it.
// Runs early.
(() => {
  const { el, fill, number, words: w } = octavo;
  const MOST = 2 ** 31; // bytes
  const TYPES = ".json,.zip,application/json,application/zip";

  function send(file) {
    const call = new XMLHttpRequest();
    call.responseType = "json";
    const tell = (text) => octavo.toast(text, { stay: true });
    const at = (share) => fill(w.importing, { name: file.name, percent: number(100 * share) });
    call.upload.onprogress = ({ loaded, total }) => tell(at(loaded / total));
    call.upload.onload = () => tell(fill(w.import_sorting, { name: file.name }));
    call.onloadend = () => done(call.response ?? { error: w.unreachable });
    call.open("POST", "import");
    call.send(file);
    tell(at(0));
  }
  function done({ error, chats, messages, known, empty }) {
    if (error) return octavo.toast(error, { stay: true });
    const said = [fill(w.imported, { chats: number(chats), messages: number(messages) })];
    if (known) said.push(fill(w.import_known, { count: number(known) }));
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
