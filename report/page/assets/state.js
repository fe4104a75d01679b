/* ---------- data and state ---------- */
/* The data of the page: runs with their levels. A level `l` has its summary and picture as Go wrote them, and
   the numbers of the charts. A value that was not measured is null, never 0. */
const D = JSON.parse($('data').textContent);
const RUNS = D.runs;
const LATENCIES = ['ttft', 'tpot', 'itl', 'e2el'];
const UNITS = { 'request-rate': 'requests/s', 'max-concurrency': 'concurrency', 'num-prompts': 'burst size' }; // of an axis

/* The statistics of one metric in a list of the summary. */
function statsOf(list, name) {
  const d = (list || []).find((one) => one.name === name);
  if (!d || !d.stats) return null;
  const s = d.stats, of = (p) => (s.percentiles || []).find((q) => q.p === p), at = (p) => of(p)?.value ?? null;
  const pair = (i) => (i?.low != null ? [i.low, i.high] : []), median = of(50)?.interval ?? s.median_interval;
  return {
    n: d.n, mean: s.mean, min: s.min, max: s.max, p50: at(50) ?? s.median, p90: at(90), p95: at(95), p99: at(99),
    all: new Map([[50, at(50) ?? s.median], ...(s.percentiles || []).map((q) => [q.p, q.value])]), // values by percentile
    sure: { p50: pair(median), p90: pair(of(90)?.interval), p99: pair(of(99)?.interval) }, // 95 % intervals
    unsure: { p50: median && median.low == null, p99: of(99)?.interval && of(99).interval.low == null }, // percentiles without an interval
    clock: { p50: pair(of(50)?.bound), p99: pair(of(99)?.bound) }, // bounds from inexact timestamps
  };
}

/* The coordinates of a level by option, from its name: "--num-prompts 4 --random-input-len 80". */
const coordsOf = (l) => {
  const all = new Map([...(l.setting.name || '').matchAll(/--([\w-]+) (\S+)/g)].map(([, name, value]) => [name, value]));
  if (all.size > 1 && all.get('request-rate') === 'inf') all.delete('request-rate'); // the concurrency is the load
  return all;
};
const OWN = { 'request-rate': 'request_rate_per_s', 'max-concurrency': 'max_concurrency', 'num-prompts': 'num_prompts' }; // options that every level states
const valueOf = (l, option) => { const v = parseFloat(l.coords.get(option)); return Number.isFinite(v) ? v : l.setting[OWN[option]] || null; };
const rated = (l) => valueOf(l, 'request-rate') != null; // an open loop
function prepareLevel(l, run, i) {
  const s = l.summary, t = s.throughput;
  Object.assign(l, { run, i, s, p: l.picture || null, coords: coordsOf(l) });
  for (const k of LATENCIES) { l[k] = statsOf(s.metrics, k); if (l[k] && l.p?.curves[k]) l[k].curve = l.p.curves[k]; }
  l.rps = t?.requests_per_s ?? null;
  l.good = t?.good_requests_per_s ?? null;
  l.tokens = t?.output_tokens_per_s || null;
  l.sent = rated(l) ? s.rate?.achieved_per_s ?? null : null; // the send rate of a closed loop or a burst is no load
  l.gpu = s.figures?.output_per_gpu ?? l.tokens;
  l.user = l.tpot?.p50 ? 1000 / l.tpot.p50 : null;
  l.flight = l.p ? meanOf(l.p.bins.flight) : null;
  l.peak = s.peaks?.requests_in_flight ?? null;
  l.reasons = s.verdict?.reasons || [];
  l.verdict = s.verdict?.level || 'VALID';
  l.invalid = l.verdict === 'INVALID';
  l.span = s.rate?.span_s ?? null;
  l.steady = s.steady_state?.window ?? null;
}
RUNS.forEach((run, k) => { run.k = k; run.levels.forEach((l, i) => prepareLevel(l, run, i)); });
/* A run is named by the first of these fields that no other run shares. */
const CALLED = ['label', 'backend', 'model', 'name'];
RUNS.forEach((run) => {
  const unique = (key) => run.about[key] && RUNS.every((r) => r === run || r.about[key] !== run.about[key]), key = CALLED.find(unique) || CALLED.find((k) => run.about[k]);
  run.name = run.about[key] ? run.about[key] + (unique(key) ? '' : ` (${run.k + 1})`) : `run ${run.k + 1}`;
});

