/* ---------- 3b. over time ---------- */
const mids = (l, values) => values.map((v, i) => [(i + 0.5) * l.p.bins.width_s, v]);
const steps = (l, values) => values.flatMap((v, i) => [[i * l.p.bins.width_s, v], [(i + 1) * l.p.bins.width_s, v]]);
/* Thins points evenly to at most about 2,000 and keeps the slowest 5 %. */
function thin(points) {
  if (points.length <= 2000) return points;
  const slow = Float64Array.from(points, (p) => p[1]).sort()[Math.floor(points.length * 0.95)], step = Math.ceil(points.length / 1500);
  return points.filter((p, i) => p[1] >= slow || i % step === 0);
}
/* TTFT of each request by one of its numbers (sent, input or ahead), thinned once per level. */
function firsts(l, key) {
  l.firsts = l.firsts || {};
  l.firsts[key] = l.firsts[key] || thin(rowsOf(l).filter((q) => q.first != null && !q.error).map((q) => [key === 'sent' ? q.sent / 1000 : q[key], q.first - q.sent]));
  return l.firsts[key];
}
/* Samples of the server as steps: a value holds until the next sample. */
function reading(l, key, by = 1) {
  const s = l.p.server?.[key];
  return s ? s.t.flatMap((t, i) => (i ? [[t, s.high[i - 1] * by], [t, s.high[i] * by]] : [[t, s.high[i] * by]])) : [];
}
/* A moving average over the median latency. Requests of a closed loop end in waves, and narrow bins would show them as outages. */
const waveOf = (l) => (l.setting.max_concurrency && !valueOf(l, 'request-rate') && l.e2el ? Math.round(l.e2el.p50 / 1000 / l.p.bins.width_s) : 0);
function smooth(l, values) {
  const n = waveOf(l);
  if (n < 2) return values;
  return values.map((_, i) => meanOf(values.slice(Math.max(0, i - Math.floor(n / 2)), Math.max(0, i - Math.floor(n / 2)) + n)));
}
const dueRate = (l) => (l.setting.max_concurrency && !valueOf(l, 'request-rate') ? [] : steps(l, l.p.bins.asked)); // requests of a closed loop have no schedule
const banded = (l, key, k) => steps(l, l.p.bins[key].map((b) => b && b[k]));
const failedRate = (l) => (l.s.failed ? steps(l, l.p.bins.failed.map((n) => n / l.p.bins.width_s)) : []);
const PANELS = [ // a part is [name, points of a level, class, own colour]; band names the bins whose p50 and upper quantile are filled between
  { title: 'requests/s', unit: 'requests/s', parts: [['due', dueRate, 'thin dash1', 's-due'], ['served', (l) => steps(l, smooth(l, l.p.bins.served)), ''], ['failed', failedRate, 'dash2', 'bad']] },
  { title: 'requests', parts: [['in flight', (l) => mids(l, l.p.bins.flight), ''], ['running (server)', (l) => reading(l, 'running'), 'thin dash1', 's-running'], ['queued (server)', (l) => reading(l, 'queued'), 'dash2', 'k-queue']] },
  { title: 'TTFT, ms', unit: 'ms', band: 'ttft', parts: [['each request', (l) => firsts(l, 'sent'), 'dots'], ['p50', (l) => banded(l, 'ttft', 1), ''], ['p95', (l) => banded(l, 'ttft', 2), 'dash1', 's-p95'], ['longest', (l) => banded(l, 'ttft', 3), 'hair', 's-longest']] },
  { title: 'ITL, ms', unit: 'ms', band: 'itl', parts: [['p50', (l) => banded(l, 'itl', 1), ''], ['p99', (l) => banded(l, 'itl', 2), 'dash2', 's-p99'], ['longest', (l) => banded(l, 'itl', 3), 'hair', 's-longest']] },
  { title: 'output tokens/s', unit: 'tokens/s', parts: [['received', (l) => steps(l, l.p.bins.tokens), '']] },
  { title: 'KV cache, %', unit: '%', parts: [['in use (server)', (l) => reading(l, 'kv_share', 100), '']] },
  { title: 'GPU, %', unit: '%', parts: [['busy', (l) => reading(l, 'gpu_share', 100), '']] },
  { title: 'power, W', unit: 'W', parts: [['all GPUs', (l) => reading(l, 'power_w'), '']] },
  { title: 'client send lag, ms', unit: 'ms', band: 'lag', parts: [['p50', (l) => banded(l, 'lag', 1), ''], ['p99', (l) => banded(l, 'lag', 2), 'dash2', 's-p99'], ['longest', (l) => banded(l, 'lag', 3), 'hair', 's-longest']] }];
