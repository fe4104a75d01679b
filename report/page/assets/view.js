/* ---------- 3d. moving about in the timeline ---------- */
const spanOf = (axis) => (axis === 't' ? ['t0', 't1', Math.max(1, timelineLevel().s.duration_s * 1000), 5] : ['r0', 'r1', rowCount(timelineLevel()), 3]); // keys, whole, least
function look(axis, from, size) { const [a, b, full] = spanOf(axis); view[a] = Math.max(0, Math.min(full - size, from)); view[b] = view[a] + size; }
function zoom(axis, k, at) { // around a share of the view; never beyond the whole
  const [a, b, full, least] = spanOf(axis), now = view[b] - view[a], size = Math.min(full, Math.max(Math.min(least, full), now * k));
  look(axis, view[a] + (now - size) * at, size);
}
function pan(axis, share) { const [a, b] = spanOf(axis), size = view[b] - view[a]; look(axis, view[a] + share * size, size); }
const MOVES = {
  w: (axis) => zoom(axis, 0.7, 0.5), s: (axis) => zoom(axis, 1 / 0.7, 0.5), a: (axis) => pan(axis, -0.15), d: (axis) => pan(axis, 0.15), 0: resetView,
  arrowleft: () => pan('t', -0.15), arrowright: () => pan('t', 0.15), arrowup: () => pan('r', -0.15), arrowdown: () => pan('r', 0.15),
};
function timelineCanvas(f) {
  put(f.plot, '<canvas tabindex="0" role="img" aria-label="Timeline of requests: W and S zoom, A and D pan, with shift the rows, 0 resets"></canvas>');
  const c = f.plot.firstChild, redraw = () => f.paint(f.plot.clientWidth);
  f.plot.removeAttribute('role');
  c.addEventListener('keydown', (e) => {
    const move = MOVES[e.key.toLowerCase()];
    if (move && !e.ctrlKey && !e.metaKey) { move(e.shiftKey ? 'r' : 't'); redraw(); e.preventDefault(); }
  });
  c.addEventListener('wheel', (e) => {
    if (document.activeElement !== c && !e.ctrlKey) return; // the page scrolls over it until it is clicked
    e.preventDefault();
    const box = c.getBoundingClientRect(), k = Math.exp((e.deltaY || e.deltaX) * 0.0015);
    if (e.shiftKey) zoom('r', k, (e.clientY - box.top - PAD.top) / (box.height - PAD.top - PAD.bottom));
    else zoom('t', k, (e.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right));
    redraw();
  }, { passive: false });
  let from = null;
  c.addEventListener('pointerdown', (e) => { from = [e.clientX, e.clientY]; c.setPointerCapture(e.pointerId); });
  c.addEventListener('pointerup', () => { from = null; });
  c.addEventListener('dblclick', () => { resetView(); redraw(); });
  c.addEventListener('pointerleave', hideTip);
  c.addEventListener('pointermove', (e) => {
    const box = c.getBoundingClientRect();
    if (from) { pan('t', (from[0] - e.clientX) / box.width); pan('r', (from[1] - e.clientY) / box.height); from = [e.clientX, e.clientY]; hideTip(); redraw(); return; }
    const t = linear(PAD.left, box.width - PAD.right, view.t0, view.t1)(e.clientX - box.left), row = linear(PAD.top, box.height - PAD.bottom, view.r0, view.r1)(e.clientY - box.top);
    const tip = timelineTip(t, row);
    if (tip) showTip(tip, e.clientX, e.clientY); else hideTip();
  });
}
/* What is under the pointer: a failed request near it before all others, for its cross is larger than its row. */
function timelineTip(t, row) {
  const rows = rowsOf(timelineLevel()), pixel = (view.t1 - view.t0) / 1000, tall = Math.max(1, (view.r1 - view.r0) / 60);
  const q = rows.find((v) => v.error && Math.abs(rowOf(v) + 0.5 - row) < tall && v.sent - 6 * pixel <= t && v.end + 6 * pixel >= t)
    || rows.find((v) => rowOf(v) === Math.floor(row) && v.due <= t && v.end >= t);
  if (!q) return '';
  return keyed([[`request ${q.i}${q.error ? ' failed' : ''}`, ''], ...(q.error ? [['why', q.error]] : []), whatIsAt(q, t), ['sent at', time(q.sent)], ['TTFT', q.first == null ? 'none' : time(q.first - q.sent)],
    ['longest gap', q.events > 1 ? about(longestGap(q)) : '–'], ['end to end', time(q.end - q.sent)], ['tokens in / out', `${count(q.input)} / ${count(q.output)}`], ['in flight when sent', `${timelineLevel().p.every === 1 ? '' : '≈ '}${count(q.ahead)}`]]);
}
function whatIsAt(q, t) {
  if (t < q.sent) return ['here', 'client queue'];
  if (t < q.head) return ['here', 'front end'];
  if (q.first == null || t < q.first) return ['here', 'queue and prefill'];
  const gaps = gapsOf(q);
  let at = q.first, n = 0;
  if (!gaps.length) return ['here', 'its only token'];
  while (n < gaps.length - 1 && at + gaps[n] < t) at += gaps[n++];
  return ['gap here', `${about(gaps[n])}, event ${n + 2} of ${gaps.length + 1}`];
}
