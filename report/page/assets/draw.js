/* ---------- marks on axes, and colour ---------- */
const short = (x) => (Math.abs(x) >= 1e6 ? `${tick(x / 1e6)}M` : Math.abs(x) >= 1e4 ? `${tick(x / 1e3)}k` : tick(x)); // on an axis
const about = (ms) => `≈ ${time(+ms.toPrecision(2))}`; // gaps in the timeline are accurate to 17 %

let inks = new Map();
const probe = document.body.appendChild(document.createElement('i'));
probe.hidden = true;
function ink(name) { // a colour of style.css as rgb() in the current theme
  if (!inks.has(name)) { probe.style.color = `var(--${name})`; inks.set(name, getComputedStyle(probe).color); }
  return inks.get(name);
}
const rgb = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
function mix(from, to, t) { const a = rgb(from), b = rgb(to); return `rgb(${a.map((v, k) => Math.round(v + (b[k] - v) * t)).join(',')})`; }
const PALETTE = 6; // colours of runs in style.css
const runInk = (run) => ink(`run${run.k % PALETTE}`);
const dashOf = (run) => (run.k ? `dash${1 + (run.k - 1) % 3}` : '');
function loadInk(l) { // faint is low load, strong is high load
  const k = `run${l.run.k % PALETTE}`, n = l.run.levels.length;
  return mix(ink(`${k}-low`), ink(`${k}-high`), n > 1 ? l.i / (n - 1) : 1);
}
/* The style of a statistic in the charts of one run: p50, p95, p99 and good differ in dash and colour. */
const STYLES = { p50: ['', 's-p50'], served: ['', 's-p50'], p95: ['dash1', 's-p95'], p99: ['dash2', 's-p99'], good: ['dash1', 's-good'] };
function styleOf(name) { const [dash, ink] = STYLES[name] || STYLES[/^p\d/.test(name) ? 'p95' : 'p50']; return { dash, ink }; }
const swatch = (colour, label) => `<span><span class="swatch" data-css="background:${colour}"></span> ${label}</span>`;

