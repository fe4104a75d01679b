/* ---------- 2. load: curves, Pareto, all levels ---------- */
const SWEEP = 230; // height of these charts
/* Runs share the load axis if no run varies another load option. */
const loadValue = (l) => valueOf(l, loadOption());
const comparable = () => shown().every((r) => r.levels.length < 2 || loadOption([r]) === loadOption() || !OWN[loadOption([r])]) && levelsShown().some((l) => loadValue(l) != null);
const byPlace = () => !several() && !comparable(); // levels without a numeric load are placed one after the other
const hasFlight = () => levelsShown().every((l) => l.flight != null);
const xKind = () => (state.x === 'load' && !byPlace() && !comparable() ? (hasFlight() ? 'flight' : 'served') : state.x);
const X = {
  load: { get: (l) => (byPlace() ? l.i : loadValue(l)), unit: () => (byPlace() ? 'level' : `load, ${UNITS[loadOption()] || loadOption()}`) },
  served: { get: (l) => l.rps, unit: () => 'served, requests/s' },
  flight: { get: (l) => l.flight, unit: () => 'in flight, mean' },
};
function xIsLog() { // a log axis separates levels that double
  const v = levelsShown().map(X[xKind()].get).filter((x) => x > 0);
  return xKind() !== 'served' && v.length > 2 && (xKind() === 'flight' || !byPlace()) && most(v) / fewest(v) > 20;
}
const sweepBox = (w, height) => ({ left: 46, right: w - (several() && height === heroHeight() && w > 500 ? 130 : 44), upper: 24, lower: height - 36 });
const manyLevels = () => RUNS.some((r) => r.levels.length > 1) || RUNS.length > 1;
const sparse = (k) => `${ownOf(k)?.p === 50 ? 'p50' : `p50 to p${ownOf(k)?.p ?? 99}`}${levelsShown().some((l) => l.ttft?.sure.p50.length) ? ' · bars: 95 % interval, steady state' : ''}${levelsShown().some(few) ? ' · hollow: too few requests' : ''}`;
const crossedNote = (figure) => (levelsShown().some((l) => isOff(l, figure)) ? ' · crossed: INVALID' : '');
function xTicks(s, w) {
  if (xKind() !== 'load') return s.x.ticks(w / 60);
  const all = [...new Set(levelsShown().map(s.get))].filter((v) => v != null).sort((p, q) => p - q);
  return xIsLog() && all.length > w / 30 ? s.x.ticks(w / 40) : all;
}
const xText = (v) => (xKind() === 'load' && byPlace() ? shortName(first().levels[v] || first().levels[0]) : short(v));
/* A chart over load. A line is {get(level), label?, sure?(level), clock?(level), tail?, apart?}: sure is the 95 % interval, drawn as a bar. */
function sweep(name, title, note, yUnit, lines, plain) {
  const yLog = () => state.log && !plain, straight = () => plain && xKind() === 'load' && comparable() && loadOption() === 'request-rate';
  const drawn = () => (typeof lines === 'function' ? lines() : lines).filter((k) => levelsShown().some((l) => k.get(l) != null));
  const scales = (w) => {
    const b = sweepBox(w, heightOf(name)), get = X[xKind()].get, ls = levelsShown(), all = ls.flatMap((l) => drawn().flatMap((k) => [k.get(l), ...sureOf(k, l)])).concat(yLog() ? limitsOf(drawn()) : [], name === ownFigure() ? ownLimits() : []);
    const xs = ls.map(get).filter((v) => v != null), whole = xKind() === 'load' && byPlace();
    const span = whole ? [-0.3, most(xs) + 0.3] : range(xs, xIsLog());
    return { ...b, get, x: scaleFor(xIsLog())(...span, b.left, b.right), y: scaleFor(yLog())(...range(all, yLog()), b.lower, b.upper) };
  };
  const ends = (k) => { const ls = usable(first().levels); return ls.length ? [ls[0], ls.at(-1)].map((l) => `${num(k.get(l))} at ${nameOf(l)}`).join(', ') : 'every level is INVALID'; };
  figure(placeOf(name), {
    name, overLoad: true, title: () => `${title()}${isHero(name) ? ' over load' : ''}`, note: () => `${note()}${straight() ? ' · dashed: all requests served' : ''}${crossedNote(drawn()[0]?.figure)}`, has: () => drawn().length > 0 && manyLevels() && (isHero(name) || !HERO_ONLY.includes(name)), say: () => `${drawn().map((k) => `${k.label || name}: ${ends(k)}`).join('; ')}.`,
    draw(w) {
      const s = scales(w);
      return svg(w, heightOf(name), markOf(s, name) + axes({ ...s, xs: xTicks(s, w), ys: s.y.ticks(yLog() ? 7 : 5), xUnit: X[xKind()].unit(), yUnit, xText })
        + (straight() ? diagonal(s) : '') + each(shown(), (r) => each(seriesOf(r), (one) => sweepLines(one, drawn(), s)))
        + limitLines(drawn(), s) + ownMarks(s, name) + endLabels(shown().flatMap((r) => seriesOf(r).flatMap((one) => lineEnds(one, drawn(), s, isHero(name) && w > 700))), s.upper, s.lower, w));
    },
    table: () => perLevel([...drawn().flatMap((k) => [`${name} ${k.label || ''}`.trim(), ...(k.sure ? ['95 % low', '95 % high'] : [])]), 'served requests/s'],
      (l) => [...drawn().flatMap((k) => [k.get(l), ...(k.sure ? [sureOf(k, l)[0], sureOf(k, l)[1]] : [])]), l.rps]),
  });
}
const HERO_ONLY = ['ITL over load', 'E2EL over load'];
/* The chart of a latency over load: p50 and p99, or the percentile of the reader's SLO. */
function latencyOverLoad(k) {
  const line = (p) => ({ get: (l) => l[k]?.all.get(p) ?? null, label: `p${p}`, tail: p >= 99, metric: k, figure: k, sure: (l) => l[k]?.sure[`p${p}`], clock: (l) => l[k]?.clock[`p${p}`] });
  const name = k.toUpperCase();
  sweep(`${name} over load`, () => term(name), () => sparse(k), 'ms', () => [...new Set([50, ownOf(k)?.p ?? 99])].map(line));
}
const sureOf = (k, l) => k.sure?.(l) || [];
const between = (pair) => pair.map(num).join(' – ');
/* Marks the highest load that holds the goal with a line, as on the terminal, and the range up to the load that misses it with a band. */
function markOf(s, chart) {
  const { levels, conclusion: { held, missed } } = first(), a = levels[held?.level], b = levels[missed?.level];
  if (!a || several() || s.get(a) == null) return '';
  const at = s.x(s.get(a)), [p, q] = [at, b && s.get(b) != null ? s.x(s.get(b)) : at].sort((m, n) => m - n), name = a.s.config.goodput?.length || a.s.config.slo ? 'SLO' : 'knee', label = isHero(chart) ? `recommended: ${held.name}` : name, half = 3.2 * label.length;
  return `<rect class="knee" x="${r1(p)}" y="${s.upper}" width="${r1(Math.max(2, q - p))}" height="${s.lower - s.upper}"/>`
    + `<g data-mark="${name}" data-value="${s.get(a)}">${line(at, s.upper, at, s.lower, 'mark-line')}</g>` + text(Math.max(s.left + half, Math.min(s.right - half, at)), s.upper - 4, label, 'strong', 'middle');
}
/* Limits of the SLO are lines in the chart of their metric. */
const sameLimits = () => limitsOfRun(first()).filter((o) => shown().every((r) => limitsOfRun(r).some((p) => p.metric === o.metric && p.limit_ms === o.limit_ms))); // limits that all runs share
const limitsOf = (lines) => sameLimits().filter((o) => lines.some((k) => k.metric === o.metric)).map((o) => o.limit_ms);
const limitLines = (lines, s) => limitLinesAt(limitsOf(lines), s);
const limitLinesAt = (limits, s) => each(limits.filter((v) => s.y(v) >= s.upper && s.y(v) <= s.lower), (v) => `<g data-limit="${v}">${line(s.left, s.y(v), s.right, s.y(v), 'limit-line')}</g>${text(s.left + 4, s.y(v) - 4, `SLO ${time(v)}`, 'halo limit')}`);
function diagonal(s) {
  const m = Math.min(s.x.back(s.right), s.y.back(s.upper)), from = Math.max(s.x.back(s.left), s.y.back(s.lower));
  return line(s.x(from), s.y(from), s.x(m), s.y(m), 'axis-line dash1');
}
const lineInk = (one) => (one.k && !several() ? mix(runInk(one.run), ink('paper'), Math.min(0.6, 0.25 * one.k)) : runInk(one.run)); // the lines of one run differ in strength
const dashOfLine = (one) => (one.k ? `dash${1 + (one.k - 1) % 3}` : dashOf(one.run));
function pointsOf(ls, x, y) { // repeats share an x value, and the line goes through their mean
  const at = new Map();
  for (const l of ls) if (x(l) != null && y(l) != null) at.set(x(l), [...(at.get(x(l)) || []), y(l)]);
  return [...at].map(([v, ys]) => [v, meanOf(ys)]).sort((p, q) => p[0] - q[0]);
}
/* The stroke of a line: by its statistic in the chart of one run and one series, otherwise by run and series. */
function strokeOf(one, k) {
  if (several() || seriesOf(one.run).length > 1) return { colour: lineInk(one), dash: dashOfLine(one) };
  const { dash, ink: name } = styleOf(k.label);
  return { colour: ink(name), dash, own: ink(name) };
}
function lineEnds(one, lines, s, named) {
  return lines.flatMap((k, n) => {
    const end = pointsOf(one.levels.filter((l) => !isOff(l, k.figure)), s.get, k.get).at(-1);
    const label = one.name ? (n || one.levels.length < 2 ? '' : one.name) : several() ? (named ? `${one.run.name} ${k.label || ''}`.trim() : '') : k.label;
    return end && label ? [{ x: s.x(end[0]) + 9, y: s.y(end[1]), text: label.length > 18 ? `${label.slice(0, 17)}…` : label, colour: strokeOf(one, k).colour }] : [];
  });
}
function sweepLines(line0, lines, s) {
  const unit = (v) => (lines[0].metric ? time(v) : `${num(v)} requests/s`);
  const colour = lineInk(line0), on = (k) => line0.levels.filter((l) => !isOff(l, k.figure)); // an INVALID figure has a mark, but no line goes through it
  const bounds = (k, l) => [...(sureOf(k, l).length ? [[`${k.label}, 95 % interval`, `${between(sureOf(k, l))} ms`]] : []), ...(k.clock?.(l)?.length ? [[`${k.label}, clock bounds`, `${between(k.clock(l))} ms`]] : [])];
  const tip = (l) => [[fullName(l), ''], ...verdictRow(l), ...doubtTip(doubtOf(l, lines[0].figure)), ...lines.map((k) => [k.label || 'value', unit(k.get(l))]), ...lines.flatMap((k) => bounds(k, l)), ['served', `${num(l.rps)} requests/s`], ['requests', count(l.s.requests)]];
  const bars = (k) => each(on(k).filter((l) => sureOf(k, l).length && s.get(l) != null), (l) => errorBar(s.x(s.get(l)), ...sureOf(k, l).map(s.y), strokeOf(line0, k).own || loadInk(l)));
  const one = (k, n) => curve(path(pointsOf(on(k), s.get, k.get), s.x, s.y), strokeOf(line0, k).colour, `${n ? 'thin' : ''} ${strokeOf(line0, k).dash}`) + bars(k)
    + each(line0.levels.filter((l) => s.get(l) != null && k.get(l) != null), (l) => dot(l, s.x(s.get(l)), s.y(k.get(l)), n ? 3.5 : 4.5, tip(l), k.tail && few(l), k.get(l), strokeOf(line0, k).own, isOff(l, k.figure)));
  const low = pointsOf(on(lines[0]), s.get, lines[0].get), high = lines[1] && !lines[1].apart && !several() ? pointsOf(on(lines[1]), s.get, lines[1].get) : [];
  const filled = low.length === high.length ? area(low.map((p, i) => [p[0], p[1], high[i][1]]), s.x, s.y) : '';
  return `<path class="between" d="${filled}" data-css="fill:${colour}"/>${each(lines, one)}`;
}
const errorBar = (x, a, b, colour) => `<path class="error" d="M${r1(x)} ${r1(a)}V${r1(b)}M${r1(x - 3)} ${r1(a)}h6M${r1(x - 3)} ${r1(b)}h6" data-css="stroke:${colour}"/>`;
const verdictRow = (l) => (l.verdict === 'VALID' ? [] : [['verdict', l.verdict]]);
/* The mark of a level. If its figure is off, which means INVALID, the mark is hollow and crossed. */
function dot(l, x, y, r, tip, few, value, own, off) {
  const on = picked(l.run) === l, hollow = few || off, colour = off ? ink('bad') : own || loadInk(l), edge = on ? ink('ink') : hollow ? colour : ink('paper'), size = on ? r + 1.5 : r;
  return `<circle class="pick${off ? ' invalid' : ''}" data-pick="${keyOf(l)}" data-value="${value}" data-tip="${esc(keyed(tip))}" cx="${r1(x)}" cy="${r1(y)}" r="${size}"
    data-css="fill:${hollow ? ink('paper') : colour};stroke:${edge};stroke-width:${on ? 2 : 1.5}"/>${off ? crossMark(x, y, size) : ''}`;
}
function pareto() {
  const both = () => levelsShown().filter((l) => l.user && l.gpu), counted = () => levelsShown().every((l) => l.s.figures?.output_per_gpu != null || !l.gpu);
  const scales = (w) => {
    const ls = both(), b = sweepBox(w, heightOf('Pareto')), top = (k) => above(most(ls.map((l) => l[k])) * 1.03);
    return { ...b, x: linear(0, top('user'), b.left, b.right), y: linear(0, top('gpu'), b.lower, b.upper) };
  };
  const reach = (r) => most(usable(r.levels).map((l) => l.user * l.gpu)), unit = () => (counted() ? 'tokens/s per GPU' : 'output tokens/s');
  const named = (l, s, low) => { const below = low && s.x(l.user) > s.left + 50; return dot(l, s.x(l.user), s.y(l.gpu), 4.5, [[fullName(l), ''], ...verdictRow(l), [unit(), num(l.gpu)], ['tokens/s per user', num(l.user)], ['served', `${num(l.rps)} requests/s`], ['TTFT p99', time(l.ttft?.p99)]], false, l.gpu, null, isOff(l, 'tpot'))
    + (both().length > 12 && picked(l.run) !== l ? '' : text(s.x(l.user) + (below ? -8 : 8), s.y(l.gpu) + (below ? 14 : -6), shortName(l), 'halo', below ? 'end' : 'start', `fill:${runInk(l.run)}`)); };
  figure(placeOf('Pareto'), {
    name: 'Pareto', overLoad: true, title: () => `${term(unit(), counted() ? 'Output tok/s per GPU' : 'Output tok/s')} vs ${term('tokens/s per user', 'tok/s per user')}`, note: () => `Pareto: up and right is better${crossedNote('tpot')}`, has: () => both().length > 0 && manyLevels(),
    say: () => `${usable(both()).map((l) => `${num(l.gpu)} ${unit()} at ${num(l.user)} per user`).join(', ')}.`,
    draw(w) {
      const s = scales(w), low = several() && shown().reduce((m, r) => (reach(r) < reach(m) ? r : m)); // labels of the lowest curve are below it
      return svg(w, heightOf('Pareto'), paretoMark(s) + axes({ ...s, xs: s.x.ticks(5), ys: s.y.ticks(4), xUnit: 'tokens/s per user', yUnit: unit() })
        + each(shown(), (r) => each(seriesOf(r), (one) => curve(path(one.levels.filter((l) => !isOff(l, 'tpot')).map((l) => [l.user, l.gpu]), s.x, s.y), lineInk(one), dashOfLine(one))) + each(r.levels.filter((l) => l.user && l.gpu), (l) => named(l, s, r === low))));
    },
    table: () => perLevel(['tokens/s per user', unit()], (l) => [l.user, l.gpu]),
  });
}
/* The recommended level and the limits of TPOT in the Pareto chart. */
function paretoMark(s) {
  const { levels, conclusion: { held } } = first(), a = levels[held?.level];
  if (several()) return '';
  const limit = limitsOfRun(first()).find((o) => o.metric === 'tpot')?.limit_ms, x = limit && s.x(1000 / limit);
  const label = a && `recommended: ${held.name}`, half = 3.2 * (label || '').length;
  return (limit && x <= s.right ? `<g data-limit="${limit}">${line(x, s.upper, x, s.lower, 'limit-line')}</g>${text(x + 4, s.lower - 6, `SLO TPOT ${time(limit)}`, 'halo limit')}` : '')
    + (a?.user && a.gpu ? `<g data-mark="Pareto" data-value="${a.gpu}"><ellipse class="ring" cx="${r1(s.x(a.user))}" cy="${r1(s.y(a.gpu))}" rx="11" ry="11"/></g>${isHero('Pareto') ? text(Math.max(s.left + half, Math.min(s.right - half, s.x(a.user))), Math.max(s.upper - 2, s.y(a.gpu) - 18), label, 'strong halo', 'middle') : ''}` : '');
}
const COLUMNS = [ // name, value, format, whether the cell has a bar
  ['level', (l) => l.i, String], ['verdict', (l) => l.verdict, String], ['your SLO', ownState, String], ['sent, req/s', (l) => l.sent, num], ['served, req/s', (l) => l.rps, num, true], ['good, req/s', (l) => l.good, num, true],
  ['output, tokens/s', (l) => l.tokens, num, true], ['TTFT p50, ms', (l) => l.ttft?.p50, num], ['TTFT p99, ms', (l) => l.ttft?.p99, num, true],
  ['TPOT p50, ms', (l) => l.tpot?.p50, num], ['TPOT p99, ms', (l) => l.tpot?.p99, num, true], ['ITL p99, ms', (l) => l.itl?.p99, num], ['E2EL p50, ms', (l) => l.e2el?.p50, num],
  ['in flight, mean', (l) => l.flight, num], ['ok', (l) => l.s.completed, count], ['failed', (l) => l.s.failed, count]];
