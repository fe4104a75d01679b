/* ---------- 1c. the SLO of the reader ---------- */
/* The reader chooses a metric, a percentile and a limit, and the page marks the highest load that meets them. Verdict, answer, numbers and
   recommended load of the run stay as published. */
let own = null; // {metric, p, limit in ms}
const sloPercentiles = (k) => { // the percentiles that all levels have
  const known = usable(levelsShown()).filter((l) => l[k]);
  return known.length ? [...known[0][k].all.keys()].filter((p) => known.every((l) => l[k].all.get(p) != null)).sort((a, b) => a - b) : [];
};
const sloMetrics = () => LATENCIES.filter((k) => sloPercentiles(k).length);
const canChoose = () => manyLevels() && concluded() && sloMetrics().length > 0;
const ownOf = (k) => (own?.metric === k ? own : null);
const ownFigure = () => (own ? `${own.metric.toUpperCase()} over load` : '');
const ownName = () => `${own.metric.toUpperCase()} p${own.p} ≤ ${tick(own.limit)} ms`;
const ownValue = (l) => l[own.metric]?.all.get(own.p) ?? null;
/* How a level does at the reader's SLO. This is the only place that judges a level. */
function ownState(l) {
  if (!own) return null;
  if (isOff(l, own.metric)) return 'INVALID';
  if (l.s.failed > (1 - own.p / 100 + 1e-9) * (l.s.completed + l.s.failed)) return 'missed'; // a failed request is infinitely slow
  return ownValue(l) == null ? 'not measured' : ownValue(l) <= own.limit ? 'met' : 'missed';
}
const ownLoad = (l) => { const option = loadOption([l.run]); return l.coords.get(option) === 'inf' ? Infinity : valueOf(l, option); };
/* The highest load of a series that meets the SLO, and the lowest that misses it. As in the conclusion of a run, a load counts only if all lower loads meet the SLO. */
function ownAnswer(one) {
  const judged = one.levels.filter((l) => ['met', 'missed'].includes(ownState(l))), missed = judged.find((l) => ownState(l) === 'missed');
  const met = judged.filter((l) => ownState(l) === 'met'), within = (l) => !missed || ownLoad(l) < ownLoad(missed);
  return { one, judged, missed, ordered: one.levels.every((l) => ownLoad(l) != null), held: met.filter(within).at(-1), met, above: met.filter((l) => !within(l)), invalid: one.levels.filter((l) => ownState(l) === 'INVALID') };
}
const ownAnswers = () => (own ? shown().flatMap(seriesOf).map(ownAnswer) : []);
const namesOf = (ls) => esc(ls.map(nameOf).join(', '));
function servedAt(l) {
  const words = [l.verdict === 'VALID' ? '' : l.verdict, `${num(l.rps)} requests/s served`, l.tokens ? `${num(l.tokens)} tokens/s` : '', l.s.failed ? `${percent(l.s.failed / (l.s.completed + l.s.failed))} of the requests failed` : '', own.p >= 99 && few(l) ? `too few requests for a p${own.p}` : ''];
  return `(${esc(words.filter(Boolean).join(', '))})`;
}
function ownSentence({ one, judged, missed, ordered, held, met, above, invalid }) {
  const name = [several() ? one.run.name : '', one.name].filter(Boolean).join(', '), load = (l) => `<b>${esc(nameOf(l))}</b> ${servedAt(l)}`;
  const excluded = invalid.length ? ` Excluded because INVALID: ${namesOf(invalid)}.` : '', begin = name ? `${swatch(lineInk(one), `<b>${esc(name)}</b>`)}: ` : '';
  if (!judged.length) return `${begin}no level can be judged.${excluded}`;
  if (!ordered) return `${begin}met at ${namesOf(met) || 'no level'}${missed ? `, missed at ${namesOf(judged.filter((l) => ownState(l) === 'missed'))}` : ''}.${excluded}`;
  if (!missed) return `${begin}no limit found, because all measured loads meet it; the highest is ${load(held)}.${excluded}`;
  const slow = ownValue(missed) > own.limit, miss = slow ? `${own.metric.toUpperCase()} p${own.p} is ${time(ownValue(missed))} at ${esc(nameOf(missed))}.` : `${percent(missed.s.failed / (missed.s.completed + missed.s.failed))} of the requests failed at ${esc(nameOf(missed))}.`;
  const later = above.length ? ` Met again at ${namesOf(above)}, which does not count because a lower load misses it.` : '';
  return `${begin}${held ? `up to ${load(held)}. ` : 'no measured load meets it; '}${miss}${later}${excluded}`;
}
/* The reader's limit and the highest load that meets it, in the chart of the metric. */
function ownMarks(s, chart) {
  if (chart !== ownFigure()) return '';
  const at = s.y(own.limit), mark = ({ held }, i) => {
    const x = s.x(s.get(held)), y = s.y(ownValue(held)), label = `meets your SLO: ${nameOf(held)}`, half = 3.2 * label.length;
    return `<g data-own="${keyOf(held)}"><circle class="own" cx="${r1(x)}" cy="${r1(y)}" r="10"/>${line(x, y + 10, x, s.lower, 'own')}</g>${text(Math.max(s.left + half, Math.min(s.right - half, x)), s.lower - 8 - 14 * i, label, 'own halo', 'middle')}`;
  };
  return `<g data-own-limit="${own.limit}">${line(s.left, at, s.right, at, 'own')}</g>${text(s.right - 4, at - 5, `your SLO: ${ownName()}`, 'own halo', 'end')}${each(ownAnswers().filter((a) => a.ordered && a.held && s.get(a.held) != null), mark)}`;
}