const usable = (ls) => ls.filter((l) => !l.invalid);
/* The reason to doubt a figure of a level ("itl", "request_goodput"), or undefined. A reason that names no figures is about the whole level. */
function doubtOf(l, figure) {
  const all = l.reasons.filter((r) => r.level !== 'NOTE' && r.figures?.includes(figure));
  return all.find((r) => r.unusable) || all[0];
}
const isOff = (l, figure) => l.invalid || Boolean(doubtOf(l, figure)?.unusable); // the figure is INVALID
const doubtWord = (r) => (r.unusable ? 'not usable' : 'in doubt');
const doubtTip = (r) => (r ? [[`${doubtWord(r)}: ${r.text}`, '']] : []);
const doubtMark = (l, figure) => { const r = doubtOf(l, figure); return r ? `<sup class="doubt" tabindex="0" data-tip="${esc(keyed(doubtTip(r)))}">${r.unusable ? '✕' : '?'}</sup>` : ''; };
const state = {
  off: new Set(), // runs that are not shown
  picked: RUNS.map((run) => Math.min(run.opens, run.levels.length - 1)),
  x: 'load', log: true, shape: 'cdf', axis: 'log', packed: true, only: '', share: false, slowest: false, whose: 0, by: '',
};
const shown = () => { const on = RUNS.filter((r) => !state.off.has(r.k) && r.levels.length); return on.length ? on : RUNS.slice(0, 1); };
const first = () => shown()[0];
const picked = (run) => run.levels[state.picked[run.k]];
const levelsShown = () => shown().flatMap((r) => r.levels);
const several = () => shown().length > 1;
const few = (l) => l.reasons.some((r) => r.code === 'few-samples'); // too few samples for a p99
/* The load option of runs: among the options that vary between levels, the option of most levels. */
function loadOption(runs = shown()) {
  const levels = runs.flatMap((r) => r.levels), options = [...Object.keys(OWN), ...new Set(levels.flatMap((l) => [...l.coords.keys()]).filter((o) => !OWN[o]))];
  const varying = (o) => sumOf(runs, (r) => (new Set(r.levels.map((l) => l.coords.get(o))).size > 1 ? r.levels.length : 0));
  const best = (list) => list.reduce((m, o) => (varying(o) > varying(m) ? o : m)), own = best(Object.keys(OWN));
  const found = varying(own) ? own : best(options);
  return varying(found) ? found : options.find((o) => new Set(levels.map((l) => valueOf(l, o))).size > 1) || own; // runs of one level each
}
const LOADS = { 'request-rate': (v) => `${v} requests/s`, 'max-concurrency': (v) => `concurrency ${v}`, 'num-prompts': (v) => `burst of ${v}` };
const withUnit = (value, option) => (LOADS[option] ? LOADS[option](tick(+value)) : `${option} ${value}`);
const again = (l) => (l.setting.repeat ? ` #${l.setting.repeat}` : '');
const nameOf = (l) => ([...l.coords].map(([o, v]) => (Number.isFinite(+v) ? withUnit(v, o) : `${o} ${v}`)).join(', ') || l.setting.name || 'all requests') + again(l);
const shortName = (l) => ([...l.coords.values()].map((v) => (Number.isFinite(+v) ? tick(+v) : v)).join(' · ') || l.setting.value || 'all') + again(l);
const fullName = (l) => (RUNS.length > 1 ? `${l.run.name}, ${nameOf(l)}` : nameOf(l));
const keyOf = (l) => `${l.run.k}:${l.i}`; // the value of data-pick: run and level
/* The lines of a run: levels that differ only in the load, in order. Lengths within 10 % count as equal. */
function seriesOf(run) {
  const list = [], option = loadOption([run]), rest = (l) => [...l.coords].filter(([o]) => o !== option);
  const alike = (a, b) => a.length === b.length && a.every(([o, v], i) => b[i][0] === o && (b[i][1] === v || Math.abs(v - b[i][1]) < 0.1 * Math.abs(v)));
  for (const l of run.levels) {
    const home = list.find((s) => alike(s.rest, rest(l)));
    if (home) home.levels.push(l); else list.push({ run, rest: rest(l), levels: [l] });
  }
  list.forEach((s, i) => {
    s.levels.sort((p, q) => (valueOf(p, option) ?? p.i) - (valueOf(q, option) ?? q.i));
    s.name = list.length > 1 ? s.rest.map(([o, v]) => withUnit(v, o)).join(', ') || run.name : '';
    s.k = i;
  });
  return list;
}
/* Initially, several runs show the highest common load that all of them hold, or else the lowest common load; without conclusions about
   a load, the highest common load. */
