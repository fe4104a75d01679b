/* ---------- data and state ---------- */
/* What the page knows: runs with their levels. A level `l` has its summary and picture as Go wrote them, and beside them
   the numbers that charts are drawn from. Nothing measured is null, never 0. */
const $ = (id) => document.getElementById(id);
const D = JSON.parse($('data').textContent);
const RUNS = D.runs;
const LATENCIES = ['ttft', 'tpot', 'itl', 'e2el'];
const UNITS = { 'request-rate': 'requests/s', 'max-concurrency': 'at a time', 'num-prompts': 'at once' };

/* The statistics of one metric in a list of the summary's. */
function statsOf(list, name) {
  const d = (list || []).find((one) => one.name === name);
  if (!d || !d.stats) return null;
  const s = d.stats, at = (p) => (s.percentiles || []).find((q) => q.p === p)?.value ?? null;
  return { n: d.n, mean: s.mean, min: s.min, max: s.max, p50: at(50) ?? s.median, p90: at(90), p95: at(95), p99: at(99) };
}
const sumOf = (list, f) => list.reduce((sum, one) => sum + f(one), 0);
const meanOf = (values) => (values.length ? sumOf(values, (v) => v) / values.length : null);

function prepareLevel(l, run, i) {
  const s = l.summary, t = s.throughput, asked = parseFloat(l.setting.value);
  Object.assign(l, { run, i, s, p: l.picture || null, value: Number.isFinite(asked) && !/\s/.test(l.setting.value) ? asked : null });
  for (const k of LATENCIES) { l[k] = statsOf(s.metrics, k); if (l[k] && l.p?.curves[k]) l[k].curve = l.p.curves[k]; }
  l.rps = t?.requests_per_s ?? null;
  l.good = t?.good_requests_per_s ?? null;
  l.tokens = t?.output_tokens_per_s || null;
  l.sent = s.rate?.achieved_per_s ?? null;
  l.gpu = l.tokens && l.tokens / (run.gpus || 1);
  l.user = l.tpot?.p50 ? 1000 / l.tpot.p50 : null;
  l.flight = l.p ? meanOf(l.p.bins.flight) : null;
  l.peak = s.peaks?.requests_in_flight ?? null;
  l.reasons = s.verdict?.reasons || [];
  l.verdict = s.verdict?.level || 'VALID';
  l.span = s.rate?.span_s ?? null;
}
RUNS.forEach((run, k) => {
  Object.assign(run, { k, name: run.about.label || run.about.name || run.about.backend || `run ${k + 1}`, varies: run.about.varies || '' });
  run.unit = UNITS[run.varies] || '';
  run.levels.forEach((l, i) => prepareLevel(l, run, i));
  run.open = run.varies === 'request-rate';
});
RUNS.forEach((run) => { // no two runs have one name
  const same = RUNS.filter((r) => r.name === run.name);
  if (same.length > 1) same.forEach((r) => { r.name = r.about.name && same.every((o) => o.about.name !== r.about.name || o === r) ? r.about.name : `${r.name} (${r.k + 1})`; });
});

const state = {
  off: new Set(), // runs that are not shown
  picked: RUNS.map((run) => (run.knee == null ? run.levels.length - 1 : Math.min(run.knee + 1, run.levels.length - 1))), // a level of each run
  x: 'asked', log: true, shape: 'cdf', axis: 'log', packed: true, share: false, whose: 0, by: '',
};
const shown = () => { const on = RUNS.filter((r) => !state.off.has(r.k) && r.levels.length); return on.length ? on : RUNS.slice(0, 1); };
const first = () => shown()[0];
const picked = (run) => run.levels[state.picked[run.k]];
const levelsShown = () => shown().flatMap((r) => r.levels);
const several = () => shown().length > 1;
const few = (l) => l.reasons.some((r) => r.code === 'few-samples'); // its p99 is little more than a maximum
const nameOf = (l) => (l.value != null && l.run.unit ? `${tick(l.value)} ${l.run.unit}` : l.setting.name || l.setting.value || 'all requests');
const shortName = (l) => (l.value != null ? tick(l.value) : l.setting.value || '–');
const fullName = (l) => (RUNS.length > 1 ? `${l.run.name}, ${nameOf(l)}` : nameOf(l));
const keyOf = (l) => `${l.run.k}:${l.i}`; // what data-pick holds: run and level

const GLOSS = {
  TTFT: 'Time to first token: from the first byte of the request sent to the first token received. Queueing and prefill are in it.',
  TPOT: 'Time per output token: (last token − first token) ÷ (tokens − 1), one value for each request.',
  ITL: 'Inter-token latency: each gap between two token events, over all requests. Its tail shows stalls that TPOT averages away.',
  E2EL: 'End-to-end latency: from the request sent to its last token.',
  knee: 'The load after which the server no longer keeps up. Open loop: less than 90 % of what is sent gets served. Else: more load gains less than 5 %.',
  'tokens/s per user': 'How fast one reader sees the answer: 1 ÷ median TPOT.',
  'tokens/s per GPU': 'Output tokens of all requests ÷ wall time ÷ GPUs: what the machine earns.',
  'output tokens/s': 'Output tokens of all requests ÷ wall time. How many GPUs there are was not said (--gpus).',
  'in flight': 'Requests sent and not yet finished.',
  'KV cache': 'Share of the server’s memory for keys and values in use, as the server reports it.',
  'client lag': 'How late the client sent a request after it was due. If it grows, the client is the bottleneck.',
  'send lag': 'What the client itself added after a request could go.',
  'read lag': 'From a token’s arrival at the socket (kernel clock) to when the client read it. It does not touch the times shown: they are the kernel’s.',
  coalesced: 'Token events that came in one read with another: their own time is not known.',
};
const esc = (s) => String(s).replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }[c]));
const each = (list, f) => list.map(f).join('');
const term = (key, text = key) => `<abbr tabindex="0" data-tip="${esc(esc(GLOSS[key]))}">${esc(text)}</abbr>`;
/* Sets the inside of an element. The page's policy takes no style attributes, so colours and widths stand in data-css. */
function put(el, html) {
  el.innerHTML = html;
  for (const one of el.querySelectorAll('[data-css]')) { one.style.cssText = one.dataset.css; delete one.dataset.css; }
}
