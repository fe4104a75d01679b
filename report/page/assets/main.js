/* ---------- wiring ---------- */
function controls() {
  const own = (r, more = '') => (several() ? swatch(runInk(r), esc(r.name) + more) : ''), hasLoad = byPlace() || comparable();
  $('sweep').hidden = !manyLevels();
  document.documentElement.classList.toggle('single', !manyLevels());
  put($('sweep-controls'), each(shown(), (r) => own(r))
    + seg('x axis', [['load', 'load', !hasLoad], ['served', 'served'], ['flight', 'in flight', !hasFlight()]], 'x', xKind()) + seg('latency axis', [[true, 'log'], [false, 'linear']], 'log'));
  const label = (r) => `${own(r, ', ')}${esc([...new Set(r.levels.flatMap((l) => [...l.coords.keys()]))].map((o) => UNITS[o] || o).join(' · '))}`;
  const pickers = each(shown().filter((r) => r.levels.length > 1), (r) => seg(label(r), r.levels.map((l) => [keyOf(l), `${l.invalid ? '✕ ' : ''}${esc(shortName(l))}`]), 'pick', keyOf(picked(r))));
  put($('level-controls'), pickers + (seen().length ? seg('shape', SHAPES, 'shape') + seg('axis', [['log', 'log'], ['linear', 'linear']], 'axis') : ''));
  const names = [...new Set(shown().map((r) => nameOf(picked(r))))];
  put($('h-level'), !manyLevels() ? 'Latencies' : names.length > 2 ? 'One level per run' : `At ${esc(names.join(' and '))}${several() || picked(first()).verdict === 'VALID' ? '' : ` ${badge(picked(first()).verdict)}`}`);
  const alike = shown().slice(1).filter((r) => !comparable() || loadValue(picked(r)) === loadValue(picked(first())));
  put($('level-line'), inWords(picked(first())) + each(alike, (r) => `<br>${against(picked(first()), picked(r))}`));
}
/* A level without usable figures, and why it is shown nevertheless. */
const whyInvalid = (l) => (l.invalid && manyLevels() ? `${l.run.levels.length > 1 && !usable(l.run.levels).length ? `All ${count(l.run.levels.length)} levels are INVALID, and the page opens with the first. ` : ''}INVALID: ${esc(l.reasons.find((r) => r.level === 'INVALID')?.text || 'no figure is usable')}.<br>` : '');
function inWords(l) {
  const parts = l.no_rate ? [`${count(l.s.completed)} request${l.s.completed === 1 ? '' : 's'} served in ${time(1000 * l.s.duration_s)}`] : [`${num(l.rps)} requests/s served${l.steady ? ' over the whole level' : ''}`];
  if (l.tokens && !l.no_rate) parts.push(`${num(l.tokens)} output tokens/s`);
  if (l.s.completed === 1) parts.push(...LATENCIES.filter((k) => l[k] && k !== 'itl').map((k) => `${k.toUpperCase()} ${time(l[k].p50)}`));
  if (l.flight != null) parts.push(`${num(l.flight)} ${term('in flight')} on average, peak ${count(l.peak)}`);
  const where = l.s.where, said = [steadyWindow(l), where?.sentence, where?.tail].filter(Boolean).map((s) => ` ${esc(s)}`).join('');
  return `${several() ? `${swatch(runInk(l.run), `<b>${esc(l.run.name)}</b>: `)}` : ''}${whyInvalid(l)}${parts.join(', ')}.${said}`;
}
function steadyWindow(l) { // the steady window and its throughput, or why there is none
  const w = l.steady, why = l.s.steady_state?.why_not;
  if (!w) return why ? `No steady window: ${why}.` : '';
  return `Without start and end, in the steady window from ${num(w.start_s)} to ${num(w.end_s)} s with ${percent(w.share)} of the requests: ${num(w.requests_per_s)} requests/s.`;
}
/* The comparison in words, with the verdicts of tacho compare: an insignificant difference counts as none. */
const CHANGES = { request_throughput: ['requests/s served', 'as many', 'fewer'], ...Object.fromEntries(LATENCIES.map((k) => [`${k}.mean`, [`mean ${k.toUpperCase()}`, 'as long', 'shorter']])) };
function inChange({ name, times, verdict }) {
  const [what, more, less] = CHANGES[name], by = num(Math.max(times, 1 / times)) === '1' ? 'the same within 0.5 %' : times > 1 ? `${num(times)} × ${more}` : `${num(1 / times)} × ${less}`;
  return `${what} ${verdict === '~' ? 'without a significant difference' : verdict === 'no test' ? `${by} (not tested)` : `<b>${by}</b>`}`;
}
function against(l, o) {
  const rows = l.run.k === 0 && o.against?.levels.includes(l.i) ? o.against.rows : [];
  if (!rows.length) return inWords(o); // the levels were not compared
  return `In comparison, ${swatch(runInk(o.run), `<b>${esc(o.run.name)}</b>`)} at ${esc(nameOf(o))}: ${rows.map(inChange).join(', ')}.`;
}
const nothing = () => !RUNS.some((r) => r.levels.length); // true if nothing was measured
function draw() { header(); if (nothing()) return; sloForm(); placeFigures(); controls(); levelTable(); failureTable(); behind(); figures.forEach(render); }
function drawSweep() { sloForm(); placeFigures(); levelTable(); figures.filter((f) => f.overLoad).forEach(render); }
function pick(key) { const [r, i] = key.split(':').map(Number); state.picked[r] = i; state.whose = r; pinned = null; resetView(); draw(); setLink(); }
function set(key, value) {
  if (key === 'pick') { pick(value); return; }
  state[key] = value;
  if (['packed', 'whose', 'only'].includes(key)) resetView();
  draw();
}
function toggle(k) {
  if (state.off.has(k)) state.off.delete(k); else if (shown().length > 1) state.off.add(k);
  resetView(); draw();
}
function theme(name) { if (name) document.documentElement.dataset.theme = name; else delete document.documentElement.dataset.theme; inks = new Map(); }
const refocus = (selector) => document.querySelector(selector)?.focus(); // the pressed element has been drawn again
function copy(el) {
  navigator.clipboard?.writeText(el.dataset.copy).then(() => { el.textContent = 'Copied'; }, () => getSelection().selectAllChildren(el.previousElementSibling));
}
const THEMES = ['', 'light', 'dark'];
const CLICKS = { // click handlers by selector
  '[data-run]': (el) => { const k = +el.dataset.run; toggle(k); refocus(`[data-run="${k}"]`); },
  '#theme-button': () => { theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || '') + 1) % 3]); draw(); refocus('#theme-button'); },
  '.seg button': (el) => { const { key } = el.closest('.seg').dataset, { value } = el.dataset; set(key, JSON.parse(value)); refocus(`.seg[data-key="${key}"] button[data-value="${CSS.escape(value)}"]`); },
  '#slo-clear': () => { choose(null); $('slo-text').focus(); },
  '[data-copy]': copy,
  '[data-sort]': (el) => { const col = +el.dataset.sort; order = { col, up: order.col === col ? !order.up : true }; levelTable(); refocus(`[data-sort="${col}"]`); },
  '[data-zoom]': (el) => { const k = +el.dataset.zoom; if (k) { zoom('t', k, 0.5); zoom('r', k, 0.5); } else resetView(); showView(); },
  '[data-pin]': (el) => { const step = el.dataset.pin; pinNext(+step); refocus(`[data-pin="${step}"]`); },
  '[data-unpin]': () => { unpin(); refocus('[data-figure="Timeline of requests"] canvas'); },
  '[data-pick]': (el) => { if (el.type !== 'radio') pick(el.dataset.pick); },
};
function clicks(e) {
  document.querySelectorAll('.menu[open]').forEach((m) => { if (!m.contains(e.target)) m.open = false; });
  const hit = Object.keys(CLICKS).find((selector) => e.target.closest(selector));
  if (hit && !e.target.closest('label')) CLICKS[hit](e.target.closest(hit));
}
function tips(e) {
  const el = e.target.closest?.('[data-tip]');
  if (!el) { if (!e.target.closest?.('.plot')) hideTip(); return; }
  const box = el.getBoundingClientRect(), focus = e.type === 'focusin';
  showTip(el.dataset.tip, focus ? box.left : e.clientX, focus ? box.bottom - 10 : e.clientY);
}
document.addEventListener('click', clicks);
document.addEventListener('change', (e) => { if (e.target.type === 'radio') { const key = e.target.dataset.pick; pick(key); refocus(`input[data-pick="${key}"]`); } });
$('slo').addEventListener('input', () => readForm());
$('slo').addEventListener('submit', (e) => { e.preventDefault(); readForm(true); $(own ? 'slo-clear' : 'slo-text').focus(); });
document.addEventListener('pointermove', tips);
document.addEventListener('focusin', tips);
document.addEventListener('keydown', (e) => { if (e.key === 'Escape') { hideTip(); document.querySelectorAll('.menu[open]').forEach((m) => { m.open = false; }); } });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { inks = new Map(); draw(); });
let wide = innerWidth;
addEventListener('resize', () => { if (innerWidth !== wide) { wide = innerWidth; draw(); } });
let before = null; // pages are printed in the light theme, at the width of the paper
addEventListener('beforeprint', () => { before = document.documentElement.dataset.theme || ''; document.documentElement.classList.add('printing'); theme('light'); draw(); });
addEventListener('afterprint', () => { if (before != null) { document.documentElement.classList.remove('printing'); theme(before); before = null; draw(); } });

