/* ---------- differences between runs ---------- */
const WORDS = { '~': 'no significant difference', 'no test': 'not tested' };
const CARDS = 760; // below this width, each quantity of two runs is a card
const FOREST = { row: 30, edge: 12, most: 4, least: -2.5 }; // limits of the scale as logarithms of a ratio
const ratio = (share) => Math.log(Math.max(1 + share, 1e-9));
const TICKS = [0, -0.02, 0.02, -0.05, 0.05, -0.1, 0.1, -0.2, 0.2, -0.5, 0.5, 1, -0.8, 2, 4, -0.9, 9, 19, 49];

/* A difference and its interval as shares of the first run; null if the first value is 0. */
function sharesOf(row, d) {
  const base = Math.abs(row.values[0]);
  return d?.share == null || !base ? null : { at: d.difference / base, low: d.low == null ? null : d.low / base, high: d.high == null ? null : d.high / base };
}
/* The scale of all levels: logarithms of ratios, so that half and double are equally far from 0 %. */
function forestScale(levels, w) {
  const ends = levels.flatMap((l) => l.rows).flatMap((r) => r.deltas.map((d) => sharesOf(r, d))).filter(Boolean).flatMap((s) => [s.at, s.low ?? s.at, s.high ?? s.at]).map(ratio);
  const lo = Math.max(Math.min(...ends, ratio(-0.02)) * 1.1, FOREST.least), hi = Math.min(Math.max(...ends, ratio(0.02)) * 1.1, FOREST.most);
  const f = linear(lo, hi, FOREST.edge, w - FOREST.edge), ticks = [];
  for (const t of TICKS) if (ratio(t) >= lo && ratio(t) <= hi && ticks.every((other) => Math.abs(f(ratio(t)) - f(ratio(other))) > 48)) ticks.push(t);
  const x = (share) => Math.max(FOREST.edge, Math.min(w - FOREST.edge, f(ratio(share))));
  return { x, ticks, w };
}
const percentTick = (t) => (t ? `${signed(Math.round(t * 100))} %` : '0 %');
const forestGrid = (s, h) => each(s.ticks, (t) => line(s.x(t), 0, s.x(t), h, t ? 'grid-line' : 'zero-line'));
function forestHead(s) {
  const anchor = (at) => (at < 28 ? 'start' : at > s.w - 28 ? 'end' : 'middle');
  return `<svg width="${s.w}" height="16" viewBox="0 0 ${s.w} 16" aria-hidden="true">${each(s.ticks, (t) => text(s.x(t), 12, percentTick(t), '', anchor(s.x(t))))}</svg>`;
}
function forestMark(s, row, d) {
  const h = FOREST.row, y = h / 2, v = sharesOf(row, d);
  if (!v) return `<svg width="${s.w}" height="${h}" viewBox="0 0 ${s.w} ${h}" aria-hidden="true">${forestGrid(s, h)}</svg>`;
  const sure = v.low == null ? '' : line(s.x(v.low), y, s.x(v.high), y, 'interval') + line(s.x(v.low), y - 4, s.x(v.low), y + 4, 'interval') + line(s.x(v.high), y - 4, s.x(v.high), y + 4, 'interval');
  return `<svg class="${esc(d.verdict === '~' ? 'same' : d.verdict.replace(' ', '-'))}" width="${s.w}" height="${h}" viewBox="0 0 ${s.w} ${h}" aria-hidden="true">${forestGrid(s, h)}${sure}<circle cx="${r1(s.x(v.at))}" cy="${y}" r="4.5"/></svg>`;
}
function changeText(row, d) {
  if (!d) return '–';
  const relative = d.share != null && row.unit !== '%', by = relative ? 100 / Math.abs(row.values[0]) : 1, unit = relative ? ' %' : row.unit === '%' ? ' points' : ` ${row.unit}`;
  return `${signed(d.difference * by)}${unit}${d.low == null ? '' : ` <small>[${signed(d.low * by)}, ${signed(d.high * by)}]</small>`}`;
}
const quantityName = (c, row) => `${c.titles[row.name] || row.name}${row.unit ? ` (${row.unit === 'tok/s' || row.unit === 'req/s' || row.unit === 'ms' || row.unit === '%' ? row.unit : esc(row.unit)})` : ''}`;
function forestRow(c, s, row) {
  const { sides } = c.comparison, several = sides.length > 2;
  return each(row.values.slice(1), (v, i) => {
    const d = row.deltas[i + 1], verdict = d?.verdict || 'no test';
    const tip = d ? keyed([[quantityName(c, row), ''], ['difference', `${signed(d.difference)} ${row.unit}`], ...(d.adjusted == null ? [] : [['p, adjusted', num(d.adjusted)]]), ...(d.no_test ? [['not tested', d.no_test]] : [])]) : '';
    return `<tr data-quantity="${esc(row.name)}">${i ? '' : `<th scope="row" rowspan="${row.values.length - 1}">${esc(quantityName(c, row))}</th><td class="value" data-name="${esc(sides[0].name)}" rowspan="${row.values.length - 1}">${num(row.values[0])}</td>`}
      ${several ? `<td class="who">${swatch(ink(`run${(i + 1) % PALETTE}`), breakable(sides[i + 1].name.replace(/ \(PREDICTED\)$/, '')))}</td>` : ''}<td class="value" data-name="${esc(sides[i + 1].name)}">${num(v)}</td><td class="forest" data-tip="${esc(tip)}">${forestMark(s, row, d)}</td>
      <td class="change" data-name="Change" ${d ? `data-delta="${d.difference}"` : ''}>${changeText(row, d)}</td><td class="verdict ${esc(verdict.replace(' ', '-'))}">${esc(WORDS[verdict] || verdict)}</td></tr>`;
  });
}
function forestLevel(c, l, i, s, cards) {
  const { sides } = c.comparison, several = sides.length > 2, open = i < (cards || several ? 1 : 3);
  const head = `<tr><th scope="col">Quantity</th><th scope="col" class="run-name">${esc(sides[0].name)}</th>${several ? '<th scope="col" class="who">Run</th>' : ''}<th scope="col" class="run-name">${several ? 'Value' : esc(sides[1].name)}</th><th scope="col" class="forest"><span class="axis-name">Change from ${esc(sides[0].name)}</span>${forestHead(s)}</th><th scope="col" class="change">Change [95 % interval]</th><th scope="col" class="verdict">Result</th></tr>`;
  return `<details ${open ? 'open' : ''}><summary><b>${esc(c.loads[i] || l.name || 'All requests')}</b>: ${summaryOf(l)}</summary><div class="scroll" tabindex="0" role="region" aria-label="Differences at ${esc(c.loads[i] || 'all requests')}"><table class="forest ${cards ? 'cards' : ''}">
    <thead>${head}</thead><tbody>${each(l.rows, (r) => forestRow(c, s, r))}</tbody></table></div></details>`;
}
function summaryOf(l) {
  const all = l.rows.flatMap((r) => r.deltas).filter(Boolean), n = (v) => all.filter((d) => d.verdict === v).length;
  return ['better', 'worse', 'more', 'less', '~', 'no test', 'INVALID'].filter(n).map((v) => `${n(v)} ${WORDS[v] || v}`).join(', ');
}
/* Explains only the marks that are shown. */
function legendOf(c) {
  const deltas = (c.comparison.levels || []).flatMap((l) => l.rows.flatMap((r) => r.deltas)).filter(Boolean), tests = deltas.filter((d) => d.p != null).length, reasons = [...new Set(deltas.map((d) => d.no_test).filter(Boolean))];
  return [
    deltas.some((d) => d.low != null) ? 'A dot is the measured change, and its line the 95 % confidence interval.' : '',
    tests ? `A difference is significant if p is at most ${`${tick(c.comparison.alpha * 100)} %`}, adjusted for ${count(tests)} tests.` : '',
    ...reasons.map((r) => `Hollow dots, not tested: ${r}.`),
  ].filter(Boolean).join(' ');
}
function comparisonView(c) {
  const { sides, levels = [], unmatched = [], warnings = [] } = c.comparison, names = (unmatched || []).map((a) => `${a.name || 'all requests'} (${sides[a.side].name})`);
  const wide = $('comparison').clientWidth || innerWidth - 64, cards = wide < CARDS && sides.length === 2, others = sides.length > 2 ? 880 : 690; // width of the other columns
  const width = cards ? wide : Math.max(240, Math.min(wide - others, 800));
  const scale = forestScale(levels || [], width);
  const answer = (text, i) => `<p class="answer ${c.conclusions.length > 1 ? 'many' : ''}">${c.conclusions.length > 1 ? swatch(ink(`run${(i + 1) % PALETTE}`), '') : ''}${esc(text)}</p>`;
  put($('comparison'), `${each(c.conclusions, answer)}
    <ul class="reasons">${each(warnings || [], (w) => `<li><b>note</b>: ${esc(w)}</li>`)}</ul>
    ${levels?.length ? each(levels, (l, i) => forestLevel(c, l, i, scale, cards)) : '<p class="empty">The runs have no level in common. “Charts” shows their curves on the same axes.</p>'}
    ${names.length ? `<p class="foot">Levels of one run only: ${esc(names.join('; '))}</p>` : ''}
    <p class="foot">${esc(legendOf(c))}</p>`);
}
