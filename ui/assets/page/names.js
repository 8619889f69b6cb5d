// Nothing that was said takes a name on this page. An element with a name or id can stand in for what scripts
// ask the document or the window for (<form name=querySelector>); so these attributes are taken off before
// any other script runs; only diagrams keep the ids that they are drawn by. Through the prototype, since a
// form's own functions can be taken by its fields.
(() => {
  const { querySelectorAll, getAttribute, removeAttribute, matches, closest } = Element.prototype;
  const find = Document.prototype.querySelectorAll;
  const SAID = "#talk .prose";
  const NAMED = `${SAID} :is([name], [id])`;
  const isOurs = (id) =>
    [...find.call(document, `#${CSS.escape(id)}`)].some((node) => !closest.call(node, SAID));
  const isDrawing = (node, id) => node instanceof SVGElement || /^d?mermaid-\d/.test(id);
  const bare = (node) => {
    removeAttribute.call(node, "name");
    const id = getAttribute.call(node, "id");
    if (id !== null && (!isDrawing(node, id) || isOurs(id))) removeAttribute.call(node, "id");
  };
  const strip = (node) => {
    if (matches.call(node, NAMED)) bare(node);
    querySelectorAll.call(node, NAMED).forEach(bare);
  };
  const changes = new MutationObserver((records) => {
    const added = records.flatMap(({ addedNodes }) => [...addedNodes]);
    for (const node of added) if (node instanceof Element) strip(node);
  });
  changes.observe(document, { subtree: true, childList: true });
})();
