// What is written and not sent stays with its chat: across tabs, reloads and restarts of the browser. That of
// a private chat is in its tab alone. {text, files: what the server said of them}
const drafts = (() => {
  const KEPT_MS = 90 * 86_400_000;
  const PREFIX = "octavo.draft.";
  const unkept = new Map(); // chat -> what the browser does not keep: it lasts as long as this page
  let warned = false;
  const place = (chat) => (chat.startsWith("private-") ? "sessionStorage" : "localStorage");
  const read = (chat, where = place(chat)) => {
    try { return JSON.parse(octavo.kept(PREFIX + chat, where)) ?? {}; } catch { return {}; }
  };
  const get = (chat) => ({ text: "", files: [], ...(unkept.get(chat) ?? read(chat)) });
  function forget(chat) {
    unkept.delete(chat);
    octavo.keep(PREFIX + chat, null, place(chat));
  }
  function set(chat, { text, files }) {
    if (!text && !files.length) return forget(chat);
    const value = { text, files, at: Date.now() };
    if (octavo.keep(PREFIX + chat, JSON.stringify(value), place(chat))) return unkept.delete(chat);
    forget(chat); // what is there is older
    unkept.set(chat, value);
    if (!warned) octavo.toast(octavo.words.draft_unkept, { stay: true });
    warned = true;
  }
  // another tab has changed what is written in a chat
  const follow = (changed) => addEventListener("storage", ({ key }) => {
    if (key?.startsWith(PREFIX)) changed(key.slice(PREFIX.length));
  });
  // those of chats that are gone for good, and of long ago
  async function tidy() {
    const written = (where) =>
      octavo.keptKeys(where).filter((key) => key.startsWith(PREFIX)).map((key) => key.slice(PREFIX.length));
    const lasting = written("localStorage");
    for (const chat of lasting)
      if (Date.now() - (read(chat, "localStorage").at ?? 0) > KEPT_MS) octavo.keep(PREFIX + chat, null);
    const chats = [...lasting, ...written("sessionStorage"), octavo.rewrite.chat()].filter(Boolean);
    const { gone = [] } = chats.length ? await octavo.quietly("gone", { chats }) : {};
    for (const chat of gone) { forget(chat); octavo.rewrite.forget(chat); }
  }
  octavo.tidyDrafts = tidy;
  return { get, set, forget, follow, tidy };
})();