/* ---------- scales and axes ---------- */
function linear(d0, d1, r0, r1) {
  const f = (v) => r0 + (v - d0) / (d1 - d0 || 1) * (r1 - r0);
  f.back = (p) => d0 + (p - r0) / (r1 - r0) * (d1 - d0);
  f.ticks = (n) => {
    if (!(d1 > d0)) return [d0];
    const raw = (d1 - d0) / Math.max(n, 1), p = 10 ** Math.floor(Math.log10(raw)), step = p * [1, 2, 5, 10].find((k) => k * p >= raw * 0.999);
    const from = Math.ceil(d0 / step - 1e-9);
    return Array.from({ length: Math.floor(d1 / step + 1e-9) - from + 1 }, (_, i) => (from + i) * step);
  };
  return f;
}
function log(d0, d1, r0, r1) {
  const g = linear(Math.log(d0), Math.log(d1), r0, r1), f = (v) => g(Math.log(Math.max(v, d0)));
  f.back = (p) => Math.exp(g.back(p));
  f.ticks = (n) => {
    const round = [[1, 2, 5], [1, 3], [1]].map((ks) => decades(d0, d1, ks)).find((t) => t.length <= n) || decades(d0, d1, [1]);
    return round.length > 1 ? round : linear(d0, d1, r0, r1).ticks(Math.min(n, 4)); // all ticks fall into one step
  };
  return f;
}
function decades(lo, hi, ks) {
  const out = [];
  for (let p = 10 ** Math.floor(Math.log10(lo)); p <= hi; p *= 10) for (const k of ks) if (k * p >= lo * 0.999 && k * p <= hi * 1.001) out.push(k * p);
  return out;
}
function above(v) { // a round number at or above v
  if (!(v > 0)) return 1;
  const p = 10 ** Math.floor(Math.log10(v));
  return p * [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((k) => k * p >= v * 0.9999);
}
const scaleFor = (isLog) => (isLog ? log : linear);
const most = (values, least = 0) => values.reduce((m, v) => (v > m ? v : m), least);
const fewest = (values) => values.reduce((m, v) => (v < m ? v : m), Infinity);
function range(values, isLog) {
  const v = values.filter((x) => x > 0);
  if (!v.length) return isLog ? [1, 10] : [0, 1];
  return isLog ? [fewest(v) * 0.8, most(v) * 1.25] : [0, above(most(v) * 1.02)];
}

const r1 = (v) => Math.round(v * 10) / 10;
/* A line through points. The line breaks at a missing value, because only measured values are drawn. */
function path(points, x, y) {
  let d = '', pen = false;
  for (const [a, b] of points) {
    if (a == null || b == null) pen = false; else { d += `${pen ? 'L' : 'M'}${r1(x(a))} ${r1(y(b))}`; pen = true; }
  }
  return d;
}
function cloud(points, x, y, colour, size) { // many dots as one path
  return `<path class="cloud" d="${each(points, ([a, b]) => `M${r1(x(a))} ${r1(y(b))}h0`)}" data-css="stroke:${colour};stroke-width:${size}"/>`;
}
function area(points, x, y) { // filled between two values of each point
  const whole = points.filter((p) => p[1] != null && p[2] != null);
  if (whole.length < 2) return '';
  return `${path(whole.map((p) => [p[0], p[2]]), x, y)}${path([...whole].reverse(), x, y).replace('M', 'L')}Z`;
}
const crossMark = (x, y, r) => `<path class="cross" d="M${r1(x - r)} ${r1(y - r)}l${2 * r} ${2 * r}M${r1(x - r)} ${r1(y + r)}l${2 * r} ${-2 * r}"/>`;
const line = (x1, y1, x2, y2, cls) => `<line class="${cls}" x1="${r1(x1)}" y1="${r1(y1)}" x2="${r1(x2)}" y2="${r1(y2)}"/>`;
const text = (x, y, s, cls = '', anchor = 'start', css = '') => `<text x="${r1(x)}" y="${r1(y)}" class="${cls}" text-anchor="${anchor}"${css && ` data-css="${css}"`}>${esc(s)}</text>`;
const curve = (d, colour, cls = '', opacity = 1) => `<path class="curve ${cls}" d="${d}" data-css="stroke:${colour};opacity:${opacity}"/>`;
const svg = (w, h, body) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" aria-hidden="true">${body}<g class="mark"></g></svg>`;

/* Grid lines and labels. Units are at the end of each axis, never rotated. */
function axes({ x, y, left, right, upper, lower, xs, ys, xUnit = '', yUnit = '', yText = short, xText = short }) {
  const sane = (ts, f, gap) => { let last = -1e9; return ts.filter((t) => { const at = f(t), far = Math.abs(at - last) >= gap; if (far) last = at; return far; }); };
  return each(sane(ys, y, 11), (t) => line(left, y(t), right, y(t), 'grid-line') + text(left - 6, y(t) + 4, yText(t), '', 'end'))
    + line(left, lower, right, lower, 'axis-line')
    + each(sane(xs, x, 6 + 6 * most(xs.map((t) => xText(t).length))), (t) => line(x(t), lower, x(t), lower + 4, 'axis-line') + text(x(t), lower + 16, xText(t), '', 'middle'))
    + text(0, upper - 10, yUnit, 'unit') + text(right, lower + 31, xUnit, 'unit', 'end');
}
/* Labels at the ends of lines, moved apart so that they do not overlap. */
function endLabels(labels, upper, lower, width) {
  const fits = (one) => one.x + 6 * one.text.length < width;
  const list = labels.map((one) => ({ ...one, y: one.y - (fits(one) ? 0 : 13) })).sort((p, q) => p.y - q.y); // a label that does not fit goes above its line
  list.forEach((one, i) => { if (i) one.y = Math.max(one.y, list[i - 1].y + 11); });
  const over = list.length ? list.at(-1).y - lower : 0;
  if (over > 0) for (let i = list.length - 1; i >= 0; i--) list[i].y = Math.min(list[i].y, i === list.length - 1 ? lower : list[i + 1].y - 11);
  return each(list, (one) => text(fits(one) ? one.x : width, Math.max(one.y, upper) + 4, one.text, 'halo', fits(one) ? 'start' : 'end', `fill:${one.colour}`));
}
