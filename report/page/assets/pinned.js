/* ---------- 3e. the pinned request, filters of the timeline, and links ---------- */
let pinned = null; // {l, q}, or {missing: name}
const timelineFigure = () => figures.find((f) => f.setUp);
function filterKeys(l) {
  const failed = rowsOf(l).some((q) => q.error), classes = l.p.details?.classes || [];
  const options = [['', 'all'], ['failed', 'failed', !failed], ['slowest', 'slowest'], ...classes.map((name, k) => [k, esc(name || 'no label')])];
  return seg('show', options, 'only', onlyOf(l));
}
function pin(l, q) {
  pinned = { l, q };
  reveal(q);
  setLink();
  const f = timelineFigure();
  render(f);
  return f;
}
function unpin() { pinned = null; setLink(); render(timelineFigure()); }
/* Moves the view so that it contains a request. */
function reveal(q) {
  const row = rowOf(q);
  if (row == null) return;
  if (q.end < view.t0 || q.sent > view.t1) look('t', q.sent - (view.t1 - view.t0) / 4, view.t1 - view.t0);
  if (row < view.r0 || row >= view.r1) look('r', row - (view.r1 - view.r0) / 2, view.r1 - view.r0);
}
function pinNext(step) { // in the order of the rows that are shown
  const l = timelineLevel(), rows = rowsShown(l), at = pinned?.l === l ? rows.indexOf(pinned.q) : -1;
  if (rows.length) pin(l, rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))]);
}
function pinnedPanel() {
  if (pinned?.missing) return `<div class="pinned">Request <code>${esc(pinned.missing)}</code> is not on this page${RUNS.some((r) => r.levels.some((l) => l.p?.every > 1)) ? ', which shows a sample of the requests' : ''}.</div>`;
  if (!pinned || pinned.l !== timelineLevel()) return '';
  const { l, q } = pinned, d = l.p.details, at = time;
  const facts = [['Sent', at(q.sent)], ['Due', at(q.due)], ['First byte', at(q.head)], ['First token', at(q.first)], ['Last token', q.first == null ? '–' : at(q.last)], ['End', at(q.end)],
    ['TTFT', q.first == null ? '–' : time(q.first - q.sent)], ['TPOT', q.output > 1 && q.first != null ? time((q.last - q.first) / (q.output - 1)) : '–'], ['E2EL', time(q.end - q.sent)], ['Longest gap', q.events > 1 ? about(longestGap(q)) : '–'],
    ['Input tokens', count(q.input)], ['Output tokens', count(q.output)], ['In flight when sent', `${l.p.every === 1 ? '' : '≈ '}${count(q.ahead)}`], ...(q.kind >= 0 ? [['Class', d.classes[q.kind] || 'no label']] : [])];
  const answer = d?.answers?.[q.i];
  return `<div class="pinned" role="group" aria-label="Pinned request"><div class="bar"><b>Request <code>${esc(q.name)}</code></b> ${q.error ? '<span class="failed">✕ failed</span>' : ''}<span class="controls"><a href="${esc(linkTo(l, q))}">Link</a>
    <button class="btn" data-pin="-1">Previous</button> <button class="btn" data-pin="1">Next</button> <button class="btn" data-unpin>Close</button></span></div>
    ${q.error ? `<p class="failed">${esc(q.error)}</p>` : ''}<dl>${each(facts, ([k, v]) => `<div><dt>${k}</dt><dd>${esc(v)}</dd></div>`)}</dl>
    ${answer ? `<blockquote>${esc(answer)}</blockquote><p class="foot">The prompt is not kept: the plan and its seed make it again.</p>` : '<p class="foot">Prompt and answer are not kept. --save-result --save-detailed keeps answers.</p>'}</div>`;
}
function pinMark(ctx, l, width, height) {
  const q = pinned?.q;
  if (!q || pinned.l !== l || (onlyOf(l) !== '' && !rowsShown(l).includes(q))) return;
  const x = linear(view.t0, view.t1, PAD.left, width - PAD.right), y = linear(view.r0, view.r1, PAD.top, height - PAD.bottom), row = rowOf(q);
  const a = Math.max(PAD.left, x(q.due) - 2), b = Math.min(width - PAD.right, x(q.end) + 2), tall = Math.max(6, y(row + 1) - y(row));
  if (b < PAD.left || a > width - PAD.right || row < view.r0 - 1 || row > view.r1) return;
  ctx.strokeStyle = ink('focus'); ctx.lineWidth = 2;
  ctx.strokeRect(a, (y(row) + y(row + 1) - tall) / 2, Math.max(4, b - a), tall);
}

/* Links: #level=40 picks a level, #slo=ttft:p99<300ms chooses an SLO, #request=ID pins a request, #dark and #light choose the theme; they are joined by &. */
const readLink = () => new Map(location.hash.slice(1).split('&').map((s) => { const [key, ...value] = s.split('='); return [key, unescaped(value.join('='))]; }));
function unescaped(text) { try { return decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25')); } catch { return text; } } // a link written by hand: error<1%
function linkTo(l, q) {
  const theme = ['dark', 'light'].filter((name) => readLink().has(name)), level = manyLevels() && l ? [`level=${encodeURIComponent(shortName(l))}`] : [];
  return `#${[...theme, ...level, ...sloLink(), ...(q ? [`request=${encodeURIComponent(q.name)}`] : [])].join('&')}`;
}
function setLink() {
  const link = linkTo(pinned?.l || picked(first()), pinned?.q);
  try { history.replaceState(null, '', link === '#' ? location.pathname + location.search : link); } catch { /* a page inside another page may not change its address */ }
}
function findRequest(name, levels) { // by its name, or by the number at the end of its name
  for (const l of levels) {
    const d = l.p?.details, at = d ? d.names.findIndex((n) => n === name || d.prefix + n === name || n.endsWith(`-${name}`)) : -1;
    if (at >= 0) return { l, q: rowsOf(l)[at] };
  }
  return null;
}
function followLink() {
  const flags = readLink(), wanted = flags.get('level'), name = flags.get('request');
  if (flags.has('dark') || flags.has('light')) theme(flags.has('dark') ? 'dark' : 'light');
  if (wanted) RUNS.forEach((r) => { const i = r.levels.findIndex((l) => shortName(l) === wanted); if (i >= 0) state.picked[r.k] = i; });
  own = sloOfLink(flags.get('slo'));
  pinned = null;
  if (!name) return;
  pinned = findRequest(name, [...RUNS.map(picked).filter(Boolean), ...RUNS.flatMap((r) => r.levels)]) || { missing: name };
  if (pinned.l) { state.picked[pinned.l.run.k] = pinned.l.i; state.whose = pinned.l.run.k; state.only = ''; }
}
function showLinked() { // after the page was drawn
  if (!pinned) return;
  if (pinned.q) { reveal(pinned.q); render(timelineFigure()); }
  timelineFigure().el.scrollIntoView({ block: 'center' });
}
