// A small plot of the last minutes: areas and lines over time, the newest at the right. Runs inside the page
// of memory. plot(label) -> { root, draw(now, series, most, words) }; series: [{ colour, fill, points: Map }].
const SPAN = 180; // seconds
const HIGH = 92;

function plot() {
  const canvas = el("canvas", { class: "plot", role: "img" });
  const top = el("span", { class: "top" });
  const root = el("div", { class: "plotted" }, top, canvas);
  const draw = (now, series, most, words, label) => {
    canvas.setAttribute("aria-label", words);
    top.textContent = label;
    const width = canvas.clientWidth || 300, scale = devicePixelRatio || 1, brush = canvas.getContext("2d");
    const [wide, high] = [Math.round(width * scale), Math.round(HIGH * scale)];
    if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    brush.clearRect(0, 0, width, HIGH);
    brush.strokeStyle = ink("line");
    brush.lineWidth = 1;
    brush.strokeRect(-1, 0.5, width + 2, HIGH - 1);
    const x = (at) => width * (1 - (now - at) / SPAN);
    const y = (value) => HIGH - 1 - (HIGH - 6) * Math.min(1, value / most);
    for (const { colour: paint, fill, value } of series) {
      brush.beginPath();
      brush.moveTo(x(now - SPAN), HIGH);
      for (let at = now - SPAN; at <= now; at += 1) brush.lineTo(x(at), y(value(at)));
      brush.lineTo(x(now), HIGH);
      if (fill) { brush.fillStyle = paint; brush.globalAlpha = fill; brush.fill(); }
      brush.globalAlpha = 1;
      brush.strokeStyle = paint;
      brush.lineWidth = 1.5;
      brush.stroke();
    }
  };
  return { root, draw };
}
