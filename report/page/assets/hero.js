/* ---------- 1b. the three numbers and the main chart ---------- */
const sloOfRun = (run) => run.levels[0]?.s.config.slo || '';
const limitsOfRun = (run) => [...goalsOf(sloOfRun(run)).filter((g) => g.p && g.unit === 'ms').map((g) => ({ metric: g.metric, limit_ms: g.limit })), ...(run.levels[0]?.s.config.goodput || [])];
const concluded = () => RUNS.some((r) => r.conclusion.verdict !== 'INVALID' && r.levels.length);
/* The metric of the main chart: the one that breaks first, then those with a limit, TTFT and E2EL. */
function mainMetric() {
  const known = (k) => LATENCIES.includes(k) && RUNS.some((r) => r.levels.some((l) => l[k]));
  return [RUNS[0].conclusion.breaks?.metric, ...limitsOfRun(RUNS[0]).map((o) => o.metric), 'ttft', 'e2el'].find(known);
}
/* The name of the figure that is drawn large. Nothing is recommended in an INVALID run, so it has none. */
let heroFigure = null;
function hero() {
  if (heroFigure != null) return heroFigure && (ownFigure() || heroFigure);
  const levels = usable(RUNS.flatMap((r) => r.levels)), perGPU = levels.filter((l) => l.user && l.s.figures?.output_per_gpu != null).length > 1;
  if (!concluded()) heroFigure = '';
  else if (!manyLevels()) heroFigure = 'TTFT of each request';
  else if (perGPU && !RUNS.some((r) => limitsOfRun(r).length)) heroFigure = 'Pareto';
  else heroFigure = mainMetric() ? `${mainMetric().toUpperCase()} over load` : 'Throughput';
  return heroFigure && (ownFigure() || heroFigure);
}
/* Moves the charts over load after the choice of the main chart changed. */
let placed = null;
function placeFigures() {
  if (placed === hero()) return;
  placed = hero();
  for (const f of figures.filter((one) => one.overLoad)) $(placeOf(f.name)).append(f.el);
}
const isHero = (name) => name === hero();
const printing = () => document.documentElement.classList.contains('printing');
const heroHeight = () => (printing() || innerWidth < 600 ? 280 : 380);
const heightOf = (name) => (isHero(name) ? heroHeight() : printing() ? 200 : SWEEP);
const placeOf = (name) => (isHero(name) ? 'hero-chart' : 'sweep-charts');
function headline() {
  const runs = shown().filter((r) => r.numbers), doubt = (r, label) => { const { load, tail } = r.conclusion.headline, l = r.levels[load?.level]; return l && tail && label === `${tail.metric.toUpperCase()} ${tail.statistic}` ? doubtMark(l, tail.metric) : ''; };
  const one = (r) => ({ label, value, unit }) => `<div><dt>${esc(label)}${doubt(r, label)}</dt><dd>${esc(value)} <small>${esc(unit || '')}</small></dd></div>`;
  const of = (r) => (several() ? `<div class="run"><dt>${swatch(runInk(r), esc(r.name))}</dt><dd></dd></div>` : '') + each(r.numbers, one(r));
  $('hero').hidden = !hero();
  $('numbers').className = several() ? 'many' : '';
  put($('numbers'), each(runs, of));
}
/* The main chart of a single level: TTFT of its requests by the time of sending, and failed requests. */
function eachRequest() {
  if (!isHero('TTFT of each request')) return;
  const H = 320, l = () => seen()[0], key = () => (l().ttft ? 'ttft' : 'e2el');
  const value = (q) => (key() === 'ttft' ? (q.first == null ? null : q.first - q.sent) : q.end - q.sent);
  const points = () => { const one = l(); one.heroPoints = one.heroPoints || thin(rowsOf(one).filter((q) => !q.error && value(q) != null).map((q) => [q.sent / 1000, value(q)])); return one.heroPoints; };
  const failed = () => rowsOf(l()).filter((q) => q.error).slice(0, 1000);
  const lines = () => ['p50', shows(l()[key()], 99) ? 'p99' : 'max'].filter((p) => l()[key()]?.[p] != null);
  figure('hero-chart', {
    name: 'TTFT of each request', zooms: true, has: () => !several() && !!l() && l().p.every > 0 && points().length > 1,
    title: () => `${term(key().toUpperCase())} of each request`, note: () => `Each dot is a request${l().p.every > 1 ? ' of a sample' : ''} at the time it was sent${l().s.failed ? '; ✕ failed requests, at the top' : ''}. Drag to zoom.`,
    say: () => `${lines().map((p) => `${p} ${time(l()[key()][p])}, `).join('')}${count(l().s.failed)} failed.`,
    draw(w) {
      const b = { left: TIME.left, right: w - 40, upper: 24, lower: H - 36 }, limits = limitsOfRun(l().run).filter((o) => o.metric === key()).map((o) => o.limit_ms);
      const x = timeScale(w, b.right), y = linear(0, above(most([...points().map((p) => p[1]), ...limits], 1) * 1.05), b.lower, b.upper), level = l()[key()];
      const style = (p) => styleOf(p === 'max' ? 'p99' : p);
      const rule = (p) => `<path class="curve ${style(p).dash}" d="M${b.left} ${r1(y(level[p]))}H${r1(b.right)}" data-css="stroke:${ink(style(p).ink)}"/>`;
      const ends = lines().map((p) => ({ x: b.right + 5, y: y(level[p]), text: p, colour: ink(style(p).ink) }));
      return svg(w, H, clipTo(b, 'clip-each') + axes({ ...b, x, y, xs: x.ticks(w / 80), ys: y.ticks(6), xUnit: 's since the start of the level', yUnit: 'ms' })
        + `<g clip-path="url(#clip-each)">${pauseMarks([l()], x, b.left, b.right, b.upper, b.lower)}${cloud(points(), x, y, ink('run0'), 3.4)}${each(lines(), rule)}${each(failed(), (q) => failMark(x(q.sent / 1000), b.upper + 6))}</g>`
        + limitLinesAt(limits, { ...b, y }) + endLabels(ends, b.upper, b.lower, w));
    },
    table: () => ({ head: ['sent s', `${key().toUpperCase()} ms`], rows: points() }),
  });
}
const failMark = (x, y) => `<path class="fail" d="M${r1(x - 4)} ${y - 4}l8 8M${r1(x - 4)} ${y + 4}l8 -8"/>`;
const clipTo = (b, id) => `<clipPath id="${id}"><rect x="${b.left}" y="0" width="${r1(Math.max(1, b.right - b.left))}" height="9999"/></clipPath>`;
