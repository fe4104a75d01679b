/* ---------- the list of runs ---------- */
const D = JSON.parse($('data').textContent);
const ui = { items: [], live: new Map(), ticked: new Set(), words: '', loaded: false, sort: 'started', up: false };
const BASELINE = 'baseline'; // tag of the run that others are compared with
const itemOf = (id) => ui.items.find((it) => it.id === id);
const nameOf = (it) => it.about.name || it.path;
const bytes = (n) => (n > 1e9 ? `${num(n / 1e9)} GB` : n > 1e6 ? `${num(n / 1e6)} MB` : `${num(n / 1e3)} kB`);
const two = (n) => String(n).padStart(2, '0');
function when(it) { // local time
  if (!(it.about.began > '0002')) return '–';
  const d = new Date(it.about.began);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}
const tagsOf = (it) => it.notes.tags || [];

/* The searchable text of a run. A word matches any part of it, tag:x matches a tag, and all words must match. */
function haystack(it) {
  const a = it.about;
  return [it.path, a.name, a.label, a.model, a.backend, a.engine, a.dataset, a.gpus, a.host, a.began, it.load, it.state, it.verdict, it.notes.note, ...(a.urls || []), ...tagsOf(it),
    ...(a.metadata || []).map((f) => `${f.name}=${f.value}`)].filter(Boolean).join('\n').toLowerCase();
}
function matches(it, words) {
  const text = haystack(it), tags = tagsOf(it).map((t) => t.toLowerCase());
  return words.toLowerCase().split(/\s+/).filter(Boolean).every((w) => (w.startsWith('tag:') ? tags.includes(w.slice(4)) : text.includes(w)));
}
const found = () => ui.items.filter((it) => matches(it, ui.words));
const canTick = (it) => !it.problem && it.state !== 'running';

function stateCell(it) {
  if (it.problem) return '<span class="state bad">cannot be read</span>';
  if (it.state !== 'running') return it.state === 'over' || it.state === 'result' ? chips(it) : `<span class="state">${esc(it.state)}</span>`;
  const s = ui.live.get(it.id), level = s?.level?.of > 1 ? `level ${s.level.number} of ${s.level.of}` : '';
  return `<span class="state running">● running</span><span class="meter"><i data-css="width:${num((s?.share || 0) * 100)}%"></i></span><small>${esc(level)}</small>${it.simulated ? badge('SIMULATED') : ''}`;
}
/* The small chart of a run: TTFT p99 by load, with a dot at the level of the answer, or the output of a running run over time. */
const SPARK = { w: 96, h: 28, edge: 4 };
function spark(it) {
  const running = it.state === 'running', points = running ? (ui.live.get(it.id)?.history || []).map((p) => ({ v: p.tokens_per_s })) : (it.curve || []).map((p) => ({ ...p, v: p.ttft_p99_ms }));
  const known = points.filter((p) => p.v != null);
  if (known.length < 2) return '';
  const x = linear(0, points.length - 1, SPARK.edge, SPARK.w - SPARK.edge), y = linear(0, most(known.map((p) => p.v), 1e-9), SPARK.h - SPARK.edge, SPARK.edge);
  const says = running ? `Output tokens/s since the level began, now ${num(known.at(-1).v)}` : `TTFT p99 by load: ${known.map((p) => `${time(p.v)} at ${p.load}${p.invalid ? ' (INVALID)' : ''}`).join(', ')}`;
  const dot = (p, i) => (p.v != null && (p.best || p.invalid) ? `<circle class="${p.invalid ? 'invalid' : ''}" cx="${r1(x(i))}" cy="${r1(y(p.v))}" r="3"/>${p.invalid ? crossMark(x(i), y(p.v), 3) : ''}` : '');
  return `<svg class="spark" width="${SPARK.w}" height="${SPARK.h}" viewBox="0 0 ${SPARK.w} ${SPARK.h}" role="img" aria-label="${esc(says)}" data-tip="${esc(esc(says))}">${line(0, SPARK.h - SPARK.edge, SPARK.w, SPARK.h - SPARK.edge, 'grid-line')}${curve(path(points.map((p, i) => [i, p.v, p.invalid]).filter((p) => !p[2]), x, y), ink('run0'))}${points.map(dot).join('')}</svg>`;
}
const breakable = (s) => esc(s).replace(/[/_-]/g, '$&<wbr>'); // names break after their separators
const liveNumber = (it, key) => (it.state === 'running' ? ui.live.get(it.id)?.now?.[key] : null);
const requestsOf = (it) => (it.state === 'running' ? ui.live.get(it.id)?.totals?.finished : it.totals.requests);
const serverOf = (it) => [it.about.engine || it.about.backend, it.about.gpus].filter(Boolean).join(', ');
const RANK = ['INVALID', 'DEGRADED', 'PREDICTED', 'NOT JUDGED', 'VALID'];
const rps = (it) => liveNumber(it, 'served_per_s') ?? it.best?.requests_per_s, tps = (it) => liveNumber(it, 'tokens_per_s') ?? (it.best?.tokens_per_s || null);
const ttft99 = (it) => liveNumber(it, 'ttft_ms')?.p99 ?? it.best?.ttft_p99_ms, tpot99 = (it) => it.best?.tpot_p99_ms;
const nameCell = (it) => `<a href="#run=${it.id}" data-focus="run ${it.id}">${breakable(nameOf(it))}</a>${it.about.label && !nameOf(it).includes(it.about.label) ? ` <span>${esc(it.about.label)}</span>` : ''}
    ${it.path === it.about.name ? '' : `<small>${esc(it.path)}</small>`}<span class="tag-row">${each(tagsOf(it), (t) => `<button class="tag" data-tag="${esc(t)}" data-focus="tag ${it.id} ${esc(t)}">${esc(t)}</button> `)}</span>`;
