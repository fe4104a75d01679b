/* ---------- 3e. failures, TTFT by length or load, groups of requests ---------- */
function failureTable() {
  const all = shown().flatMap((r) => (picked(r).s.failures || []).map((f) => [picked(r), f]));
  if (!all.length) { put($('failures'), ''); return; }
  const row = ([l, f]) => `<tr>${several() ? `<td>${esc(l.run.name)}</td>` : ''}<td class="bad">✕ ${esc([f.cause, f.status || '', f.phase || ''].filter(Boolean).join(' '))}</td>
    <td>${count(f.count)}</td><td>${percent(f.count / (l.s.completed + l.s.failed))}</td><td>${num(f.first_s)} s</td><td class="say">${esc(f.example)}</td></tr>`;
  put($('failures'), `<table><thead><tr>${several() ? '<th scope="col">run</th>' : ''}<th scope="col">cause</th><th scope="col">requests</th><th scope="col">share</th>
    <th scope="col">first at</th><th scope="col" class="say">example</th></tr></thead><tbody>${each(all, row)}</tbody></table>`);
}
function follows() {
  const H = 286, varied = () => seen().some((l) => l.p.by_length?.length > 2);
  const points = (l) => firsts(l, varied() ? 'input' : 'ahead'), what = () => (varied() ? 'input tokens' : 'in flight when sent');
  const bands = (l) => (varied() ? l.p.by_length || [] : []), lineOf = (l, k) => bands(l).map((b) => [(b.from + b.to) / 2, b.ttft[k]]);
  figure('part-charts', {
    name: 'TTFT by length or load', title: () => `${term('TTFT')} against ${varied() ? 'input length' : 'requests in flight'}`, has: () => seen().some((l) => l.ttft && points(l).length > 1),
    note: () => (varied() ? `Each dot is a request${seen().some((l) => l.p.every > 1) ? ' of the sample' : ''}; lines are p50 and p95 of all requests of similar length.`
      : `All prompts have ${seen().every((l) => l.p.by_length) ? 'nearly ' : ''}the same length, so the chart shows TTFT by requests in flight at sending.`),
    say: () => seen().flatMap((l) => bands(l).map((b) => `${num(b.from)} to ${num(b.to)} tokens: p50 ${time(b.ttft[1])}`)).join('; '),
    draw(w) {
      const all = seen().flatMap(points), b = { left: 46, right: w - 12, upper: 24, lower: H - 36 }, top = (k) => above(most(all.map((p) => p[k]), 1) * 1.02);
      const x = linear(0, top(0), b.left, b.right), y = linear(0, top(1), b.lower, b.upper);
      return svg(w, H, axes({ ...b, x, y, xs: x.ticks(5), ys: y.ticks(5), xUnit: what(), yUnit: 'ms' })
        + each(seen(), (l) => cloud(points(l), x, y, runInk(l.run), 3) + curve(path(lineOf(l, 1), x, y), runInk(l.run)) + curve(path(lineOf(l, 2), x, y), runInk(l.run), 'thin')));
    },
    table: () => ({ head: ['run', what(), 'TTFT ms'], rows: seen().flatMap((l) => points(l).map((p) => [l.run.name, count(p[0]), p[1]])) }),
  });
}

/* The groups of a level: by turn, by label, by server. */
function groupsOf(l) {
  const ends = (l.s.endpoints || []).map((e) => ({ by: 'endpoint', value: e.endpoint, ...e, output_tokens: e.output_tokens }));
  return [...(l.s.groups || []), ...ends];
}
const splitKinds = () => [...new Set(shown().flatMap((r) => groupsOf(picked(r)).map((g) => g.by)))];
const splitBy = () => (splitKinds().includes(state.by) ? state.by : splitKinds()[0]);
const SPLIT = { row: 24, top: 30, left: 170 };
function splits() {
  const rows = () => shown().flatMap((r) => groupsOf(picked(r)).filter((g) => g.by === splitBy()).map((g) => ({ g, l: picked(r) })));
  const of = (g, key) => statsOf(g.metrics, key), shownKey = () => (rows().some(({ g }) => of(g, 'ttft')) ? 'ttft' : 'e2el');
  figure('part-charts', {
    name: 'Splits', title: () => `${term(shownKey().toUpperCase())} by ${esc(splitBy())}`, note: 'From p50 (dot) to p99 (end of the bar). ••• shows all figures.', has: () => splitKinds().length > 0,
    keys: () => (splitKinds().length > 1 ? seg('by', splitKinds().map((k) => [k, esc(k)]), 'by', splitBy()) : ''),
    say: () => rows().map(({ g }) => `${g.value}: p50 ${time(of(g, shownKey())?.p50)}`).join('; '),
    draw(w) {
      const list = rows(), key = shownKey(), left = Math.min(SPLIT.left, w * 0.35), H = SPLIT.top + list.length * SPLIT.row + 40;
      const x = linear(0, above(most(list.map(({ g }) => of(g, key)?.p99 ?? 0), 1e-3) * 1.02), left, w - 60), lower = H - 38;
      const one = ({ g, l }, i) => splitRow(g, l, of(g, key), x, SPLIT.top + i * SPLIT.row, left);
      return svg(w, H, each(x.ticks(w / 110), (t) => line(x(t), SPLIT.top - 8, x(t), lower, 'grid-line') + text(x(t), lower + 16, tick(t), '', 'middle'))
        + text(w - 60, lower + 31, 'ms', 'unit', 'end') + each(list, one));
    },
    table: () => ({
      head: ['run', splitBy(), 'ok', 'failed', 'input tokens', 'output tokens', ...LATENCIES.flatMap((k) => [`${k.toUpperCase()} p50 ms`, `${k.toUpperCase()} p99 ms`])],
      rows: rows().map(({ g, l }) => [l.run.name, g.value, g.completed, g.failed, g.input_tokens, g.output_tokens, ...LATENCIES.flatMap((k) => [of(g, k)?.p50, of(g, k)?.p99])]),
    }),
  });
}
function splitRow(g, l, d, x, y, left) {
  const name = several() ? `${g.value}, ${l.run.name}` : g.value, short = name.length > left / 6 ? `${name.slice(0, Math.floor(left / 6) - 1)}…` : name;
  const tip = keyed([[name, ''], ['p50', time(d?.p50)], ['p99', time(d?.p99)], ['ok', count(g.completed)], ['failed', count(g.failed)]]);
  const bar = d ? `<rect class="split" data-value="${d.p99}" data-tip="${esc(tip)}" x="${r1(x(d.p50))}" y="${y}" width="${r1(Math.max(1, x(d.p99) - x(d.p50)))}" height="8" rx="1" data-css="fill:${runInk(l.run)}"/>
    <circle class="split" data-value="${d.p50}" data-tip="${esc(tip)}" cx="${r1(x(d.p50))}" cy="${y + 4}" r="4.5" data-css="fill:${runInk(l.run)}"/>` : '';
  return `${text(0, y + 8, short)}${bar}${g.failed ? text(x(d?.p99 ?? 0) + 8, y + 8, `✕ ${count(g.failed)}`, '', 'start', `fill:${ink('bad')}`) : ''}`;
}
