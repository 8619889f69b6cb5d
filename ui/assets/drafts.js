// What is written and not sent stays with its chat: across tabs, reloads and restarts of the browser. That of
// a private chat is in its tab alone. {text, files: what the server said of them}
const drafts = (() => {
  const KEPT_MS = 90 * 86_400_000;
  const PREFIX = "octavo.draft.";
  const box = (chat) => (chat.startsWith("private-") ? sessionStorage : localStorage);
  const read = (store, key) => {
    try { return JSON.parse(store.getItem(key)) ?? {}; } catch { return {}; }
  };
  const get = (chat) => ({ text: "", files: [], ...read(box(chat), PREFIX + chat) });
  const forget = (chat) => box(chat).removeItem(PREFIX + chat);
  function set(chat, { text, files }) {
    if (!text && !files.length) return forget(chat);
    try {
      box(chat).setItem(PREFIX + chat, JSON.stringify({ text, files, at: Date.now() }));
    } catch { /* the browser's room is full: it stays in this tab, as long as it is open */ }
  }
  // another tab has changed what is written in a chat
  const follow = (changed) => addEventListener("storage", ({ key }) => {
    if (key?.startsWith(PREFIX)) changed(key.slice(PREFIX.length));
  });
  // those of chats that are gone for good, and of long ago
  async function tidy() {
    const all = [...Object.keys(localStorage), ...Object.keys(sessionStorage)];
    const keys = all.filter((key) => key.startsWith(PREFIX));
    for (const key of keys.filter((name) => name in localStorage))
      if (Date.now() - (read(localStorage, key).at ?? 0) > KEPT_MS) localStorage.removeItem(key);
    const chats = keys.map((key) => key.slice(PREFIX.length)).filter(Boolean);
    if (chats.length) ((await octavo.quietly("gone", { chats })).gone ?? []).forEach(forget);
  }
  octavo.tidyDrafts = tidy;
  return { get, set, forget, follow, tidy };
})();
