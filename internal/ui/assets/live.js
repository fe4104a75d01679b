/* ---------- live view of a running run ---------- */
const LIVE = { least: 140, most: 300, above: 330, left: 46, upper: 26, below: 36 }; // above: height of what is above the charts
const LIVE_PANELS = [ // title, lines as [name, value of a point, class, colour]
  ['Requests/s', [['sent', (p) => p.sent_per_s, 'thin dash1'], ['served', (p) => p.served_per_s, '']]],
  ['Output tokens/s', [['received', (p) => p.tokens_per_s, '']]],
  ['Requests in flight', [['client', (p) => p.in_flight, ''], ['running (server)', (p) => p.server?.running, 'thin dash1'], ['queued (server)', (p) => p.server?.queued, 'thin dash2', 'run1']]],
  ['TTFT (ms)', [['p50', (p) => p.ttft_ms?.p50, ''], ['p99', (p) => p.ttft_ms?.p99, 'thin dash1', 'run1']]],
  ['ITL (ms)', [['p50', (p) => p.itl_ms?.p50, ''], ['p99', (p) => p.itl_ms?.p99, 'thin dash1', 'run1']]],
  ['KV cache (%)', [['in use (server)', (p) => (p.server?.kv_share == null ? null : p.server.kv_share * 100), '']]],
];
const isNumber = (v) => typeof v === 'number' && Number.isFinite(v);
const lonely = (pts) => pts.filter(([, v], i) => v != null && pts[i - 1]?.[1] == null && pts[i + 1]?.[1] == null); // values that no line connects
function livePanel([title, lines], points, w, height) {
  const known = lines.filter(([, get]) => points.some((p) => isNumber(get(p)) && (title !== 'Output tokens/s' || get(p)))), value = (get) => (p) => (isNumber(get(p)) ? get(p) : null);
  if (!known.length) return '';
  const from = points[0].at_s, to = Math.max(points.at(-1).at_s, from + 1), right = w - 10;
  const x = linear(from, to, LIVE.left, right), y = linear(0, above(most(points.flatMap((p) => known.map(([, get]) => value(get)(p) ?? 0))) * 1.02), height - LIVE.below, LIVE.upper);
  const colour = (own) => ink(own || 'run0');
  const names = each(known, ([name, , cls, own]) => `<tspan dx="10" data-css="fill:${colour(own)}">${cls.includes('dash2') ? '┈' : cls.includes('dash') ? '╌' : '—'} ${esc(name)}</tspan>`);
  const marks = (pts, own) => each(lonely(pts), ([at, v]) => `<circle cx="${r1(x(at))}" cy="${r1(y(v))}" r="2.5" data-css="fill:${colour(own)}"/>`);
  const drawn = each(known, ([name, get, cls, own]) => { const pts = points.map((p) => [p.at_s, value(get)(p)]); return `<g data-line="${esc(`${title} ${name}`)}" data-values="${esc(JSON.stringify(pts.map(([, v]) => v)))}">${curve(path(pts, x, y), colour(own), cls)}${marks(pts, own)}</g>`; });
  return `<figure class="chart">${svg(w, height, axes({ x, y, left: LIVE.left, right, upper: LIVE.upper, lower: height - LIVE.below, xs: x.ticks(w / 80), ys: y.ticks(height / 45), xUnit: 's' })
    + `<text x="0" y="12"><tspan class="strong">${esc(title)}</tspan>${names}</text>${drawn}`)}</figure>`;
}
const SO_FAR = { VALID: 'no problems so far', 'NOT JUDGED': 'not judged so far' }; // a running level is never VALID
const left = (s) => (s == null ? '–' : s >= 90 ? `${num(s / 60)} min` : `${num(s)} s`);
/* The load of a level in words. A live level has the flags only as a title. */
function loadWords(l = {}) {
  const words = [l.request_rate_per_s ? `${tick(l.request_rate_per_s)} req/s` : '', l.max_concurrency ? `concurrency ${count(l.max_concurrency)}` : ''].filter(Boolean);
  if (!words.length && l.sessions) words.push(`burst of ${count(l.sessions)}`);
  return words.join(', ') || l.name || 'All requests';
}
function liveTiles(s) {
  const n = s.now || {}, t = s.totals || {}, l = s.level || {}, pair = (f) => (f?.p50 == null ? '–' : `${num(f.p50)} <small>ms, p99 ${num(f.p99)} ms</small>`);
  return [
    ['Level', `${count(l.number)}${l.of ? ` <small>of ${count(l.of)}</small>` : ''}`], ['Progress of the level', percent(s.share)], ['Time left', `${left(s.left_s)}${s.run_left_s != null ? ` <small>run: ${left(s.run_left_s)}</small>` : ''}`],
    ['Served', `${num(n.served_per_s)} <small>req/s${l.request_rate_per_s ? ` of ${tick(l.request_rate_per_s)}` : ''}</small>`], ['Output', t.tokens || !t.finished ? `${num(n.tokens_per_s)} <small>tok/s</small>` : '–'], ['In flight', `${count(n.in_flight)} <small>requests</small>`],
    ['TTFT p50', pair(n.ttft_ms)], ['ITL p50', pair(n.itl_ms)], ['Finished', `${count(t.finished)} <small>requests</small>${t.failed ? ` <small class="failed">✕ ${count(t.failed)} failed</small>` : ''}`],
  ];
}
function liveView(s) {
  const el = $('live'), points = s.history || [], wide = Math.max(280, Math.min(el.clientWidth || 800, innerWidth - 32)), panels = (w, height) => LIVE_PANELS.map((p) => (points.length > 1 ? livePanel(p, points, w, height) : '')).filter(Boolean);
  const some = panels(wide, LIVE.least).length, cols = wide > 900 ? (some === 4 ? 4 : 3) : wide > 600 ? 2 : 1;
  const height = Math.max(LIVE.least, Math.min(LIVE.most, Math.floor((innerHeight - LIVE.above) / Math.ceil(some / cols) || LIVE.least)));
  const width = Math.floor((wide - 32 * (cols - 1)) / cols), reasons = s.verdict?.reasons || [];
  const past = s.past || [], row = (p) => `<tr><td>${esc(loadWords(p.level))}</td><td>${num(p.duration_s)}</td><td>${num(p.requests_per_s)}</td><td>${num(p.tokens_per_s)}</td><td>${num(p.ttft_p99_ms)}</td><td>${num(p.itl_p99_ms)}</td><td>${count(p.failed || 0)}</td><td>${badge(p.verdict)}</td></tr>`;
  put(el, `<p class="lede"><b>${esc(loadWords(s.level))}</b> ${SO_FAR[s.verdict?.level] || `${badge(s.verdict?.level)} so far`} <span class="foot">Figures cover the last seconds and are accurate to 2 %</span></p>
    <span class="meter"><i data-css="width:${num((s.share || 0) * 100)}%"></i></span>
    <dl class="tiles">${each(liveTiles(s), ([k, v]) => `<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>
    <div class="grid" data-css="grid-template-columns:repeat(${cols},minmax(0,1fr))">${panels(width, height).join('')}</div>
    ${s.totals?.finished && !s.totals.tokens ? '<p class="foot">This run counts no tokens before its end, for example because of --disable-tqdm.</p>' : ''}
    <ul class="reasons">${each(reasons, (r) => `<li class="${esc(r.level).toLowerCase()}"><b>${esc(r.level).toLowerCase()}</b>: ${esc(r.text)}</li>`)}</ul>
    ${s.failures?.length ? `<div class="scroll"><table><thead><tr><th scope="col">Cause</th><th scope="col">Requests</th><th scope="col">Last at</th><th scope="col" class="say">Last message</th></tr></thead><tbody>${each(s.failures, (f) => `<tr><td class="bad">✕ ${esc([f.cause, f.status || ''].join(' '))}</td><td>${count(f.count)}</td><td>${num(f.last_s)} s</td><td class="say">${esc(f.text)}</td></tr>`)}</tbody></table></div>` : ''}
    ${past.length ? `<div class="scroll"><table><thead><tr>${each(['Load', 'Duration (s)', 'Req/s', 'Output tok/s', 'TTFT p99 (ms)', 'ITL p99 (ms)', 'Failed', 'Verdict'], (h) => `<th scope="col">${h}</th>`)}</tr></thead><tbody>${each(past, row)}</tbody></table></div>` : ''}`);
}