/* The form. Its first values are the SLO of the run, which is not in force until the reader changes or shows it. */
const limitFor = (k) => limitsOfRun(RUNS[0]).find((o) => o.metric === k)?.limit_ms ?? '';
const firstMetric = () => limitsOfRun(RUNS[0]).map((o) => o.metric).find((k) => sloMetrics().includes(k)) || sloMetrics()[0];
const tailOf = (ps) => { const wanted = goalsOfRun(RUNS[0])[0]?.p ?? 99; return ps.includes(wanted) ? wanted : ps.at(-1); };
let formOf = ''; // the options of the form
function sloForm() {
  const form = $('slo');
  form.hidden = !canChoose();
  if (own && (form.hidden || !sloPercentiles(own.metric).includes(own.p))) own = null; // another choice of runs
  if (form.hidden) { put($('slo-answer'), ''); return; }
  const now = own?.metric || (formOf ? $('slo-metric').value : firstMetric()), metric = sloMetrics().includes(now) ? now : firstMetric(), ps = sloPercentiles(metric), options = JSON.stringify([sloMetrics(), metric, ps]);
  if (options !== formOf) {
    const kept = formOf ? [+$('slo-p').value, $('slo-limit').value] : [null, limitFor(metric)], focus = document.activeElement?.id, p = own?.p ?? (ps.includes(kept[0]) ? kept[0] : tailOf(ps)), select = (id, list, text, value) => `<select id="${id}">${each(list, (v) => `<option value="${v}"${v === value ? ' selected' : ''}>${text(v)}</option>`)}</select>`;
    formOf = options;
    put(form, `<fieldset><legend>Choose an SLO</legend><label><span>Metric</span>${select('slo-metric', sloMetrics(), (k) => k.toUpperCase(), metric)}</label><label><span>Percentile</span>${select('slo-p', ps, (v) => `p${v}`, p)}</label>
      <label><span>Limit, ms</span>≤ <input type="number" id="slo-limit" min="0" step="any" value="${esc(own?.limit ?? kept[1])}"> ms</label> <button class="btn" id="slo-show">Show</button><button class="btn" type="button" id="slo-clear">Clear</button></fieldset>`);
    if (focus?.startsWith('slo-')) $(focus)?.focus();
  }
  if (own) { $('slo-p').value = own.p; if (+$('slo-limit').value !== own.limit) $('slo-limit').value = own.limit; }
  $('slo-show').hidden = !!own; $('slo-clear').hidden = !own;
  put($('slo-answer'), own ? `<p>At ${esc(ownName())}${ownAnswers().length > 1 ? ':<br>' : ': '}${ownAnswers().map(ownSentence).join('<br>')}</p><p class="foot">Your own SLO. Verdict, answer and recommended load of the run do not depend on it.</p>` : '');
}
const oneSLO = (metric, p, limit) => (sloMetrics().includes(metric) && sloPercentiles(metric).includes(p) && limit > 0 ? { metric, p, limit } : null);
function readForm(changed) {
  const metric = $('slo-metric').value, ps = sloPercentiles(metric), p = +$('slo-p').value, at = $('slo-limit');
  if (changed === 'slo-metric' && limitFor(metric)) at.value = limitFor(metric);
  choose(oneSLO(metric, ps.includes(p) ? p : tailOf(ps), +at.value));
}
function choose(slo) { own = slo; drawSweep(); setLink(); }
const SLO_LINK = /^(ttft|tpot|itl|e2el)[:.]p([\d.]+)<=?([\d.]+)(ms|s)$/; // the syntax of tacho find
function goalOf(text) {
  const [, metric, p, limit, unit] = SLO_LINK.exec(text) || [];
  return metric ? { metric, p: +p, limit: limit * (unit === 's' ? 1000 : 1) } : null;
}
const sloLink = () => (own ? [`slo=${encodeURIComponent(`${own.metric}:p${own.p}<${own.limit}ms`)}`] : []);
function sloOfLink(text) {
  const goal = goalOf(text || '');
  return goal && canChoose() ? oneSLO(goal.metric, goal.p, goal.limit) : null;
}
