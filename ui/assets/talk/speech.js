// Answers read aloud by the browser's own voice, where it has one; code is left out. Runs early.
(() => {
  const LONGEST = 200; // characters at once: some browsers fall silent in the middle of longer ones
  const voice = window.speechSynthesis;
  const CJK = /[\u3040-\u30ff\u3400-\u9fff]/;
  let reading = null; // the message that is read

  function words(row) {
    const copy = row.querySelector(".prose")?.cloneNode(true);
    const silent = copy?.querySelectorAll(".code_wrap, pre, button, .katex-html, annotation") ?? [];
    for (const node of silent) node.remove();
    const blocks = copy ? [...copy.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, td, th")] : [];
    const single = blocks.filter((block) => !block.querySelector("p, li"));
    return (single.length ? single : [copy]).map((node) => node?.textContent.trim() ?? "").filter(Boolean);
  }
  function* pieces(text) {
    let piece = "";
    for (const part of text.split(/(?<=[.!?;:,\s])\s+|(?<=[。！？；，])/)) {
      if (piece && piece.length + part.length > LONGEST) { yield piece; piece = ""; }
      piece += (piece && !CJK.test(part) ? " " : "") + part;
    }
    if (piece.trim()) yield piece;
  }
  function stop() {
    if (reading === null) return;
    reading = null;
    voice.cancel();
    octavo.set({});
  }
  function read(id, row) {
    stop();
    const all = words(row).flatMap((text) => [...pieces(text)]);
    if (!all.length) return;
    reading = id;
    const other = document.documentElement.lang === "zh-CN" ? "en" : navigator.language;
    for (const text of all) {
      const part = new SpeechSynthesisUtterance(text);
      part.lang = CJK.test(text) ? "zh-CN" : other;
      if (text === all.at(-1)) part.onend = part.onerror = () => { if (reading === id) stop(); };
      voice.speak(part);
    }
    octavo.set({});
  }
  let chatBefore = octavo.state.chat;
  octavo.use(({ chat }) => {
    if (chat !== chatBefore) stop();
    chatBefore = chat;
  });
  octavo.speech = voice && {
    reading: () => reading,
    toggle: (id, row) => (reading === id ? stop() : read(id, row)),
  };
})();
