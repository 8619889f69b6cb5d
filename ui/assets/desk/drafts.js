// What is written and not sent stays with its chat: across tabs, reloads and restarts of the browser. That of
// a private chat is in the page's memory alone. {text, files: what the server said of them}
const drafts = (() => {
  const KEPT_MS = 90 * 86_400_000;
  const PREFIX = "octavo.draft.";
  const unkept = new Map(); // chat -> what the browser can't or may not keep: it lasts as long as this page
  let warned = false;
  const read = (chat) => {
    try { return JSON.parse(octavo.kept(PREFIX + chat)) ?? {}; } catch { return {}; }
  };
  const get = (chat) => ({ text: "", files: [], ...(unkept.get(chat) ?? read(chat)) });
  function forget(chat) {
    unkept.delete(chat);
    octavo.keep(PREFIX + chat, null);
  }
  octavo.warnUnkept = () => {
    if (!warned) octavo.toast(octavo.words.draft_unkept, { stay: true });
    warned = true;
  };
  function set(chat, { text, files }) {
    if (!text && !files.length) return forget(chat);
    const value = { text, files, at: Date.now() };
    const isPrivate = octavo.isPrivate(chat);
    if (!isPrivate && octavo.keep(PREFIX + chat, JSON.stringify(value))) return unkept.delete(chat);
    forget(chat); // what is there is older
    unkept.set(chat, value);
    if (!isPrivate) octavo.warnUnkept();
  }
  // another tab has changed what is written in a chat
  const follow = (changed) => addEventListener("storage", ({ key }) => {
    if (key?.startsWith(PREFIX)) changed(key.slice(PREFIX.length));
  });
  // those of chats that are gone for good, and of long ago
  async function tidy() {
    const keys = octavo.keptKeys().filter((key) => key.startsWith(PREFIX));
    const lasting = keys.map((key) => key.slice(PREFIX.length));
    for (const chat of lasting)
      if (Date.now() - (read(chat).at ?? 0) > KEPT_MS) octavo.keep(PREFIX + chat, null);
    const chats = [...lasting, ...unkept.keys(), octavo.rewrite.chat()].filter(Boolean);
    const { gone = [] } = chats.length ? await octavo.quietly("gone", { chats }) : {};
    for (const chat of gone) { forget(chat); octavo.rewrite.forget(chat); }
  }
  octavo.tidyDrafts = tidy;
  return { get, set, forget, follow, tidy };
})();
