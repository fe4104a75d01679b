/* ---------- 3d. zooming and panning in the timeline ---------- */
const spanOf = (axis) => (axis === 't' ? ['t0', 't1', longest(), 5] : ['r0', 'r1', rowCount(timelineLevel()), 3]); // keys, full range, smallest range
function look(axis, from, size) { const [a, b, full] = spanOf(axis); view[a] = Math.max(0, Math.min(full - size, from)); view[b] = view[a] + size; }
function zoom(axis, k, at) { // around a position in the view, limited to the full range
  const [a, b, full, least] = spanOf(axis), now = view[b] - view[a], size = Math.min(full, Math.max(Math.min(least, full), now * k));
  look(axis, view[a] + (now - size) * at, size);
}
function pan(axis, share) { const [a, b] = spanOf(axis), size = view[b] - view[a]; look(axis, view[a] + share * size, size); }
const MOVES = {
  w: (axis) => zoom(axis, 0.7, 0.5), s: (axis) => zoom(axis, 1 / 0.7, 0.5), a: (axis) => pan(axis, -0.15), d: (axis) => pan(axis, 0.15), 0: resetView,
  n: () => pinNext(1), p: () => pinNext(-1), arrowleft: () => pan('t', -0.15), arrowright: () => pan('t', 0.15), arrowup: () => pan('r', -0.15), arrowdown: () => pan('r', 0.15),
};
function timelineCanvas(f) {
  put(f.plot, '<canvas tabindex="0" role="img" aria-label="Timeline of requests: W and S zoom, A and D pan, with shift the rows, 0 resets"></canvas>');
  const c = f.plot.firstChild, redraw = showView;
  f.plot.removeAttribute('role');
  c.addEventListener('keydown', (e) => {
    const move = MOVES[e.key.toLowerCase()];
    if (move && !e.ctrlKey && !e.metaKey) { move(e.shiftKey ? 'r' : 't'); redraw(); e.preventDefault(); }
  });
  c.addEventListener('wheel', (e) => {
    if (document.activeElement !== c && !e.ctrlKey) return; // the wheel scrolls the page until the timeline is clicked
    e.preventDefault();
    const box = c.getBoundingClientRect(), k = Math.exp((e.deltaY || e.deltaX) * 0.0015);
    if (e.shiftKey) zoom('r', k, (e.clientY - box.top - PAD.top) / (box.height - PAD.top - PAD.bottom));
    else zoom('t', k, (e.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right));
    redraw();
  }, { passive: false });
  zoomable(f);
  c.addEventListener('pointerleave', hideTip);
  c.addEventListener('click', (e) => { const q = requestUnder(c, e); if (q) pin(timelineLevel(), q); });
  c.addEventListener('pointermove', (e) => {
    if (e.buttons) { hideTip(); return; }
    const q = requestUnder(c, e);
    if (q) showTip(timelineTip(q, timeUnder(c, e)), e.clientX, e.clientY); else hideTip();
  });
}
const timeUnder = (c, e) => { const box = c.getBoundingClientRect(); return linear(PAD.left, box.width - PAD.right, view.t0, view.t1)(e.clientX - box.left); };
/* Draws the charts over time again, once per frame. */
let drawing = 0;
function showView() {
  drawing ||= requestAnimationFrame(() => { drawing = 0; figures.filter((f) => !f.el.hidden).forEach((f) => { if (f.setUp) f.paint(f.plot.clientWidth); else if (f.zooms) put(f.plot, f.draw(f.plot.clientWidth)); }); });
}
/* Dragging over a chart over time zooms all of them to the range; with shift it pans. A double click shows the whole level. */
const DRAG = 5; // px from which a press is a drag
function zoomable(f) {
  const { plot } = f, range = document.createElement('div'), inside = (e, box) => Math.max(TIME.left, Math.min(box.width - TIME.right, e.clientX - box.left));
  let from = null, dragged = false;
  range.className = 'range';
  const end = () => { from = null; dragged = false; range.remove(); };
  plot.addEventListener('pointerdown', (e) => { if (!e.button && e.pointerType !== 'touch') from = [e.clientX, e.clientY]; });
  plot.addEventListener('pointermove', (e) => {
    if (!from || (!dragged && Math.abs(e.clientX - from[0]) < DRAG)) return;
    const box = plot.getBoundingClientRect();
    if (!dragged) plot.setPointerCapture(e.pointerId);
    dragged = true;
    if (e.shiftKey) { pan('t', (from[0] - e.clientX) / box.width); if (f.setUp) pan('r', (from[1] - e.clientY) / box.height); from = [e.clientX, e.clientY]; showView(); return; }
    const [a, b] = [inside({ clientX: from[0] }, box), inside(e, box)].sort((p, q) => p - q);
    range.style.cssText = `left:${a}px;width:${b - a}px;top:0;height:${box.height}px`;
    if (!range.isConnected) plot.append(range);
  });
  plot.addEventListener('pointerup', (e) => {
    if (dragged && !e.shiftKey) {
      const box = plot.getBoundingClientRect(), back = timeScale(box.width).back, [a, b] = [inside({ clientX: from[0] }, box), inside(e, box)].map((x) => 1000 * back(x)).sort((p, q) => p - q);
      look('t', a, Math.max(b - a, Math.min(5, longest())));
      showView();
    }
    end();
  });
  plot.addEventListener('pointercancel', end);
  plot.addEventListener('dblclick', () => { resetView(); showView(); });
}
/* The request under the pointer. A failed request nearby comes first, because its cross is larger than its row. */
function requestUnder(c, e) {
  const box = c.getBoundingClientRect(), t = timeUnder(c, e), row = linear(PAD.top, box.height - PAD.bottom, view.r0, view.r1)(e.clientY - box.top);
  const rows = rowsShown(timelineLevel()), pixel = (view.t1 - view.t0) / 1000, tall = Math.max(1, (view.r1 - view.r0) / 60);
  return rows.find((v) => v.error && Math.abs(rowOf(v) + 0.5 - row) < tall && v.sent - 6 * pixel <= t && v.end + 6 * pixel >= t)
    || rows.find((v) => rowOf(v) === Math.floor(row) && v.due <= t && v.end >= t);
}
function timelineTip(q, t) {
  return keyed([[`request ${q.name}${q.error ? ' failed' : ''}`, ''], ...(q.error ? [['error', q.error]] : []), whatIsAt(q, t), ['sent at', time(q.sent)], ['TTFT', q.first == null ? 'none' : time(q.first - q.sent)],
    ['longest gap', q.events > 1 ? about(longestGap(q)) : '–'], ['end to end', time(q.end - q.sent)], ['tokens in / out', `${count(q.input)} / ${count(q.output)}`], ['in flight when sent', `${timelineLevel().p.every === 1 ? '' : '≈ '}${count(q.ahead)}`]]);
}
function whatIsAt(q, t) {
  if (t < q.sent) return ['here', 'client queue'];
  if (t < q.head) return ['here', 'front end'];
  if (q.first == null || t < q.first) return ['here', 'queue and prefill'];
  const gaps = gapsOf(q);
  let at = q.first, n = 0;
  if (!gaps.length) return ['here', 'only token'];
  while (n < gaps.length - 1 && at + gaps[n] < t) at += gaps[n++];
  return ['gap here', `${about(gaps[n])}, event ${n + 2} of ${gaps.length + 1}`];
}
