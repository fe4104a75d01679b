/* ---------- how runs differ ---------- */
const WORDS = { '~': 'no difference', better: 'better', worse: 'worse', more: 'more', less: 'less', 'no test': 'no test' };
const signed = (v, unit) => (v == null ? '–' : `${v > 0 ? '+' : v < 0 ? '−' : '±'}${num(Math.abs(v))}${unit}`);
function deltaCell(row, d) {
  if (!d) return '<td>–</td>';
  const base = Math.abs(row.values[0]), [by, unit] = d.share == null ? [1, ` ${row.unit}`] : [100 / base, ' %']; // both in shares of the first, or in the row's unit
  const change = signed(d.difference * by, unit), sure = d.low == null ? '' : ` <small>[${signed(d.low * by, unit)}, ${signed(d.high * by, unit)}]</small>`;
  const tip = keyed([['difference', signed(d.difference, ` ${row.unit}`)], ...(d.p == null ? [] : [['p', num(d.p)]]), ...(d.no_test ? [['no test', d.no_test]] : [])]);
  return `<td class="side" data-delta="${d.difference}" data-tip="${esc(tip)}">${change}${sure} <b class="${esc(d.verdict)}">${d.verdict === '~' ? '~' : ''} ${esc(WORDS[d.verdict] || d.verdict)}</b></td>`;
}
function comparisonView(c) {
  const head = `<tr><th></th><th scope="col">${esc(c.sides[0].name)}</th>${each(c.sides.slice(1), (s) => `<th scope="col">${esc(s.name)}</th><th scope="col">against the first</th>`)}</tr>`;
  const row = (r) => `<tr><td>${esc(r.name)}, ${esc(r.unit)}</td><td>${num(r.values[0])}</td>${each(r.values.slice(1), (v, i) => `<td>${num(v)}</td>${deltaCell(r, r.deltas[i + 1])}`)}</tr>`;
  const level = (l, open) => `<details ${open ? 'open' : ''}><summary>${esc(l.name || 'all requests')}: ${summaryOf(l)}</summary><div class="scroll"><table><thead>${head}</thead><tbody>${each(l.rows, row)}</tbody></table></div></details>`;
  const levels = c.levels || [], names = (c.unmatched || []).map((a) => `${a.name || 'all requests'} (${c.sides[a.side].name})`);
  put($('comparison'), `<h3>How they differ from ${esc(c.sides[0].name)}</h3>
    <ul class="reasons">${each(c.warnings || [], (w) => `<li><b>note</b>: ${esc(w)}</li>`)}</ul>
    ${levels.length ? each(levels, (l, i) => level(l, i === 0)) : '<p class="empty">They have no level in common: the curves below share their axes all the same.</p>'}
    ${names.length ? `<p class="foot">Levels that only one has: ${esc(names.join('; '))}</p>` : ''}
    ${levels.length ? `<p class="foot">[…] holds the difference 95 times of 100; ~ is a difference that may be chance, at ${percent(c.alpha)} for all rows together.</p>` : ''}`);
}
function summaryOf(l) {
  const all = l.rows.flatMap((r) => r.deltas).filter(Boolean), n = (v) => all.filter((d) => d.verdict === v).length;
  return ['better', 'worse', '~'].filter(n).map((v) => `${n(v)} ${WORDS[v]}`).join(', ') || 'no test';
}
