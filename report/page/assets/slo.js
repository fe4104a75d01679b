/* ---------- 1d. the SLO of the reader ---------- */
/* The reader writes an SLO in the grammar of --slo, and the page marks the highest load that meets it. Verdict, answer, numbers and
   recommended load of the run stay as published. */
let own = null; // {text, goals}
const canChoose = () => manyLevels() && concluded();
const ownOf = (k) => own?.goals.find((g) => g.metric === k && g.p) ?? null; // the goal that the chart of a latency shows
const ownCharted = () => own?.goals.find((g) => g.p && LATENCIES.includes(g.metric)) ?? null;
const ownFigure = () => (ownCharted() ? `${ownCharted().metric.toUpperCase()} over load` : '');
const ownLimits = () => own.goals.filter((g) => g.metric === ownCharted()?.metric && g.p).map((g) => g.limit);
const inUnit = (v, unit) => (unit === 'ms' ? time(v) : `${num(v)} ${unit}`);
const goalName = (g) => `${g.title} ${g.above ? '≥' : '≤'} ${tick(g.limit)} ${g.unit}`;
const ownName = () => own.goals.map(goalName).join(', ');
const failedShare = (l) => l.s.failed / (l.s.completed + l.s.failed || 1);
function goalValue(g, l) {
  if (!g.metric) return 100 * failedShare(l);
  const d = statsOf(l.s.metrics, g.metric);
  return (g.p ? d?.all.get(g.p) : d?.mean) ?? null;
}
/* How a level does at a goal. This is the only place that judges a level, with the rule of Condition.Standing in the package metric. */
function goalState(g, l) {
  if (isOff(l, g.metric || g.name)) return 'INVALID';
  const allowed = !g.p ? 0.01 : g.above ? g.p / 100 : 1 - g.p / 100, v = goalValue(g, l);
  if (g.metric && failedShare(l) > allowed + 1e-9) return 'missed'; // a failed request is infinitely slow
  return v == null ? 'not measured' : (g.above ? v < g.limit : v > g.limit) ? 'missed' : 'met';
}
function ownState(l) {
  if (!own) return null;
  const states = own.goals.map((g) => goalState(g, l));
  return ['missed', 'INVALID', 'not measured'].find((s) => states.includes(s)) || 'met';
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
  const words = [l.verdict === 'VALID' ? '' : l.verdict, `${num(l.rps)} requests/s served`, l.tokens ? `${num(l.tokens)} tokens/s` : '', l.s.failed ? `${percent(failedShare(l))} of the requests failed` : '', ...own.goals.filter((g) => g.p >= 99 && few(l)).map((g) => `too few requests for a p${g.p}`)];
  return `(${esc(words.filter(Boolean).join(', '))})`;
}
function ownSentence({ one, judged, missed, ordered, held, met, above, invalid }) {
  const name = [several() ? one.run.name : '', one.name].filter(Boolean).join(', '), load = (l) => `<b>${esc(nameOf(l))}</b> ${servedAt(l)}`;
  const excluded = invalid.length ? ` Excluded because INVALID: ${namesOf(invalid)}.` : '', begin = name ? `${swatch(lineInk(one), `<b>${esc(name)}</b>`)}: ` : '';
  if (!judged.length) return `${begin}no level can be judged.${excluded}`;
  if (!ordered) return `${begin}met at ${namesOf(met) || 'no level'}${missed ? `, missed at ${namesOf(judged.filter((l) => ownState(l) === 'missed'))}` : ''}.${excluded}`;
  if (!missed) return `${begin}no limit found, because all measured loads meet it; the highest is ${load(held)}.${excluded}`;
  const broken = own.goals.find((g) => goalState(g, missed) === 'missed'), v = goalValue(broken, missed), slow = broken.metric && v != null && (broken.above ? v < broken.limit : v > broken.limit);
  const miss = slow ? `${broken.title} is ${inUnit(v, broken.unit)} at ${esc(nameOf(missed))}.` : `${percent(failedShare(missed))} of the requests failed at ${esc(nameOf(missed))}.`;
  const later = above.length ? ` Met again at ${namesOf(above)}, which does not count because a lower load misses it.` : '';
  return `${begin}${held ? `up to ${load(held)}. ` : 'no measured load meets it; '}${miss}${later}${excluded}`;
}
/* The reader's limit and the highest load that meets it, in the chart of the metric. */
function ownMarks(s, chart) {
  if (chart !== ownFigure()) return '';
  const shownGoal = ownCharted(), mark = ({ held }, i) => {
    const x = s.x(s.get(held)), y = s.y(goalValue(shownGoal, held)), label = `meets your SLO: ${nameOf(held)}`, half = 3.2 * label.length;
    return `<g data-own="${keyOf(held)}"><circle class="own" cx="${r1(x)}" cy="${r1(y)}" r="10"/>${line(x, y + 10, x, s.lower, 'own')}</g>${text(Math.max(s.left + half, Math.min(s.right - half, x)), s.lower - 8 - 14 * i, label, 'own halo', 'middle')}`;
  };
  const limits = each(own.goals.filter((g) => g.p && g.metric === shownGoal.metric), (g) => `<g data-own-limit="${g.limit}">${line(s.left, s.y(g.limit), s.right, s.y(g.limit), 'own')}</g>${text(s.right - 4, s.y(g.limit) - 5, `your SLO: ${goalName(g)}`, 'own halo', 'end')}`);
  return limits + each(ownAnswers().filter((a) => a.ordered && a.held && s.get(a.held) != null && goalValue(shownGoal, a.held) != null), mark);
}

/* The form. Its first text is the SLO of the run, which is not in force until the reader changes or shows it. */
const limitOfRun = () => limitsOfRun(RUNS[0])[0];
const firstText = () => sloOfRun(RUNS[0]) || (limitOfRun() ? `${limitOfRun().metric}:p99<${limitOfRun().limit_ms}ms` : '');
function sloForm() {
  const form = $('slo');
  form.hidden = !canChoose();
  if (form.hidden) { own = null; put($('slo-answer'), ''); return; }
  if (!$('slo-text')) put(form, `<fieldset><legend>Your SLO</legend><label><span>SLO, as in --slo</span><input id="slo-text" size="34" spellcheck="false" autocomplete="off" placeholder="ttft:p99&lt;500ms,error&lt;1%" value="${esc(firstText())}"></label> <button class="btn" id="slo-show">Show</button><button class="btn" type="button" id="slo-clear">Clear</button></fieldset>`);
  if (own && document.activeElement !== $('slo-text')) $('slo-text').value = own.text;
  $('slo-show').hidden = !!own; $('slo-clear').hidden = !own;
  put($('slo-answer'), own ? `<p>At ${esc(ownName())}${ownAnswers().length > 1 ? ':<br>' : ': '}${ownAnswers().map(ownSentence).join('<br>')}</p><p class="foot">Your own SLO. Verdict, answer and recommended load of the run do not depend on it.</p>` : '');
}
/* Reads the form. A wrong text is named only when the reader asks for the answer, not while it is written. */
function readForm(asked) {
  const { value } = $('slo-text'), goals = goalsOf(value);
  choose(goals.length ? { text: value.trim(), goals } : null);
  if (asked && !own) try { parseSLO(value); } catch (e) { put($('slo-answer'), `<p class="foot">${esc(e.message)}</p>`); }
}
function choose(slo) { own = slo; drawSweep(); setLink(); }
const sloLink = () => (own ? [`slo=${encodeURIComponent(own.text)}`] : []);
function sloOfLink(text) {
  const goals = goalsOf(text);
  return goals.length && canChoose() ? { text, goals } : null;
}