const answerCell = (it) => (it.problem ? `<span class="problem">${esc(it.problem)}</span>` : esc(it.answer?.[0] || (it.state === 'running' ? 'In progress' : '')));
const COLUMNS = [ // key, title, class, cell, sort value; a column without a sort value is not sorted
  ['run', 'Run', 'name', nameCell, nameOf],
  ['result', 'Result', 'result', answerCell],
  ['verdict', 'Verdict', 'state', stateCell, (it) => (it.state === 'running' ? -1 : RANK.indexOf(it.verdict))],
  ['load', 'Load', 'words load', (it) => `${esc(it.load || '–')}${it.levels > 1 ? ` <small>${count(it.levels)} levels</small>` : ''}`, (it) => it.load || ''],
  ['curve', 'TTFT p99 by load', 'picture', spark],
  ['requests', 'Requests', 'number', (it) => `${count(requestsOf(it))}${it.totals.failed ? ` <span class="failed">✕ ${count(it.totals.failed)} failed</span>` : ''}`, requestsOf],
  ['rps', 'Req/s', 'number', (it) => num(rps(it)), rps],
  ['tps', 'Output tok/s', 'number', (it) => num(tps(it)), tps],
  ['ttft', 'TTFT p99 (ms)', 'number', (it) => num(ttft99(it)), ttft99],
  ['tpot', 'TPOT p99 (ms)', 'number', (it) => num(tpot99(it)), tpot99],
  ['model', 'Model, server, dataset', 'words', (it) => `${breakable(it.about.model || '–')}${serverOf(it) ? ` <small>${esc(serverOf(it))}</small>` : ''}<small>${breakable(it.about.dataset || '')}</small>`, (it) => `${it.about.model || ''} ${serverOf(it)}`.trim()],
  ['started', 'Started', 'when', (it) => `<time datetime="${esc(it.about.began)}">${esc(when(it).slice(0, 10))}<small>${esc(when(it).slice(11))}</small></time>`, (it) => it.about.began],
];
const SORTABLE = COLUMNS.filter(([, , , , value]) => value);
function sorted(list) {
  const value = SORTABLE.find(([key]) => key === ui.sort)[4], sign = ui.up ? 1 : -1, missing = (v) => v == null || v === '';
  return list.map((it) => [it, value(it)]).sort(([, a], [, b]) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b); // last in both directions
    return sign * (typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : a - b);
  }).map(([it]) => it);
}
function sortBy(key, up) {
  const first = COLUMNS.find(([k]) => k === key)[2].startsWith('words') || key === 'run' || key === 'ttft' || key === 'tpot' || key === 'verdict'; // names from A, latencies and verdicts from the smallest
  ui.up = up ?? (ui.sort === key ? !ui.up : first);
  ui.sort = key;
  drawList();
}
function headCell([key, name, cls, , value]) {
  const now = ui.sort === key;
  return `<th scope="col" class="${cls}" ${now ? `aria-sort="${ui.up ? 'ascending' : 'descending'}"` : ''}>${value ? `<button data-sort="${key}" data-focus="sort ${key}">${name}</button>` : name}</th>`;
}
function runRow(it) {
  const box = `<input type="checkbox" data-tick="${it.id}" data-focus="tick ${it.id}" ${ui.ticked.has(it.id) ? 'checked' : ''} ${canTick(it) ? '' : 'disabled'} aria-label="Compare ${esc(nameOf(it))}">`;
  return `<tr data-run="${it.id}"><td class="tick">${box}</td>${each(COLUMNS, ([, name, cls, get]) => { const html = get(it); return `<td class="${cls}${html ? '' : ' none'}" data-name="${name}">${html}</td>`; })}</tr>`;
}
/* What to do in an empty folder. The first run replaces it. */
function beginView() {
  const dir = D.folder === 'runs' ? '' : ` --runs-dir ${/^[\w./-]+$/.test(D.folder) ? D.folder : `'${D.folder.replace(/'/g, "'\\''")}'`}`;
  const step = ([title, command]) => `<li><b>${title}</b><div class="command"><code>${esc(command)}</code><button class="btn" data-copy="${esc(command)}">Copy</button></div></li>`;
  return `<div class="begin"><h2>No runs yet</h2><p>Start a run in a terminal. It appears here when it begins.</p>
    <ul>${each([['Measure a server', `tacho bench --base-url http://127.0.0.1:8000 --request-rate sweep${dir}`], ['Try without a server, on a simulated GPU', `tacho bench --sim vllm-8b-h100 --request-rate 2,4,8 --max-seconds 10${dir}`]], step)}</ul>
    <p class="state running">● Waiting for the first run in ${esc(D.folder)}</p></div>`;
}
function drawList() {
  const list = sorted(found()), all = list.filter(canTick), focus = document.activeElement?.dataset?.focus, empty = ui.loaded && !ui.items.length;
  const tags = [...new Set(ui.items.flatMap(tagsOf))].sort();
  document.querySelector('.tools').hidden = empty;
  put($('tags'), each(tags, (t) => `<button class="tag" data-tag="${esc(t)}" data-focus="filter ${esc(t)}" aria-pressed="${ui.words.split(/\s+/).includes(`tag:${t}`)}">${esc(t)}</button> `));
  put($('sort'), each(SORTABLE, ([key, name]) => each([true, false], (up) => `<option value="${key} ${up}" ${ui.sort === key && ui.up === up ? 'selected' : ''}>${name} ${up ? '↑' : '↓'}</option>`)));
  $('compare-button').disabled = ui.ticked.size < 2;
  $('compare-button').textContent = ui.ticked.size > 1 ? `Compare ${ui.ticked.size} runs` : 'Select two or more runs to compare';
  const head = `<tr><th><input type="checkbox" id="tick-all" data-focus="tick-all" aria-label="Select all" ${all.length && all.every((it) => ui.ticked.has(it.id)) ? 'checked' : ''}></th>${each(COLUMNS, headCell)}</tr>`;
  put($('runs'), !ui.loaded ? '' : empty ? beginView() : list.length ? `<table><thead>${head}</thead><tbody>${each(list, runRow)}</tbody></table>` : '<p class="empty">No run matches.</p>');
  drawTrend();
  if (focus) document.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}
