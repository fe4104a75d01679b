/* ---------- 3b. over time ---------- */
const mids = (l, values) => values.map((v, i) => [(i + 0.5) * l.p.bins.width_s, v]);
const steps = (l, values) => values.flatMap((v, i) => [[i * l.p.bins.width_s, v], [(i + 1) * l.p.bins.width_s, v]]);
/* At most 2,000 dots, evenly thinned; the slowest twentieth is always kept. */
function thin(points) {
  if (points.length <= 2000) return points;
  const slow = Float64Array.from(points, (p) => p[1]).sort()[Math.floor(points.length * 0.95)], step = Math.ceil(points.length / 1500);
  return points.filter((p, i) => p[1] >= slow || i % step === 0);
}
/* TTFT of each request against one of its numbers: sent, input or ahead; thinned once for a level. */
function firsts(l, key) {
  l.firsts = l.firsts || {};
  l.firsts[key] = l.firsts[key] || thin(rowsOf(l).filter((q) => q.first != null && !q.error).map((q) => [key === 'sent' ? q.sent / 1000 : q[key], q.first - q.sent]));
  return l.firsts[key];
}
const reading = (l, key, by = 1, side = 'high') => { const s = l.p.server?.[key]; return s ? s.t.map((t, i) => [t, s[side][i] * by]) : []; };
const banded = (l, key, k) => steps(l, l.p.bins[key].map((b) => b && b[k]));
const failedRate = (l) => (l.s.failed ? steps(l, l.p.bins.failed.map((n) => n / l.p.bins.width_s)) : []);
const PANELS = [ // a part is [name, points of a level, class, own colour]; band names the bins whose p50 and upper quantile are filled between
  { title: 'requests/s', parts: [['asked', (l) => steps(l, l.p.bins.asked), 'thin dash1'], ['served', (l) => steps(l, l.p.bins.served), ''], ['failed', failedRate, '', 'bad']] },
  { title: 'requests', parts: [['in flight', (l) => mids(l, l.p.bins.flight), ''], ['running (server)', (l) => reading(l, 'running'), 'thin dash1'], ['queued (server)', (l) => reading(l, 'queued'), 'thin', 'k-queue']] },
  { title: 'TTFT, ms', band: 'ttft', parts: [['each request', (l) => firsts(l, 'sent'), 'dots'], ['p50', (l) => banded(l, 'ttft', 1), ''], ['p95', (l) => banded(l, 'ttft', 2), 'thin'], ['longest', (l) => banded(l, 'ttft', 3), 'hair']] },
  { title: 'ITL, ms', band: 'itl', parts: [['p50', (l) => banded(l, 'itl', 1), ''], ['p99', (l) => banded(l, 'itl', 2), 'thin'], ['longest', (l) => banded(l, 'itl', 3), 'hair']] },
  { title: 'output tokens/s', parts: [['received', (l) => steps(l, l.p.bins.tokens), '']] },
  { title: 'KV cache, %', parts: [['in use (server)', (l) => reading(l, 'kv_share', 100), '']] },
  { title: 'GPU, %', parts: [['busy', (l) => reading(l, 'gpu_share', 100), '']] },
  { title: 'power, W', parts: [['all GPUs', (l) => reading(l, 'power_w'), '']] },
  { title: 'the client’s own lag, ms', band: 'lag', parts: [['p50', (l) => banded(l, 'lag', 1), ''], ['p99', (l) => banded(l, 'lag', 2), 'thin'], ['longest', (l) => banded(l, 'lag', 3), 'hair']] }];
