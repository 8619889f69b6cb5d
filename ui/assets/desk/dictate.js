// Speaking instead of typing, where the browser can turn speech into text. That is the browser's affair: some
// send the voice to their maker, and the button says so before it is pressed.
const dictation = (() => {
  const { tool, words: w } = octavo;
  const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
  const FAULTS = { "not-allowed": w.mic_denied, "audio-capture": w.mic_denied, network: w.mic_network };
  const label = { title: w.dictate_how, "aria-label": w.dictate, "aria-pressed": "false" };
  const button = tool("mic", w.dictate, toggle, { id: "dictate", ...label, hidden: !Recognition });
  let hearing = null;
  let write = () => {};
  let before = () => "";

  function toggle() {
    if (hearing) return hearing.stop();
    hearing = new Recognition();
    Object.assign(hearing, { lang: document.documentElement.lang, interimResults: true, continuous: true });
    const start = before();
    const gap = start && !/\s$/.test(start) ? " " : "";
    hearing.onresult = ({ results }) => {
      const heard = [...results].map(([{ transcript }]) => transcript);
      write(start + gap + heard.join(""));
    };
    hearing.onerror = ({ error }) => {
      if (!["aborted", "no-speech"].includes(error)) octavo.set({ notice: FAULTS[error] ?? w.mic_failed });
    };
    hearing.onend = () => { hearing = null; button.setAttribute("aria-pressed", "false"); };
    hearing.start();
    button.setAttribute("aria-pressed", "true");
  }
  const use = (read, then) => { before = read; write = then; };
  return { button, use, stop: () => hearing?.stop() };
})();