function pickAlike() {
  const option = loadOption(), have = RUNS.map((r) => new Set(usable(r.levels).map((l) => valueOf(l, option)).filter((v) => v != null))).filter((s) => s.size > 1);
  const common = have.length > 1 ? [...have[0]].filter((v) => have.every((s) => s.has(v))) : [];
  if (!common.length) return;
  const loads = RUNS.map((r) => { const { held, missed } = r.conclusion, l = r.levels[(held || missed)?.level]; return l ? { held: Boolean(held), at: valueOf(l, option) } : null; });
  const within = common.filter((v) => loads.every((o) => !o || (o.held && v <= o.at))), load = within.length ? Math.max(...within) : loads.some(Boolean) ? Math.min(...common) : Math.max(...common);
  RUNS.forEach((r) => { const i = r.levels.findIndex((l) => !l.invalid && valueOf(l, option) === load); if (i >= 0) state.picked[r.k] = i; });
}

const GLOSS = {
  TTFT: 'Time to first token: from the first byte of the request sent to the first token received. It includes queueing and prefill.',
  TPOT: 'Time per output token: (last token − first token) ÷ (tokens − 1), one value for each request.',
  ITL: 'Inter-token latency: each gap between two token events, over all requests. Its tail shows stalls that TPOT averages away.',
  E2EL: 'End-to-end latency: from the request sent to its last token.',
  knee: 'The load above which the server no longer keeps up. Open loop: less than 90 % of the offered rate is served. Otherwise: more load adds less than 5 % throughput.',
  'tokens/s per user': 'Speed of an answer for one user: 1 ÷ median TPOT.',
  'tokens/s per GPU': 'Output tokens of all requests ÷ wall time ÷ GPUs.',
  'output tokens/s': 'Output tokens of all requests ÷ wall time. The number of GPUs is unknown (--gpus).',
  'in flight': 'Requests sent and not yet finished.',
  'steady window': 'The part of the run in steady state: requests arrive and finish at the same rate, and latencies no longer depend on the start. Figures of the whole run are shown beside it.',
  'KV cache': 'Share of the server’s memory for keys and values in use, as the server reports it.',
  'client lag': 'Delay between the due time of a request and its first byte sent. If it grows, the client is the bottleneck.',
  'send lag': 'Delay that the client itself adds once a request may be sent.',
  'read lag': 'Time from a token’s arrival at the socket (kernel clock) to the client’s read. Latencies use the kernel clock, so they do not include it.',
  'read late': 'Token events that were read together with a later event, so their own arrival time is unknown.',
};
const term = (key, text = key) => `<abbr tabindex="0" data-tip="${esc(esc(GLOSS[key]))}">${esc(text)}</abbr>`;
