/* ---------- runs with the same tag over time ---------- */
const TREND = { height: 132, left: 46, upper: 16, lower: 104 };
const TRENDS = [['Req/s', rps], ['Output tok/s', tps], ['TTFT p99 (ms)', ttft99], ['TPOT p99 (ms)', tpot99]];
const pickedTag = () => ui.words.split(/\s+/).find((w) => /^tag:./.test(w))?.slice(4);
/* The finished runs of a tag, oldest first, and their baseline: the latest run with the tag "baseline", otherwise the first run. */
function series() {
  const runs = found().filter((it) => canTick(it) && it.best && it.verdict !== 'INVALID').sort((a, b) => (a.about.began < b.about.began ? -1 : 1));
  return { runs, base: runs.findLast((it) => tagsOf(it).includes(BASELINE)) || runs[0] };
}
const changeFrom = (v, base) => (v == null || !base ? '' : `${signed((v / base - 1) * 100)} %`);
function trendPanel([name, get], { runs, base }, w) {
  const values = runs.map((it) => get(it) ?? null), at = get(base), last = values.at(-1), right = w - 12;
  if (values.filter((v) => v != null).length < 2) return '';
  const x = linear(0, runs.length - 1, TREND.left, right), y = linear(0, above(most(values.map((v) => v ?? 0)) * 1.05), TREND.lower, TREND.upper);
  const dots = values.map((v, i) => (v == null ? '' : `<a href="#run=${runs[i].id}" aria-label="${esc(`${nameOf(runs[i])}: ${name} ${num(v)}`)}" data-tip="${esc(keyed([[nameOf(runs[i]), ''], [name, num(v)], ['from the baseline', changeFrom(v, at) || '–'], ['started', when(runs[i])]]))}"><circle class="hit" cx="${r1(x(i))}" cy="${r1(y(v))}" r="9"/><circle cx="${r1(x(i))}" cy="${r1(y(v))}" r="${runs[i] === base ? 5 : 3.5}"/></a>`));
  const oneDay = when(runs[0]).slice(0, 10) === when(runs.at(-1)).slice(0, 10), day = (it) => (oneDay ? when(it).slice(11) : when(it).slice(0, 10));
  const body = each(y.ticks(3), (t) => line(TREND.left, y(t), right, y(t), 'grid-line') + text(TREND.left - 6, y(t) + 4, short(t), '', 'end'))
    + (at == null ? '' : line(TREND.left, y(at), right, y(at), 'base-line'))
    + curve(path(values.map((v, i) => [i, v]), x, y), ink('run0'), 'thin') + dots.join('')
    + text(TREND.left, TREND.lower + 18, day(runs[0])) + text(right, TREND.lower + 18, day(runs.at(-1)), '', 'end');
  return `<figure class="chart" data-trend="${esc(name)}" data-values="${esc(JSON.stringify(values))}"><figcaption><div><b>${name}</b><span class="note">latest ${num(last)}${runs.at(-1) === base ? '' : `, ${changeFrom(last, at) || '–'} from the baseline (╌ ${num(at)})`}</span></div></figcaption>
    <svg width="${w}" height="${TREND.height}" viewBox="0 0 ${w} ${TREND.height}" role="group" aria-label="${esc(name)} of ${runs.length} runs">${body}</svg></figure>`;
}
function drawTrend() {
  const tag = pickedTag(), s = tag ? series() : { runs: [] }, el = $('trend');
  el.hidden = s.runs.length < 2;
  if (el.hidden) { put(el, ''); return; }
  const wide = Math.max(300, $('list-view').clientWidth), cols = wide > 1100 ? 4 : wide > 600 ? 2 : 1, loads = [...new Set(s.runs.map((it) => it.load).filter(Boolean))], last = s.runs.at(-1);
  const tagged = tagsOf(s.base).includes(BASELINE);
  put(el, `<div class="head"><h2>Trend of ${count(s.runs.length)} runs tagged ${esc(tag)}</h2><div class="controls">${last === s.base ? '' : `<a class="btn" href="#compare=${s.base.id},${last.id}" data-focus="trend">Compare the latest with the baseline</a>`}</div></div>
    <p class="foot">Baseline: <a href="#run=${s.base.id}">${esc(nameOf(s.base))}</a>${tagged ? '' : ', the first run. “Use as baseline” on the page of a run selects another'}. Differences are tested when you compare runs.</p>
    ${loads.length > 1 ? `<p class="foot warn">! The runs have different loads (${esc(loads.slice(0, 4).join('; '))}), so their figures cannot be compared directly.</p>` : ''}
    <div class="grid" data-css="grid-template-columns:repeat(${cols},minmax(0,1fr))">${each(TRENDS, (t) => trendPanel(t, s, Math.floor((wide - 40 * (cols - 1)) / cols)))}</div>`);
}
