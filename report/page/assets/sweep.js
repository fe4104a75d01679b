/* ---------- 2. load: curves, Pareto, all levels ---------- */
const SWEEP = 230; // height of these charts
/* Runs share the axis of what was asked if none has levels of another load. */
const askedOf = (l) => valueOf(l, loadOption());
const comparable = () => shown().every((r) => r.levels.length < 2 || loadOption([r]) === loadOption() || !OWN[loadOption([r])]) && levelsShown().some((l) => askedOf(l) != null);
const byPlace = () => !several() && !comparable(); // a run whose levels are no numbers: one after the other
const hasFlight = () => levelsShown().every((l) => l.flight != null);
const xKind = () => (state.x === 'asked' && !byPlace() && !comparable() ? (hasFlight() ? 'flight' : 'served') : state.x);
const X = {
  asked: { get: (l) => (byPlace() ? l.i : askedOf(l)), unit: () => (byPlace() ? 'level' : `asked, ${UNITS[loadOption()] || loadOption()}`) },
  served: { get: (l) => l.rps, unit: () => 'served, requests/s' },
  flight: { get: (l) => l.flight, unit: () => 'in flight, mean' },
};
function xIsLog() { // where levels double, a log axis keeps them apart
  const v = levelsShown().map(X[xKind()].get).filter((x) => x > 0);
  return xKind() !== 'served' && v.length > 2 && (xKind() === 'flight' || !byPlace()) && most(v) / fewest(v) > 20;
}
const sweepBox = (w, left = 46) => ({ left, right: w - 30, upper: 24, lower: SWEEP - 36 });
const manyLevels = () => RUNS.some((r) => r.levels.length > 1) || RUNS.length > 1;
const sparse = () => `p50 to p99${levelsShown().some((l) => l.ttft?.sure.p50.length) ? ' · bars: 95 %, steady state' : ''}${levelsShown().some(few) ? ' · hollow: too few' : ''}`;
function xTicks(s, w) {
  if (xKind() !== 'asked') return s.x.ticks(w / 60);
  const all = [...new Set(levelsShown().map(s.get))].filter((v) => v != null).sort((p, q) => p - q);
  return xIsLog() && all.length > w / 30 ? s.x.ticks(w / 40) : all;
}
const xText = (v) => (xKind() === 'asked' && byPlace() ? shortName(first().levels[v] || first().levels[0]) : short(v));
/* A chart over load. A line is {get(level), label?, sure?(level), clock?(level), tail?, apart?}: sure is its 95 % interval, drawn as a bar. */
function sweep(name, title, note, yUnit, lines, plain) {
  const yLog = () => state.log && !plain, straight = () => plain && xKind() === 'asked' && comparable() && loadOption() === 'request-rate';
  const drawn = () => lines.filter((k) => levelsShown().some((l) => k.get(l) != null));
  const scales = (w) => {
    const b = sweepBox(w), get = X[xKind()].get, ls = levelsShown(), all = ls.flatMap((l) => drawn().flatMap((k) => [k.get(l), ...sureOf(k, l)])).concat(yLog() ? limitsOf(drawn()) : []);
    const xs = ls.map(get).filter((v) => v != null), whole = xKind() === 'asked' && byPlace();
    const span = whole ? [-0.3, most(xs) + 0.3] : range(xs, xIsLog());
    return { ...b, get, x: scaleFor(xIsLog())(...span, b.left, b.right), y: scaleFor(yLog())(...range(all, yLog()), b.lower, b.upper) };
  };
  const ends = (k) => [first().levels[0], first().levels.at(-1)].map((l) => `${num(k.get(l))} at ${nameOf(l)}`).join(', ');
  figure('sweep-charts', {
    name, title, note: () => `${note()}${straight() ? ' · dashed: all that is asked' : ''}`, has: () => drawn().length > 0, say: () => `${drawn().map((k) => `${k.label || name}: ${ends(k)}`).join('; ')}.`,
    draw(w) {
      const s = scales(w);
      return svg(w, SWEEP, markOf(s) + limitLines(drawn(), s) + axes({ ...s, xs: xTicks(s, w), ys: s.y.ticks(yLog() ? 7 : 5), xUnit: X[xKind()].unit(), yUnit, xText })
        + (straight() ? diagonal(s) : '') + each(shown(), (r) => each(seriesOf(r), (one) => sweepLines(one, drawn(), s)))
        + endLabels(shown().flatMap((r) => seriesOf(r).flatMap((one) => lineEnds(one, drawn(), s))), s.upper, s.lower, w));
    },
    table: () => perLevel([...drawn().flatMap((k) => [`${name} ${k.label || ''}`.trim(), ...(k.sure ? ['95 % low', '95 % high'] : [])]), 'served requests/s'],
      (l) => [...drawn().flatMap((k) => [k.get(l), ...(k.sure ? [sureOf(k, l)[0], sureOf(k, l)[1]] : [])]), l.rps]),
  });
}
const sureOf = (k, l) => k.sure?.(l) || [];
const between = (pair) => pair.map(num).join(' – ');
/* The mark of the highest load that holds the goal, as on the terminal: a line there, and a band up to the load that misses it. */
function markOf(s) {
  const { levels, conclusion: { held, missed } } = first(), a = levels[held?.level], b = levels[missed?.level];
  if (!a || !b || several() || s.get(a) == null || s.get(b) == null) return '';
  const at = s.x(s.get(a)), [p, q] = [at, s.x(s.get(b))].sort((m, n) => m - n), name = a.s.config.goodput?.length ? 'SLO' : 'knee';
  return `<rect class="knee" x="${r1(p)}" y="${s.upper}" width="${r1(Math.max(2, q - p))}" height="${s.lower - s.upper}"/>`
    + `<g data-mark="${name}" data-value="${s.get(a)}">${line(at, s.upper, at, s.lower, 'rule dash2')}</g>` + text(at, s.upper - 4, name, '', 'middle');
}
/* Limits of the SLO: a line in the chart of their metric. */
const limitsOf = (lines) => (several() ? [] : (first().levels[0]?.s.config.goodput || []).filter((o) => lines.some((k) => k.metric === o.metric)).map((o) => o.limit_ms));
const limitLines = (lines, s) => each(limitsOf(lines).filter((v) => s.y(v) >= s.upper && s.y(v) <= s.lower), (v) => `<g data-limit="${v}">${line(s.left, s.y(v), s.right, s.y(v), 'rule dash1')}</g>${text(s.left + 4, s.y(v) - 4, `limit ${time(v)}`, 'halo')}`);
function diagonal(s) {
  const m = Math.min(s.x.back(s.right), s.y.back(s.upper)), from = Math.max(s.x.back(s.left), s.y.back(s.lower));
  return line(s.x(from), s.y(from), s.x(m), s.y(m), 'axis-line dash1');
}
const lineInk = (one) => (one.k && !several() ? mix(runInk(one.run), ink('paper'), Math.min(0.6, 0.25 * one.k)) : runInk(one.run)); // the lines of one run differ in strength
const dashOfLine = (one) => (one.k ? `dash${1 + (one.k - 1) % 3}` : dashOf(one.run));
function pointsOf(ls, x, y) { // repeats share a place: a line goes through their mean
  const at = new Map();
  for (const l of ls) if (x(l) != null && y(l) != null) at.set(x(l), [...(at.get(x(l)) || []), y(l)]);
  return [...at].map(([v, ys]) => [v, meanOf(ys)]).sort((p, q) => p[0] - q[0]);
}
function lineEnds(one, lines, s) {
  return lines.flatMap((k, n) => {
    const end = pointsOf(one.levels, s.get, k.get).at(-1);
    const label = one.name ? (n || one.levels.length < 2 ? '' : one.name) : several() ? '' : k.label;
    return end && label ? [{ x: s.x(end[0]) + 9, y: s.y(end[1]), text: label.length > 18 ? `${label.slice(0, 17)}…` : label, colour: lineInk(one) }] : [];
  });
}
function sweepLines(line0, lines, s) {
  const colour = lineInk(line0), ls = line0.levels;
  const bounds = (k, l) => [...(sureOf(k, l).length ? [[`${k.label}, 95 % sure`, between(sureOf(k, l))]] : []), ...(k.clock?.(l)?.length ? [[`${k.label}, by the clock`, between(k.clock(l))]] : [])];
  const tip = (l) => [[fullName(l), ''], ...lines.map((k) => [k.label || 'value', num(k.get(l))]), ...lines.flatMap((k) => bounds(k, l)), ['served/s', num(l.rps)], ['requests', count(l.s.requests)]];
  const bars = (k) => each(ls.filter((l) => sureOf(k, l).length && s.get(l) != null), (l) => errorBar(s.x(s.get(l)), ...sureOf(k, l).map(s.y), loadInk(l)));
  const one = (k, n) => curve(path(pointsOf(ls, s.get, k.get), s.x, s.y), colour, `${n ? 'thin' : ''} ${dashOfLine(line0)}`) + bars(k)
    + each(ls.filter((l) => s.get(l) != null && k.get(l) != null), (l) => dot(l, s.x(s.get(l)), s.y(k.get(l)), n ? 3.5 : 4.5, tip(l), k.tail && few(l), k.get(l)));
  const low = pointsOf(ls, s.get, lines[0].get), high = lines[1] && !lines[1].apart && !several() ? pointsOf(ls, s.get, lines[1].get) : [];
  const filled = low.length === high.length ? area(low.map((p, i) => [p[0], p[1], high[i][1]]), s.x, s.y) : '';
  return `<path class="between" d="${filled}" data-css="fill:${colour}"/>${each(lines, one)}`;
}
const errorBar = (x, a, b, colour) => `<path class="error" d="M${r1(x)} ${r1(a)}V${r1(b)}M${r1(x - 3)} ${r1(a)}h6M${r1(x - 3)} ${r1(b)}h6" data-css="stroke:${colour}"/>`;
function dot(l, x, y, r, tip, hollow, value) {
  const on = picked(l.run) === l, edge = on ? ink('ink') : hollow ? loadInk(l) : ink('paper');
  return `<circle class="pick" data-pick="${keyOf(l)}" data-value="${value}" data-tip="${esc(keyed(tip))}" cx="${r1(x)}" cy="${r1(y)}" r="${on ? r + 1.5 : r}"
    data-css="fill:${hollow ? ink('paper') : loadInk(l)};stroke:${edge};stroke-width:${on ? 2 : 1.5}"/>`;
}
function pareto() {
  const both = () => levelsShown().filter((l) => l.user && l.gpu), counted = () => levelsShown().every((l) => l.s.figures?.output_per_gpu != null || !l.gpu);
  const scales = (w) => {
    const ls = both(), b = sweepBox(w, 46), top = (k) => above(most(ls.map((l) => l[k])) * 1.03);
    return { ...b, x: linear(0, top('user'), b.left, b.right), y: linear(0, top('gpu'), b.lower, b.upper) };
  };
  const reach = (r) => most(r.levels.map((l) => l.user * l.gpu)), unit = () => (counted() ? 'tokens/s per GPU' : 'output tokens/s');
  const named = (l, s, low) => { const below = low && s.x(l.user) > s.left + 50; return dot(l, s.x(l.user), s.y(l.gpu), 4.5, [[fullName(l), ''], [unit(), num(l.gpu)], ['per user', num(l.user)]], false, l.gpu)
    + (both().length > 12 && picked(l.run) !== l ? '' : text(s.x(l.user) + (below ? -8 : 8), s.y(l.gpu) + (below ? 14 : -6), shortName(l), 'halo', below ? 'end' : 'start', `fill:${runInk(l.run)}`)); };
  figure('sweep-charts', {
    name: 'Pareto', title: () => `${term(unit())} against ${term('tokens/s per user', 'per user')}`, note: 'Pareto: up and right is better', has: () => both().length > 0,
    say: () => `${both().map((l) => `${num(l.gpu)} ${unit()} at ${num(l.user)} per user`).join(', ')}.`,
    draw(w) {
      const s = scales(w), low = several() && shown().reduce((m, r) => (reach(r) < reach(m) ? r : m)); // labels of the lowest curve stand below it
      return svg(w, SWEEP, axes({ ...s, xs: s.x.ticks(5), ys: s.y.ticks(4), xUnit: 'tokens/s per user', yUnit: unit() })
        + each(shown(), (r) => each(seriesOf(r), (one) => curve(path(one.levels.map((l) => [l.user, l.gpu]), s.x, s.y), lineInk(one), dashOfLine(one))) + each(r.levels.filter((l) => l.user && l.gpu), (l) => named(l, s, r === low))));
    },
    table: () => perLevel(['tokens/s per user', unit()], (l) => [l.user, l.gpu]),
  });
}
const COLUMNS = [ // name, value, how to write it, whether it has a bar
  ['level', (l) => l.i, String], ['sent, req/s', (l) => l.sent, num], ['served, req/s', (l) => l.rps, num, true], ['good, req/s', (l) => l.good, num, true],
  ['output, tokens/s', (l) => l.tokens, num, true], ['TTFT p50, ms', (l) => l.ttft?.p50, num], ['TTFT p99, ms', (l) => l.ttft?.p99, num, true],
  ['TPOT p50, ms', (l) => l.tpot?.p50, num], ['TPOT p99, ms', (l) => l.tpot?.p99, num, true], ['ITL p99, ms', (l) => l.itl?.p99, num], ['E2EL p50, ms', (l) => l.e2el?.p50, num],
  ['in flight, mean', (l) => l.flight, num], ['ok', (l) => l.s.completed, count], ['failed', (l) => l.s.failed, count], ['verdict', (l) => l.verdict, String]];
