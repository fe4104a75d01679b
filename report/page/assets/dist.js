/* ---------- 3a. distributions ---------- */
/* The maximum is at share 1, or at 1 - 0.5/n on the axis of nines, because n values cannot resolve more. */
function sharesOf(d) {
  const { values } = d.curve, last = values.length - 1;
  return values.map((v, i) => [v, i < last ? D.shares[i] : state.shape === 'nines' ? 1 - 0.5 / d.n : 1]);
}
const nine = (s) => -Math.log10(Math.max(1e-4, 1 - s));
const binEdge = (d, i) => 10 ** ((d.curve.from + i) / 16); // ms: a histogram has 16 bins in a decade
const heights = (d) => { const { counts } = d.curve; return counts.map((n, i) => [binEdge(d, i), binEdge(d, i + 1), n / d.n, n]); };
const shows = (d, p) => !d.n || d.n * (100 - p) >= 100; // a percentile needs a value above it; other tools may not state n
const SHAPES = [['cdf', 'CDF'], ['nines', 'tail'], ['histogram', 'histogram']];
function distribution(key) {
  const H = 250, name = key.toUpperCase(), isHistogram = () => state.shape === 'histogram';
  const known = (r) => r.levels.filter((l) => l[key]?.curve && l[key].n !== 1 && (!l.invalid || l === picked(r))), all = () => shown().flatMap(known), strongest = () => shown().map(picked).filter((l) => l[key]?.curve && l[key].n !== 1);
  const ys = () => ({ cdf: [0, 0.25, 0.5, 0.75, 1], nines: [0, 0.9, 0.99, 0.999, 0.9999] }[state.shape]);
  const scales = (w) => {
    const ds = all().map((l) => l[key]), b = { left: 52, right: w - 34, upper: 24, lower: H - 36 };
    const low = fewest(ds.map((d) => Math.max(d.min, d.p50 / 8, 1e-3))), high = most(ds.map((d) => d.max), 1e-2) * 1.1;
    const x = state.axis === 'log' ? log(Math.min(low, high / 2) * 0.9, high, b.left, b.right) : linear(0, high, b.left, b.right);
    const top = isHistogram() ? above(most(strongest().flatMap((l) => heights(l[key]).map((h) => h[2])), 0.01)) : state.shape === 'nines' ? 4 : 1;
    const lin = linear(0, top, b.lower, b.upper);
    return { ...b, x, y: state.shape === 'nines' ? Object.assign((s) => lin(nine(s)), { ticks: lin.ticks }) : lin };
  };
  const faint = (r, s) => each(known(r).filter((l) => l !== picked(r)), (l) => curve(path(sharesOf(l[key]), s.x, s.y), loadInk(l), 'thin', 0.75));
  const strong = (l, s, w) => {
    const d = l[key], c = several() ? runInk(l.run) : loadInk(l);
    if (isHistogram()) return curve(path(heights(d).flatMap(([a, b, v]) => [[a, v], [Math.min(b, s.x.back(s.right)), v]]), s.x, s.y), c, dashOf(l.run)) + bars(d, s, c);
    return curve(path(sharesOf(d), s.x, s.y), c, dashOf(l.run)) + each([50, 90, 99].filter((p) => d[`p${p}`] != null && shows(d, p)), (p) => percentileDot(s, d, p, c, w, strongest().map((o) => o[key])));
  };
  const three = (d) => [...[50, 90, 99].filter((p) => shows(d, p)).map((p) => `p${p}`), ...(shows(d, 99) ? [] : ['max'])].filter((p) => d[p] != null).map((p) => `${p} ${time(d[p])}`).join(' · ');
  figure('dist-charts', {
    name, title: () => `${term(name)}${several() ? '' : doubtMark(picked(first()), key)}`, has: () => all().length > 0,
    note: () => (several() ? each(shown().filter((r) => picked(r)[key]), (r) => `<span class="line">${swatch(runInk(r), esc(r.name))}: ${three(picked(r)[key])}</span>`) : strongest().length ? three(picked(first())[key]) : ''),
    say: () => `${strongest().map((l) => `${fullName(l)}: ${three(l[key])}, max ${time(l[key].max)}`).join('; ')}.`,
    draw(w) {
      const s = scales(w), yUnit = isHistogram() ? `% of values, ${state.axis === 'log' ? '16 bins per decade' : 'bins of 15 %'}` : `% of ${key === 'itl' ? 'gaps' : 'requests'} ≤ x`;
      return svg(w, H, axes({ ...s, xs: s.x.ticks(w / 44), ys: ys() || s.y.ticks(4), xUnit: `ms${state.axis === 'log' ? ', log' : ''}`, yUnit, yText: (v) => `${+(v * 100).toFixed(2)}%` })
        + (isHistogram() ? '' : each(shown(), (r) => faint(r, s))) + each(strongest(), (l) => strong(l, s, w)));
    },
    hover(px, py, w) {
      const s = scales(w), v = s.x.back(px);
      if (px < s.left || px > s.right || !strongest().length) return null;
      const rows = strongest().map((l) => [fullName(l), percent(shareBelow(l[key], v))]);
      return { mark: line(px, s.upper, px, s.lower, 'rule'), tip: keyed([[`at or below ${time(v)}`, ''], ...rows]) };
    },
    table: () => perLevel(['n', 'mean ms', 'min', 'p50', 'p90', 'p95', 'p99', 'max', ...['p50', 'p99'].flatMap((p) => [`${p} 95 % low`, `${p} 95 % high`])],
      (l) => [count(l[key]?.n), ...['mean', 'min', 'p50', 'p90', 'p95', 'p99', 'max'].map((k) => l[key]?.[k]), ...['p50', 'p99'].flatMap((p) => [0, 1].map((i) => l[key]?.sure[p][i]))]),
  });
}
const bars = (d, s, c) => each(heights(d).filter((h) => h[2] && s.x(h[1]) > s.left), ([a, b, v, n]) => {
  const from = Math.max(s.left, s.x(a)), tip = keyed([[`${time(a)} to ${time(b)}`, ''], ['values', count(n)], ['share', percent(v)]]);
  return `<rect class="bar" x="${r1(from)}" y="${r1(s.y(v))}" width="${r1(Math.max(0.5, Math.min(s.x(b), s.right) - from))}" height="${r1(s.lower - s.y(v))}" data-value="${n}" data-tip="${esc(tip)}" data-css="fill:${c}"/>`;
});
function percentileDot(s, d, p, colour, w, all) {
  const name = `p${p}`, x = s.x(d[name]), y = s.y(p / 100);
  const end = x > w - 31 || all.some((o) => o !== d && o[name] > d[name]); // label to the left of the dot if another run's dot is to the right
  const sure = d.sure[name] || [], tip = keyed([[name, time(d[name])], ...(sure.length ? [['95 % interval, steady state', sure.map(time).join(' – ')]] : [])]);
  return (sure.length ? sureBar(s, sure, y, colour) : '') + `<circle class="percentile" data-tip="${esc(tip)}" data-value="${d[name]}" cx="${r1(x)}" cy="${r1(y)}" r="3.5" data-css="stroke:${colour}"/>`
    + text(x + (end ? -8 : 8), y + 4, name, 'strong halo', end ? 'end' : 'start', `fill:${colour}`);
}
function sureBar(s, sure, y, colour) { // the 95 % confidence interval of the percentile
  const [a, b] = sure.map((v) => Math.min(s.right, Math.max(s.left, s.x(v))));
  return `<path class="error" d="M${r1(a)} ${r1(y)}H${r1(b)}M${r1(a)} ${r1(y - 3)}v6M${r1(b)} ${r1(y - 3)}v6" data-css="stroke:${colour}"/>`;
}
function shareBelow(d, v) {
  const { values } = d.curve, i = values.findLastIndex((c) => c <= v);
  return i < 0 ? 0 : i === values.length - 1 ? 1 : D.shares[i];
}
