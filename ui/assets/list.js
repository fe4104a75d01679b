/* ---------- the list of runs ---------- */
const D = JSON.parse($('data').textContent);
const ui = { items: [], live: new Map(), ticked: new Set(), words: '', loaded: false };
const itemOf = (id) => ui.items.find((it) => it.id === id);
const titleOf = (it) => it.about.name || it.path;
const bytes = (n) => (n > 1e9 ? `${num(n / 1e9)} GB` : n > 1e6 ? `${num(n / 1e6)} MB` : `${num(n / 1e3)} kB`);
const when = (it) => (it.about.began > '0002' ? it.about.began.slice(0, 16).replace('T', ' ') : '–');
const tagsOf = (it) => it.notes.tags || [];
const signOf = { VALID: '✓', PREDICTED: '≈', 'NOT JUDGED': '?' };
const badge = (v) => (v ? `<span class="badge ${esc(v.replace(' ', '-'))}">${signOf[v] || '!'} ${esc(v)}</span>` : '');

/* All that is searched of a run; a word matches any part of it, tag:x a tag, and all words must match. */
function haystack(it) {
  const a = it.about;
  return [it.path, a.name, a.label, a.model, a.backend, a.dataset, a.gpus, a.host, a.began, it.state, it.verdict, it.notes.note, ...(a.urls || []), ...tagsOf(it),
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
  if (it.state !== 'running') return it.state === 'over' || it.state === 'result' ? badge(it.verdict) : `<span class="state">${esc(it.state)}</span>`;
  const s = ui.live.get(it.id), level = s?.level?.of > 1 ? `level ${s.level.number} of ${s.level.of}` : '';
  return `<span class="state running">● running</span><span class="meter"><i data-css="width:${num((s?.share || 0) * 100)}%"></i></span><small>${esc(level)}</small>`;
}
const liveNumber = (it, key) => (it.state === 'running' ? ui.live.get(it.id)?.now?.[key] : null);
const COLUMNS = [
  ['run', 'name', (it) => `<a href="#run=${it.id}">${esc(titleOf(it))}</a>${it.about.label && !titleOf(it).includes(it.about.label) ? ` <span>${esc(it.about.label)}</span>` : ''}
    <small>${it.problem ? `<span class="problem">${esc(it.problem)}</span>` : esc(it.answer?.join(' ') || (it.path === it.about.name ? '' : it.path))}</small>
    ${each(tagsOf(it), (t) => `<button class="tag" data-tag="${esc(t)}">${esc(t)}</button> `)}`],
  ['verdict', 'state', stateCell],
  ['began, UTC', 'when', (it) => esc(when(it))],
  ['model', 'words', (it) => esc(it.about.model || '–')],
  ['server', 'words', (it) => esc([it.about.backend, it.about.gpus].filter(Boolean).join(', ') || '–')],
  ['levels', 'number', (it) => count(it.levels)],
  ['requests', 'number', (it) => `${count(it.state === 'running' ? ui.live.get(it.id)?.totals?.finished : it.totals.requests)}${it.totals.failed ? ` <span class="failed">✕ ${count(it.totals.failed)}</span>` : ''}`],
  ['most req/s', 'number', (it) => num(liveNumber(it, 'served_per_s') ?? it.best?.requests_per_s)],
  ['output tokens/s', 'number', (it) => num(liveNumber(it, 'tokens_per_s') ?? (it.best?.tokens_per_s || null))],
  ['TTFT p99 then, ms', 'number', (it) => num(liveNumber(it, 'ttft_ms')?.p99 ?? it.best?.ttft_p99_ms)],
];
function runRow(it) {
  const box = `<input type="checkbox" data-tick="${it.id}" ${ui.ticked.has(it.id) ? 'checked' : ''} ${canTick(it) ? '' : 'disabled'} aria-label="Compare ${esc(titleOf(it))}">`;
  return `<tr data-run="${it.id}"><td>${box}</td>${each(COLUMNS, ([, cls, get]) => `<td class="${cls}">${get(it)}</td>`)}</tr>`;
}
function drawList() {
  const list = found(), all = list.filter(canTick), focus = document.activeElement?.dataset?.tick;
  const tags = [...new Set(ui.items.flatMap(tagsOf))].sort();
  put($('tags'), each(tags, (t) => `<button class="tag" data-tag="${esc(t)}" aria-pressed="${ui.words.split(/\s+/).includes(`tag:${t}`)}">${esc(t)}</button> `));
  $('compare-button').disabled = ui.ticked.size < 2;
  $('compare-button').textContent = ui.ticked.size > 1 ? `Compare ${ui.ticked.size} runs` : 'Compare: tick two runs or more';
  const head = `<tr><th><input type="checkbox" id="tick-all" aria-label="Tick all" ${all.length && all.every((it) => ui.ticked.has(it.id)) ? 'checked' : ''}></th>${each(COLUMNS, ([name, cls]) => `<th scope="col" class="${cls}">${name}</th>`)}</tr>`;
  const none = ui.items.length ? 'No run matches.' : 'There is no run in this folder yet. Start one with tacho bench: it appears here as it runs.';
  put($('runs'), !ui.loaded ? '' : list.length ? `<table><thead>${head}</thead><tbody>${each(list, runRow)}</tbody></table>` : `<p class="empty">${none}</p>`);
  if (focus) document.querySelector(`[data-tick="${focus}"]`)?.focus();
}
