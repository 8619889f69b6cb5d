// The block map: a canvas with a cell for each block, in its chat's colour. Runs inside the page of memory.
// blockMap(describe) -> { root, draw(pool) }; `describe(pool, block)` says in words what a cell is.
const STATES = ["free", "kept", "cached", "used"]; // as engine.BlockPool numbers them
const GOLDEN = 137.508; // degrees: any number of chats in hues that lie apart
const hue = (number) => (168 + number * GOLDEN) % 360;
const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";
const colour = (number) => `oklch(${isDark() ? 0.74 : 0.6} 0.105 ${hue(number)})`;
const HEIGHT = 340, LEAST = 5, MOST = 22; // pixels: of the map, and from one cell to the next

function unpack(pool) {
  const owners = new Uint16Array(decode(pool.owners).buffer);
  return { ...pool, states: decode(pool.states), owners, sharers: decode(pool.sharers) };
}
function blockMap(describe) {
  const canvas = el("canvas", { class: "map", role: "img", tabindex: 0 });
  const said = el("p", { class: "said", "aria-live": "polite" }, w.mem_hint);
  const root = el("div", { class: "blockmap" }, canvas, said);
  let pool = null, columns = 1, pitch = MOST, at = -1;

  function measure() {
    const width = canvas.clientWidth || 600, count = pool.states.length;
    pitch = Math.floor(Math.sqrt((width * HEIGHT) / count));
    pitch = Math.min(MOST, Math.max(LEAST, pitch));
    columns = Math.max(1, Math.floor(width / pitch));
    const height = Math.ceil(count / columns) * pitch, scale = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== wide || canvas.height !== high) {
      Object.assign(canvas, { width: wide, height: high });
      canvas.style.height = `${height}px`;
    }
    return scale;
  }
  function paint() {
    if (!pool || !canvas.isConnected) return;
    const scale = measure(), brush = canvas.getContext("2d"), gap = pitch > 8 ? 2 : 1, size = pitch - gap;
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    brush.clearRect(0, 0, canvas.width, canvas.height);
    const paints = pool.groups.map((_, number) => colour(number));
    const [blank, outline, faint] = [ink("line"), ink("ink"), ink("faint")];
    const place = (block) => [(block % columns) * pitch, Math.floor(block / columns) * pitch];
    const byLook = new Map(); // cells of one look are drawn in one go
    pool.states.forEach((state, block) => {
      const look = state < 2 ? state : state * 70_000 + pool.owners[block];
      byLook.has(look) ? byLook.get(look).push(block) : byLook.set(look, [block]);
    });
    for (const [look, blocks] of byLook) {
      const owner = look < 2 ? 0 : look % 70_000, name = STATES[pool.states[blocks[0]]];
      brush.fillStyle = look < 2 ? blank : owner ? paints[owner - 1] : faint;
      brush.globalAlpha = name === "cached" ? 0.5 : 1;
      brush.beginPath();
      for (const block of blocks) {
        const [x, y] = place(block);
        if (name === "kept") brush.rect(x + size / 2 - 1, y + size / 2 - 1, 2, 2);
        else brush.rect(x, y, size, size);
      }
      brush.fill();
    }
    brush.globalAlpha = 1;
    brush.strokeStyle = outline;
    brush.lineWidth = pitch > 8 ? 1.5 : 1;
    brush.beginPath();
    pool.sharers.forEach((count, block) => {
      const [x, y] = place(block);
      if (count > 1) brush.rect(x + 0.5, y + 0.5, size - 1, size - 1);
    });
    brush.stroke();
    if (at < 0) return;
    const [x, y] = place(at);
    brush.strokeStyle = ink("cloth");
    brush.lineWidth = 2;
    brush.strokeRect(x - 1, y - 1, size + 2, size + 2);
  }
  function point(block) {
    const next = pool && block >= 0 && block < pool.states.length ? block : -1;
    if (next === at) return;
    at = next;
    said.textContent = at < 0 ? w.mem_hint : describe(pool, at);
    paint();
  }
  canvas.onmousemove = ({ offsetX, offsetY }) => {
    const column = Math.floor(offsetX / pitch);
    point(column < columns ? Math.floor(offsetY / pitch) * columns + column : -1);
  };
  canvas.onmouseleave = canvas.onblur = () => point(-1);
  canvas.onkeydown = (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    if (!(event.key in steps) || !pool) return;
    event.preventDefault();
    point(Math.min(pool.states.length - 1, Math.max(0, at + (at < 0 ? 1 : steps[event.key]))));
  };
  addEventListener("resize", paint);
  let theme = "";
  octavo.use(() => {
    if (theme !== (theme = document.documentElement.dataset.theme)) paint();
  });
  const draw = (next, words) => {
    pool = unpack(next);
    canvas.setAttribute("aria-label", words);
    if (at >= 0) said.textContent = describe(pool, at);
    paint();
  };
  return { root, draw };
}