let order = { col: 0, up: true };
function levelTable() {
  const ls = levelsShown(), columns = COLUMNS.filter(([, get], k) => !k || ls.some((l) => get(l) != null)), get = COLUMNS[order.col][1];
  const sorted = order.col ? [...ls].sort((p, q) => (get(p) > get(q) ? 1 : -1)) : [...ls];
  if (!order.up) sorted.reverse();
  const row = (l) => `<tr class="${picked(l.run) === l ? 'on' : ''}${l.invalid ? ' invalid' : ''}" data-pick="${keyOf(l)}">${each(columns, (c, k) => levelCell(l, c, k, ls))}</tr>`;
  const bare = ls.filter(isBare).length;
  put($('levels'), `${bare ? `<p class="foot">No figure${bare < ls.length ? ` of ${bare} of ${ls.length} levels` : ''} has a 95 % interval: too short, or not in a steady state</p>` : ''}<table><thead><tr>${each(columns, levelHead)}</tr></thead><tbody>${each(sorted, row)}</tbody></table>
    ${ls.some(few) ? '<p class="foot">† too few requests for a p99: run longer, or read it as a maximum</p>' : ''}
    ${ls.some((l) => !isBare(l) && columns.some(([name]) => certainty(l, name, 'unsure'))) ? '<p class="foot">~ no 95 % interval: effective sample size too small, or no steady state</p>' : ''}
    ${ls.some((l) => l.no_rate) ? '<p class="foot">‡ count ÷ time of a burst or of too few requests, no rate that the server holds</p>' : ''}
    ${DOUBTS.filter(([unusable]) => ls.some((l) => columns.some(([name]) => { const r = doubtOf(l, figureOf(name)); return r && Boolean(r.unusable) === unusable; }))).map(([, words]) => `<p class="foot">${words}</p>`).join('')}`);
}
const DOUBTS = [[true, '✕ not usable: the reason is at the figure'], [false, '? in doubt: the reason is at the figure']];
/* The figure of a column: "ttft" of 'TTFT p99, ms'. */
const figureOf = (name) => (name.startsWith('good') ? 'request_goodput' : /^(TTFT|TPOT|ITL|E2EL) /.exec(name)?.[1].toLowerCase());
/* The 95 % interval of the figure in a column such as 'TTFT p99, ms', or whether the figure has none. */
const certainty = (l, name, of) => { const [, metric, p] = name.match(/^(TTFT|TPOT|ITL|E2EL) (p\d+)/) || []; return metric && l[metric.toLowerCase()]?.[of][p]; };
/* Whether no figure of a level has the interval that it could have: a sentence then replaces the marks. */
const isBare = (l) => COLUMNS.some(([name]) => certainty(l, name, 'unsure')) && !COLUMNS.some(([name]) => certainty(l, name, 'sure'));
function levelHead(column) {
  const [name] = column, k = COLUMNS.indexOf(column), gloss = GLOSS[Object.keys(GLOSS).find((w) => name.startsWith(w))];
  const sort = order.col === k ? `aria-sort="${order.up ? 'ascending' : 'descending'}"` : '';
  return `<th scope="col" ${sort}><button data-sort="${k}" ${gloss ? `data-tip="${esc(esc(gloss))}"` : ''}>${esc(name).replace(', ', ',<br>')}</button></th>`;
}
function levelCell(l, [name, get, show, bar], k, all) {
  if (!k) return `<td><label><input type="radio" name="run${l.run.k}" data-pick="${keyOf(l)}" ${picked(l.run) === l ? 'checked' : ''}>${swatch(loadInk(l), esc(fullName(l)))}</label></td>`;
  const v = get(l) == null ? '–' : esc(show(get(l))) + (/^(TTFT|TPOT) p99/.test(name) && few(l) ? '<sup>†</sup>' : !isBare(l) && certainty(l, name, 'unsure') ? '~' : '') + (l.no_rate && /^(served|good|output)/.test(name) ? '<sup>‡</sup>' : '') + doubtMark(l, figureOf(name));
  const share = get(l) / most(all.filter((one) => !isOff(one, figureOf(name))).map(get), 1e-9), sure = certainty(l, name, 'sure');
  const tip = sure?.length ? ` data-tip="${esc(keyed([[`${fullName(l)}, ${name}`, ''], ['95 % interval', between(sure)]]))}"` : '';
  return bar && get(l) != null && !isOff(l, figureOf(name)) ? `<td class="cellbar"${tip}>${v}<i data-css="width:calc((100% - 20px) * ${share.toFixed(3)});background:${loadInk(l)}"></i></td>` : `<td${tip}>${v}</td>`;
}