const TIME = { panel: 92, gap: 34, first: 32, left: 48, right: 8 };
const upperOf = (k) => TIME.first + k * (TIME.panel + TIME.gap);
const seen = () => shown().map(picked).filter((l) => l.p);
const hasPoints = (points) => points.some((p) => p[1] != null);
const panels = () => PANELS.filter((p) => seen().some((l) => p.parts.some((q) => q[2] !== 'dots' && q[1](l).some((d) => d[1]))));
const timeScale = (w) => linear(0, most(seen().map((l) => l.s.duration_s), 1e-3), TIME.left, w - TIME.right);
function timePanel(p, k, last, x, w) {
  const upper = upperOf(k), lower = upper + TIME.panel, parts = p.parts.filter((q) => seen().some((l) => hasPoints(q[1](l))));
  const y = linear(0, above(most(seen().flatMap((l) => parts.flatMap((q) => q[1](l).map((d) => d[1] ?? 0))), 1e-9) * 1.02), lower, upper);
  const sign = (cls) => (cls === 'dots' ? '•' : cls.includes('dash') ? '╌' : cls === 'hair' ? '┈' : '—');
  const words = each(parts, ([name, , cls, own]) => `<tspan dx="10" data-css="fill:${own ? ink(own) : runInk(first())}">${sign(cls)} ${esc(name)}</tspan>`);
  return axes({ x, y, left: TIME.left, right: w - TIME.right, upper, lower, xs: last ? x.ticks(w / 80) : [], ys: y.ticks(3), xUnit: last ? 's from the level’s start' : '' })
    + `<text x="0" y="${upper - 8}"><tspan class="strong">${esc(p.title)}</tspan>${words}</text>`
    + each([...seen()].reverse(), (l) => (p.band ? timeBand(l, p.band, x, y) : '') + each(parts, (q) => timePart(l, q, x, y, p.title)));
}
function timePart(l, [name, get, cls, own], x, y, title) {
  const pts = get(l), colour = own && !several() ? ink(own) : runInk(l.run);
  if (cls === 'dots') return cloud(pts, x, y, colour, 2.6);
  return `<g data-line="${esc(`${title} ${name}`)}" data-values="${esc(JSON.stringify(pts.map((p) => p[1])))}">${curve(path(pts, x, y), colour, `${cls} ${several() && !cls.includes('dash') ? dashOf(l.run) : ''}`)}</g>`;
}
function timeBand(l, key, x, y) {
  const s = l.p.bins.width_s, d = each(l.p.bins[key], (v, i) => (v ? area([[i * s, v[1], v[2]], [(i + 1) * s, v[1], v[2]]], x, y) : ''));
  return `<path class="band" d="${d}" data-css="fill:${runInk(l.run)}"/>`;
}
function drainOf(l, x, H) { // the time after the last request was due
  if (!l || several() || l.span == null || l.s.duration_s - l.span <= 0.4 || l.span < 0.1 * l.s.duration_s) return '';
  const from = x(l.span), wide = x(l.s.duration_s) - from;
  return `<rect class="knee" x="${r1(from)}" y="${TIME.first}" width="${r1(wide)}" height="${H - TIME.first - TIME.gap - 2}"/>`
    + (wide > 100 ? text(from + 6, 46, 'last request sent: draining', 'unit') : '');
}
/* When each level was in balance: a bar above the panels. */
function steadyBars(x) {
  const bar = (l, i) => {
    const w = l.steady, from = x(w.start_s), wide = Math.max(2, x(w.end_s) - from), y = 3 + 4 * i;
    const tip = keyed([[`${fullName(l)}: in balance`, ''], ['from', `${num(w.start_s)} s`], ['to', `${num(w.end_s)} s`], ['requests', `${count(w.requests)} (${percent(w.share)})`], ['served/s', num(w.requests_per_s)]]);
    return `<rect class="steady" x="${r1(from)}" y="${y}" width="${r1(wide)}" height="3" data-value="${w.start_s}" data-tip="${esc(tip)}" data-css="fill:${runInk(l.run)}"/>`;
  };
  return each(seen().filter((l) => l.steady).slice(0, 3), bar);
}
function overTime() {
  const height = () => upperOf(panels().length) + 6, who = (l) => (several() ? `${l.run.name}: ` : '');
  const valuesAt = (l, t) => panels().flatMap((p) => p.parts.filter((q) => q[2] !== 'dots' && hasPoints(q[1](l))).map((q) => [`${who(l)}${p.title.split(',')[0]} ${q[0]}`, num(nearest(q[1](l), t))]));
  figure('time-charts', {
    name: 'Over time', title: 'Over time', has: () => panels().length > 0,
    note: () => `One time axis for all; each step is ${time((seen()[0]?.p.bins.width_s || 0) * 1000)}. Bands go from p50 to p95 (ITL: p99); TTFT stands where its request was sent. ${term('in flight')} is the client’s count, ${term('KV cache')} and running the server’s.${seen().some((l) => l.steady) ? ` The bar on top is the time ${term('in balance')}.` : ''}`,
    say: () => seen().map((l) => `${fullName(l)}: ${num(l.s.duration_s)} s`).join('; '),
    draw(w) { const x = timeScale(w), H = height(), list = panels(); return svg(w, H, drainOf(seen()[0], x, H) + steadyBars(x) + each(list, (p, k) => timePanel(p, k, k === list.length - 1, x, w))); },
    hover(px, py, w) {
      const t = timeScale(w).back(px);
      if (px < TIME.left || px > w - TIME.right) return null;
      return { mark: line(px, TIME.first, px, height() - TIME.gap - 2, 'rule'), tip: keyed([[`${num(t)} s`, ''], ...seen().flatMap((l) => valuesAt(l, t))]) };
    },
    table: () => ({ head: ['run', 'from s', 'asked/s', 'served/s', 'failed', 'in flight', 'tokens/s', 'TTFT min', 'p50', 'p95', 'max', 'ITL min', 'p50', 'p99', 'max', 'client lag min', 'p50', 'p99', 'max'], rows: seen().flatMap(binRows) }),
  });
}
const nearest = (points, t) => points.reduce((m, p) => (Math.abs(p[0] - t) < Math.abs(m[0] - t) ? p : m), [1e9, null])[1];
function binRows(l) {
  const s = l.p.bins, none = [null, null, null, null];
  return s.asked.map((_, i) => [l.run.name, +(i * s.width_s).toFixed(3), s.asked[i], s.served[i], s.failed[i], s.flight[i], s.tokens[i], ...(s.ttft[i] || none), ...(s.itl[i] || none), ...(s.lag[i] || none)]);
}