const TIME = { panel: 92, gap: 34, first: 32, left: 48, right: 8 };
const upperOf = (k) => TIME.first + k * (TIME.panel + TIME.gap);
const seen = () => shown().map(picked).filter((l) => l.p);
const hasPoints = (points) => points.some((p) => p[1] != null);
const panels = () => PANELS.filter((p) => seen().some((l) => p.parts.some((q) => q[2] !== 'dots' && q[1](l).some((d) => d[1]))));
const timeScale = (w, right = w - TIME.right) => linear(view.t0 / 1000, view.t1 / 1000, TIME.left, right); // the same range in all charts over time
function timePanel(p, k, last, x, w) {
  const upper = upperOf(k), lower = upper + TIME.panel, parts = p.parts.filter((q) => seen().some((l) => hasPoints(q[1](l))));
  const y = linear(0, above(most(seen().flatMap((l) => parts.flatMap((q) => q[1](l).map((d) => d[1] ?? 0))), 1e-9) * 1.02), lower, upper);
  const sign = (cls) => (cls === 'dots' ? '•' : cls.includes('dash2') ? '┅' : cls.includes('dash') ? '╌' : cls === 'hair' ? '┈' : '—');
  const words = each(parts, ([name, , cls, own]) => `<tspan class="strong" dx="10" data-css="fill:${own && !several() ? ink(own) : runInk(first())}">${sign(cls)}</tspan><tspan dx="3">${esc(name)}</tspan>`);
  return axes({ x, y, left: TIME.left, right: w - TIME.right, upper, lower, xs: last ? x.ticks(w / 80) : [], ys: y.ticks(3), xUnit: last ? 's since the start of the level' : '' })
    + `<text x="0" y="${upper - 8}"><tspan class="strong">${esc(p.title)}</tspan>${words}</text>`
    + `<g clip-path="url(#clip-time)">${pauseMarks(seen(), x, TIME.left, w - TIME.right, upper, lower)}${each([...seen()].reverse(), (l) => (p.band ? timeBand(l, p.band, x, y) : '') + each(parts, (q) => timePart(l, q, x, y, p.title)))}</g>`;
}
/* Pauses of servers, as bands behind the lines of every chart over time. */
const pausesOf = (l) => (l.s.pauses?.list || []).filter((p) => p.kind === 'server' || p.kind === 'replica');
const pauseSpan = (p, x, from, to) => { const a = Math.max(from, x(p.at_s)), b = Math.min(to, x(p.at_s + p.ms / 1000)); return b < from || a > to ? null : [r1(a), r1(Math.max(2, b - a))]; };
function pauseMarks(levels, x, from, to, upper, lower) {
  const spans = levels.flatMap((l) => pausesOf(l).map((p) => [p, pauseSpan(p, x, from, to)])).filter((s) => s[1]);
  const tip = (p) => keyed([['the server stood still', p.endpoint || ''], ['at', `${num(p.at_s)} s`], ['for', time(p.ms)]]);
  return each(spans, ([p, [a, wide]]) => `<rect class="pause" x="${a}" y="${upper}" width="${wide}" height="${lower - upper}" data-tip="${esc(tip(p))}" data-css="fill:${ink('bad')}" opacity=".18"/>`);
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
function drainOf(l, x, H) { // the time after the due time of the last request
  if (!l || several() || l.span == null || l.s.duration_s - l.span <= 0.4 || l.span < 0.1 * l.s.duration_s) return '';
  const from = Math.max(TIME.left, x(l.span)), to = Math.min(x(view.t1 / 1000), x(l.s.duration_s)), wide = Math.max(0, to - from);
  return `<rect class="knee" x="${r1(from)}" y="${TIME.first}" width="${r1(wide)}" height="${H - TIME.first - TIME.gap - 2}"/>`
    + (wide > 150 ? text(to, TIME.first - 20, 'shaded: after the last request was sent', 'unit', 'end') : '');
}
/* The steady window of each level, as a bar above the panels. */
function steadyBars(x) {
  const bar = (l, i) => {
    const w = l.steady, from = Math.max(TIME.left, x(w.start_s)), wide = Math.max(2, Math.min(x(view.t1 / 1000), x(w.end_s)) - from), y = 3 + 4 * i;
    const tip = keyed([[`${fullName(l)}: steady window`, ''], ['from', `${num(w.start_s)} s`], ['to', `${num(w.end_s)} s`], ['requests', `${count(w.requests)} (${percent(w.share)})`], ['served/s', num(w.requests_per_s)]]);
    return `<rect class="steady" x="${r1(from)}" y="${y}" width="${r1(wide)}" height="3" data-value="${w.start_s}" data-tip="${esc(tip)}" data-css="fill:${runInk(l.run)}"/>`;
  };
  return each(seen().filter((l) => l.steady).slice(0, 3), bar);
}
function overTime() {
  const height = () => upperOf(panels().length) + 6, who = (l) => (several() ? `${l.run.name}: ` : '');
  const valuesAt = (l, t) => panels().map((p) => { // one row per panel
    const parts = p.parts.filter((q) => q[2] !== 'dots' && hasPoints(q[1](l))), title = p.title.split(',')[0];
    return [`${who(l)}${title === p.unit ? '' : `${title} `}${parts.map((q) => q[0]).join(' / ')}`, `${parts.map((q) => num(nearest(q[1](l), t))).join(' / ')}${p.unit ? ` ${p.unit}` : ''}`];
  });
  figure('time-charts', {
    name: 'Over time', title: 'Over time', zooms: true, has: () => panels().length > 0,
    note: () => `All charts over time share one axis in steps of ${time((seen()[0]?.p.bins.width_s || 0) * 1000)}: drag to zoom, double-click to reset.${seen().some((l) => waveOf(l) > 1) ? ' Served is the mean over the median latency.' : ''} Bands span p50 to p95 (ITL: p99). TTFT is plotted at the time the request was sent. The client counts requests ${term('in flight')}; the server reports ${term('KV cache')} and running requests.${seen().some((l) => l.steady) ? ` The bar at the top is the ${term('steady window')}.` : ''}${seen().some((l) => pausesOf(l).length) ? ' In the red bands the server stood still.' : ''}`,
    say: () => seen().map((l) => `${fullName(l)}: ${num(l.s.duration_s)} s`).join('; '),
    draw(w) { const x = timeScale(w), H = height(), list = panels(); return svg(w, H, clipTo({ left: TIME.left, right: w - TIME.right }, 'clip-time') + drainOf(seen()[0], x, H) + steadyBars(x) + each(list, (p, k) => timePanel(p, k, k === list.length - 1, x, w))); },
    hover(px, py, w) {
      const t = timeScale(w).back(px);
      if (px < TIME.left || px > w - TIME.right) return null;
      return { mark: line(px, TIME.first, px, height() - TIME.gap - 2, 'rule'), tip: keyed([[`${num(t)} s`, ''], ...seen().flatMap((l) => valuesAt(l, t))]) };
    },
    table: () => ({ head: ['run', 'from s', 'due/s', 'served/s', 'failed', 'in flight', 'tokens/s', 'TTFT min', 'p50', 'p95', 'max', 'ITL min', 'p50', 'p99', 'max', 'client lag min', 'p50', 'p99', 'max'], rows: seen().flatMap(binRows) }),
  });
}
const nearest = (points, t) => points.reduce((m, p) => (Math.abs(p[0] - t) < Math.abs(m[0] - t) ? p : m), [1e9, null])[1];
function binRows(l) {
  const s = l.p.bins, none = [null, null, null, null];
  return s.asked.map((_, i) => [l.run.name, +(i * s.width_s).toFixed(3), s.asked[i], s.served[i], s.failed[i], s.flight[i], s.tokens[i], ...(s.ttft[i] || none), ...(s.itl[i] || none), ...(s.lag[i] || none)]);
}
