/* ---------- 2. load: curves, Pareto, all levels ---------- */
const SWEEP = 230; // height of these charts
const comparable = () => shown().every((r) => r.varies === first().varies) && levelsShown().every((l) => l.value != null);
const hasFlight = () => levelsShown().every((l) => l.flight != null);
const xKind = () => (state.x === 'asked' && several() && !comparable() ? (hasFlight() ? 'flight' : 'served') : state.x);
const X = {
  asked: { get: (l) => (comparable() ? l.value : l.i), unit: () => (comparable() ? `asked, ${first().unit}` : 'level') },
  served: { get: (l) => l.rps, unit: () => 'served, requests/s' },
  flight: { get: (l) => l.flight, unit: () => 'in flight, mean' },
};
function xIsLog() { // where levels double, a log axis keeps them apart
  const v = levelsShown().map(X[xKind()].get).filter((x) => x > 0);
  return xKind() !== 'served' && v.length > 2 && (xKind() === 'flight' || comparable()) && most(v) / fewest(v) > 20;
}
const sweepBox = (w, left = 46) => ({ left, right: w - 30, upper: 24, lower: SWEEP - 36 });
const manyLevels = () => RUNS.some((r) => r.levels.length > 1) || RUNS.length > 1;
const sparse = () => `p50 to p99${levelsShown().some(few) ? '; hollow: too few requests' : ''}`;
function xTicks(s, w) {
  if (xKind() !== 'asked') return s.x.ticks(w / 60);
  const all = [...new Set(levelsShown().map(s.get))].sort((p, q) => p - q);
  return xIsLog() && all.length > w / 30 ? s.x.ticks(w / 40) : all;
}
function xText(v) {
  if (xKind() === 'asked' && !comparable()) return first().levels[v] ? shortName(first().levels[v]) : String(v);
  return v >= 10000 ? `${tick(v / 1000)}k` : tick(v);
}
/* A chart over load. A line is {get(level), label?, low?, high?}: low and high bound it, where repeats or intervals do. */
function sweep(name, title, note, yUnit, lines, plain) {
  const yLog = () => state.log && !plain;
  const drawn = () => lines.filter((k) => levelsShown().some((l) => k.get(l) != null));
  const scales = (w) => {
    const b = sweepBox(w), get = X[xKind()].get, ls = levelsShown(), all = ls.flatMap((l) => drawn().flatMap((k) => [k.get(l), ...boundsOf(k, l)]));
    const xs = ls.map(get).filter((v) => v != null), whole = xKind() === 'asked' && !comparable();
    const span = whole ? [-0.3, most(xs) + 0.3] : range(xs, xIsLog());
    return { ...b, get, x: scaleFor(xIsLog())(...span, b.left, b.right), y: scaleFor(yLog())(...range(all, yLog()), b.lower, b.upper) };
  };
  const ends = (k) => [first().levels[0], first().levels.at(-1)].map((l) => `${num(k.get(l))} at ${nameOf(l)}`).join(', ');
  figure('sweep-charts', {
    name, title, note, has: () => drawn().length > 0, say: () => `${drawn().map((k) => `${k.label || name}: ${ends(k)}`).join('; ')}.`,
    draw(w) {
      const s = scales(w), diagonalFits = plain && xKind() === 'asked' && comparable() && shown().every((r) => r.open);
      return svg(w, SWEEP, kneeBand(s) + axes({ ...s, xs: xTicks(s, w), ys: s.y.ticks(yLog() ? 7 : 5), xUnit: X[xKind()].unit(), yUnit, xText })
        + (diagonalFits ? diagonal(s) : '') + each(shown(), (r) => sweepLines(r, drawn(), s)));
    },
    table: () => perLevel([...drawn().map((k) => `${name} ${k.label || ''}`.trim()), 'served requests/s'], (l) => [...drawn().map((k) => k.get(l)), l.rps]),
  });
}
const boundsOf = (k, l) => (k.bounds?.(l) || []).filter((v) => v != null);
function kneeBand(s) {
  const { knee, levels } = first(), a = levels[knee ?? -1], b = levels[(knee ?? -2) + 1];
  if (!a || !b || several()) return '';
  const [p, q] = [s.x(s.get(a)), s.x(s.get(b))].sort((m, n) => m - n);
  return `<rect class="knee" x="${r1(p)}" y="${s.upper}" width="${r1(Math.max(2, q - p))}" height="${s.lower - s.upper}"/>` + text((p + q) / 2, s.upper - 4, 'knee', '', 'middle');
}
function diagonal(s) {
  const m = Math.min(s.x.back(s.right), s.y.back(s.upper)), from = Math.max(s.x.back(s.left), s.y.back(s.lower));
  return line(s.x(from), s.y(from), s.x(m), s.y(m), 'axis-line dash1') + text(s.x(m * 0.62) - 6, s.y(m * 0.62) - 6, 'served = asked', 'unit halo', 'end');
}
function sweepLines(run, lines, s) {
  const colour = runInk(run), ls = run.levels, last = ls.at(-1);
  const tip = (l) => [[fullName(l), ''], ...lines.map((k) => [k.label || 'value', num(k.get(l))]), ...lines.flatMap((k) => (boundsOf(k, l).length ? [[`${k.label || ''} 95 %`, boundsOf(k, l).map(num).join(' – ')]] : [])),
    ['served/s', num(l.rps)], ['requests', count(l.s.requests)]];
  const bars = (k) => each(ls.filter((l) => boundsOf(k, l).length === 2), (l) => { const [a, b] = boundsOf(k, l); return line(s.x(s.get(l)), s.y(a), s.x(s.get(l)), s.y(b), 'error'); });
  const one = (k, n) => curve(path(ls.map((l) => [s.get(l), k.get(l)]), s.x, s.y), colour, `${n ? 'thin' : ''} ${dashOf(run)}`) + bars(k)
    + (k.label && last && k.get(last) != null ? text(s.x(s.get(last)) + 9, s.y(k.get(last)) + 4, k.label, 'halo', 'start', `fill:${colour}`) : '')
    + each(ls.filter((l) => s.get(l) != null && k.get(l) != null), (l) => dot(l, s.x(s.get(l)), s.y(k.get(l)), n ? 3.5 : 4.5, tip(l), k.tail && few(l), k.get(l)));
  const between = lines.length > 1 && !several() && !lines[0].apart ? area(ls.map((l) => [s.get(l), lines[0].get(l), lines[1].get(l)]), s.x, s.y) : '';
  return `<path class="between" d="${between}" data-css="fill:${colour}"/>${each(lines, one)}`;
}
function dot(l, x, y, r, tip, hollow, value) {
  const on = picked(l.run) === l, edge = on ? ink('ink') : hollow ? loadInk(l) : ink('paper');
  return `<circle class="pick" data-pick="${keyOf(l)}" data-value="${value}" data-tip="${esc(keyed(tip))}" cx="${r1(x)}" cy="${r1(y)}" r="${on ? r + 1.5 : r}"
    data-css="fill:${hollow ? ink('paper') : loadInk(l)};stroke:${edge};stroke-width:${on ? 2 : 1.5}"/>`;
}
function pareto() {
  const both = () => levelsShown().filter((l) => l.user && l.gpu), counted = () => shown().every((r) => r.gpus);
  const scales = (w) => {
    const ls = both(), b = sweepBox(w, 46), top = (k) => above(most(ls.map((l) => l[k])) * 1.03);
    return { ...b, x: linear(0, top('user'), b.left, b.right), y: linear(0, top('gpu'), b.lower, b.upper) };
  };
  const reach = (r) => most(r.levels.map((l) => l.user * l.gpu)), unit = () => (counted() ? 'tokens/s per GPU' : 'output tokens/s');
  const named = (l, s, below) => dot(l, s.x(l.user), s.y(l.gpu), 4.5, [[fullName(l), ''], [unit(), num(l.gpu)], ['per user', num(l.user)]], false, l.gpu)
    + text(s.x(l.user) + (below ? -8 : 8), s.y(l.gpu) + (below ? 14 : -6), shortName(l), 'halo', below ? 'end' : 'start', `fill:${runInk(l.run)}`);
  figure('sweep-charts', {
    name: 'Pareto', title: () => `${term(unit())} against ${term('tokens/s per user', 'per user')}`, note: 'Pareto: up and right is better', has: () => both().length > 0,
    say: () => `${both().map((l) => `${num(l.gpu)} ${unit()} at ${num(l.user)} per user`).join(', ')}.`,
    draw(w) {
      const s = scales(w), low = several() && shown().reduce((m, r) => (reach(r) < reach(m) ? r : m)); // labels of the lowest curve stand below it
      return svg(w, SWEEP, axes({ ...s, xs: s.x.ticks(5), ys: s.y.ticks(4), xUnit: 'tokens/s per user', yUnit: unit() })
        + each(shown(), (r) => curve(path(r.levels.map((l) => [l.user, l.gpu]), s.x, s.y), runInk(r), dashOf(r)) + each(r.levels.filter((l) => l.user && l.gpu), (l) => named(l, s, r === low))));
    },
    table: () => perLevel(['tokens/s per user', unit()], (l) => [l.user, l.gpu]),
  });
}
const COLUMNS = [ // name, value, how to write it, whether it has a bar
  ['level', (l) => l.value ?? l.i, String], ['sent, req/s', (l) => l.sent, num], ['served, req/s', (l) => l.rps, num, true], ['good, req/s', (l) => l.good, num, true],
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
    ${ls.some(few) ? '<p class="foot">† too few requests for a p99: run longer, or read it as a maximum</p>' : ''}`);
}
function levelHead(column) {
  const [name] = column, k = COLUMNS.indexOf(column), gloss = GLOSS[Object.keys(GLOSS).find((w) => name.startsWith(w))];
  const sort = order.col === k ? `aria-sort="${order.up ? 'ascending' : 'descending'}"` : '';
  return `<th scope="col" ${sort}><button data-sort="${k}" ${gloss ? `data-tip="${esc(esc(gloss))}"` : ''}>${esc(name).replace(', ', ',<br>')}</button></th>`;
}
function levelCell(l, [name, get, show, bar], k, all) {
  if (!k) return `<td><label><input type="radio" name="run${l.run.k}" data-pick="${keyOf(l)}" ${picked(l.run) === l ? 'checked' : ''}>${swatch(loadInk(l), esc(fullName(l)))}</label></td>`;
  const v = get(l) == null ? '–' : esc(show(get(l))) + (/^(TTFT|TPOT) p99/.test(name) && few(l) ? '<sup>†</sup>' : '');
  const share = get(l) / most(all.map(get), 1e-9);
  return bar && get(l) != null ? `<td class="cellbar">${v}<i data-css="width:calc((100% - 20px) * ${share.toFixed(3)});background:${loadInk(l)}"></i></td>` : `<td>${v}</td>`;
}