if (RUNS.length > 1) pickAlike();
if (!nothing()) followLink(); // after pickAlike
addEventListener('hashchange', () => { if (nothing() || !/level=|request=|slo=/.test(location.hash)) return; followLink(); resetView(); draw(); showLinked(); });
if (nothing()) {
  header();
  for (const part of document.querySelectorAll('main section')) part.hidden = true;
} else {
  sweep('Throughput', () => 'Throughput', () => `Requests/s served${levelsShown().some((l) => l.good != null) ? (several() ? ' · thin: within the SLO' : ', and requests/s within the SLO') : ''}`, 'requests/s', [{ get: (l) => l.rps, label: 'served' }, { get: (l) => l.good, label: 'good', apart: true, figure: 'request_goodput' }], true);
  LATENCIES.forEach(latencyOverLoad);
  pareto();
  LATENCIES.forEach(distribution);
  eachRequest();
  overTime();
  timeline();
  whereTimeGoes();
  follows();
  splits();
  resetView();
  draw();
  showLinked();
}
$('foot').textContent = `${['tacho', RUNS[0]?.about.version].filter(Boolean).join(' ')}. All numbers come from the run; this file is self-contained. `
  + 'Curves keep 200 quantiles and the extremes; time bins keep minimum, p50, an upper percentile and maximum; gaps in the timeline are accurate to 17 %, mostly 5 %.';