let order = { col: 0, up: true };
function levelTable() {
  const ls = levelsShown(), columns = COLUMNS.filter(([, get], k) => !k || ls.some((l) => get(l) != null)), get = COLUMNS[order.col][1];
  const sorted = order.col ? [...ls].sort((p, q) => (get(p) > get(q) ? 1 : -1)) : [...ls];
  if (!order.up) sorted.reverse();
  const row = (l) => `<tr class="${picked(l.run) === l ? 'on' : ''}" data-pick="${keyOf(l)}">${each(columns, (c, k) => levelCell(l, c, k, ls))}</tr>`;
  put($('levels'), `<table><thead><tr>${each(columns, levelHead)}</tr></thead><tbody>${each(sorted, row)}</tbody></table>
    ${ls.some(few) ? '<p class="foot">† too few requests for a p99: run longer, or read it as a maximum</p>' : ''}
    ${ls.some((l) => columns.some(([name]) => certainty(l, name, 'unsure'))) ? '<p class="foot">~ no 95 % interval: too few independent requests, or no steady state</p>' : ''}`);
}
/* What is known of the figure of a column, such as 'TTFT p99, ms': its 95 % interval, or that it has none. */
const certainty = (l, name, of) => { const [, metric, p] = name.match(/^(TTFT|TPOT|ITL|E2EL) (p\d+)/) || []; return metric && l[metric.toLowerCase()]?.[of][p]; };
function levelHead(column) {
  const [name] = column, k = COLUMNS.indexOf(column), gloss = GLOSS[Object.keys(GLOSS).find((w) => name.startsWith(w))];
  const sort = order.col === k ? `aria-sort="${order.up ? 'ascending' : 'descending'}"` : '';
  return `<th scope="col" ${sort}><button data-sort="${k}" ${gloss ? `data-tip="${esc(esc(gloss))}"` : ''}>${esc(name).replace(', ', ',<br>')}</button></th>`;
}
function levelCell(l, [name, get, show, bar], k, all) {
  if (!k) return `<td><label><input type="radio" name="run${l.run.k}" data-pick="${keyOf(l)}" ${picked(l.run) === l ? 'checked' : ''}>${swatch(loadInk(l), esc(fullName(l)))}</label></td>`;
  const v = get(l) == null ? '–' : esc(show(get(l))) + (/^(TTFT|TPOT) p99/.test(name) && few(l) ? '<sup>†</sup>' : certainty(l, name, 'unsure') ? '~' : '');
  const share = get(l) / most(all.map(get), 1e-9), sure = certainty(l, name, 'sure');
  const tip = sure?.length ? ` data-tip="${esc(keyed([[`${fullName(l)}, ${name}`, ''], ['95 % sure', between(sure)]]))}"` : '';
  return bar && get(l) != null ? `<td class="cellbar"${tip}>${v}<i data-css="width:calc((100% - 20px) * ${share.toFixed(3)});background:${loadInk(l)}"></i></td>` : `<td${tip}>${v}</td>`;
}
