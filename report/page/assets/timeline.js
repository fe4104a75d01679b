/* ---------- 3c. timeline of requests ---------- */
const EDGES = D.gap_edges; // ms, thresholds between the colours of gaps
const SHADES = 7; // of style.css
const gapInk = (i) => ink(`gap-${Math.round(i * (SHADES - 1) / Math.max(1, EDGES.length))}`);
const KINDS = ['client', 'front', 'prefill']; // cell values 1, 2, 3; gaps are 4 to 10. If requests share a pixel, the longest gap wins
const LETTERS = new Float32Array(128); // ms, by the letter’s code
[...D.gap_code.letters].forEach((c, i) => { LETTERS[c.charCodeAt(0)] = D.gap_code.base * D.gap_code.step ** i; });
function classOf(ms) { let k = 0; while (k < EDGES.length && !(ms < EDGES[k])) k++; return k + 1; }
const HUNDREDTHS = 100; // a row's times are in hundredths of a millisecond
/* The rows of a level with times in ms and their lanes for the packed view, computed once per level. */
function rowsOf(l) {
  if (!l.p) return [];
  if (l.rows) return l.rows;
  const free = [];
  l.rows = l.p.rows.map(([sent, due, head, first, last, end, input, output, events, gaps, error], i) => {
    const at = (v) => (sent + v) / HUNDREDTHS, q = { i, sent: at(0), due: at(-due), first: first < 0 ? null : at(first), last: at(Math.max(last, 0)), end: at(Math.max(end, 0)), input, output, events, code: gaps, error };
    const d = l.p.details;
    q.name = d ? d.prefix + d.names[i] : String(i);
    q.kind = d?.class ? d.class[i] : -1;
    q.head = head < 0 ? (q.first ?? q.sent) : at(head);
    let lane = 0;
    while (lane < free.length && free[lane] > q.due) lane++;
    free[lane] = q.end;
    q.lane = lane;
    return q;
  });
  l.lanes = Math.max(1, free.length);
  flightWhenSent(l);
  return l.rows;
}
/* The gaps of a row, scaled to the exact time of its last token. A letter is a gap, and a number after it repeats it. A large
   page has half a million gaps, so this loop uses no regular expression, no map, and one array per row. */
function gapsOf(q) {
  if (q.gaps) return q.gaps;
  const { code } = q, out = new Float32Array(Math.max(0, q.events - 1));
  let n = 0, sum = 0;
  for (let i = 0; i < code.length;) {
    const ms = LETTERS[code.charCodeAt(i)];
    let times = 0;
    for (i++; code.charCodeAt(i) >= 48 && code.charCodeAt(i) <= 57; i++) times = 10 * times + code.charCodeAt(i) - 48;
    do { out[n++] = ms; sum += ms; } while (--times > 0);
  }
  q.gaps = n < out.length ? out.subarray(0, n) : out;
  if (sum && n === out.length) for (let k = 0, by = (q.last - q.first) / sum; k < n; k++) out[k] *= by;
  return q.gaps;
}
const longestGap = (q) => gapsOf(q).reduce((m, g) => (g > m ? g : m), 0);
function flightWhenSent(l) { // requests in flight when each was sent; for a sample, the mean of the time bin
  const { every, bins } = l.p;
  if (every !== 1) {
    for (const q of l.rows) q.ahead = Math.round(bins.flight[Math.min(bins.flight.length - 1, Math.floor(q.sent / 1000 / bins.width_s))]);
    return;
  }
  const sorted = (key) => Float64Array.from(l.rows, (q) => q[key]).sort(), ends = sorted('end'), sents = sorted('sent');
  const below = (list, v, orEqual) => { let a = 0, b = list.length; while (a < b) { const m = (a + b) >> 1; if (list[m] < v || (orEqual && list[m] === v)) a = m + 1; else b = m; } return a; };
  for (const q of l.rows) q.ahead = below(sents, q.sent) - below(ends, q.sent, true);
}

const view = { t0: 0, t1: 1, r0: 0, r1: 1 };
const PAD = { left: 48, right: 8, top: 20, bottom: 46 };
const timelineLevel = () => { const all = seen(); return all.find((l) => l.run.k === state.whose) || all[0] || picked(first()); };
/* The filter of the timeline: failed, slowest, or a class of requests by its number. A filter without requests at this level is off. */
const SLOWEST = { share: 0.01, least: 10 };
function onlyOf(l) {
  const { only } = state, rows = rowsOf(l);
  return only === '' || only === 'slowest' || (only === 'failed' ? rows.some((q) => q.error) : rows.some((q) => q.kind === only)) ? only : '';
}
function chosen(l, only) {
  const rows = rowsOf(l);
  if (only === 'failed') return rows.filter((q) => q.error);
  if (only === 'slowest') return rows.filter((q) => !q.error).sort((p, q) => (q.end - q.sent) - (p.end - p.sent)).slice(0, Math.max(SLOWEST.least, Math.ceil(SLOWEST.share * l.s.completed)));
  return rows.filter((q) => q.kind === only);
}
function rowsShown(l) {
  const only = onlyOf(l);
  if (only === '') return rowsOf(l);
  if (l.chosen?.only !== only) { l.chosen = { only, rows: chosen(l, only) }; l.chosen.rows.forEach((q, k) => { q.k = k; }); }
  return l.chosen.rows;
}
const rowOf = (q) => (onlyOf(timelineLevel()) !== '' ? q.k : state.packed ? q.lane : q.i);
const rowCount = (l) => { const n = rowsShown(l).length; return Math.max(1, state.packed && onlyOf(l) === '' ? l.lanes : n); };
const longest = () => Math.max(1, most([timelineLevel(), ...seen()].map((l) => l.s.duration_s)) * 1000); // ms
function resetView() { Object.assign(view, { t0: 0, t1: longest(), r0: 0, r1: rowCount(timelineLevel()) }); }
const timelineHeight = (l) => Math.round(Math.min(440, Math.max(150, rowCount(l) * 14)) + PAD.top + PAD.bottom);
function timelineNote() {
  const l = timelineLevel(), { every, rows } = l.p;
  if (every === 0) return 'The timeline does not fit on this page.';
  const sample = `Shows ${count(rows.length)} of ${count(l.s.requests)} requests: one in ${count(every)}, the slowest of each time bin, and failed requests${l.s.failed > 1000 ? ' (the first 1,000; the red strip below counts all)' : ''}. `;
  return (every > 1 ? sample : '')
    + (onlyOf(l) !== '' ? `Only ${count(rowsShown(l).length)} chosen requests, ${onlyOf(l) === 'slowest' ? 'slowest first' : 'in order of sending'}. ` : state.packed ? `A request takes the first free row${every > 1 ? '' : ': the height is the number in flight'}. ` : 'One row for each request, in order of sending. ')
    + `Decode is coloured by the gap before each token: a strong vertical stripe is a stall of many requests${pausesOf(l).length ? ', marked at the top if the server stood still' : ''}. Click a request for its details.`;
}
function timeline() {
  figure('time-charts', {
    name: 'Timeline of requests', title: () => (timelineLevel().p.every === 1 ? `Every request${several() ? ` of ${esc(timelineLevel().run.name)}` : ''}, every token` : `Requests${several() ? ` of ${esc(timelineLevel().run.name)}` : ''}, token by token`),
    has: () => !!timelineLevel().p, note: timelineNote, keys: timelineKeys, setUp: timelineCanvas, paint: timelinePaint, below: pinnedPanel,
    say: () => `${count(timelineLevel().s.requests)} requests, ${count(timelineLevel().s.failed)} failed.`,
    table: () => ({
      head: ['request', 'due ms', 'sent', 'head', 'first token', 'last token', 'end', 'input tokens', 'output tokens', 'token events', 'longest gap ms', 'error'],
      rows: rowsShown(timelineLevel()).map((q) => [q.name, q.due, q.sent, q.head, q.first, q.first == null ? null : q.last, q.end, q.input, q.output, q.events, +longestGap(q).toPrecision(2), q.error || '']),
    }),
  });
}
const dark = (colour) => { const [r, g, b] = rgb(colour); return r * 0.3 + g * 0.6 + b * 0.1 < 130; };
function timelineKeys() {
  const spent = new Array(EDGES.length + 1).fill(0), l = timelineLevel();
  for (const q of rowsOf(l)) for (const g of gapsOf(q)) spent[classOf(g) - 1] += g;
  const all = sumOf(spent, (v) => v), names = [`<${EDGES[0]}`, ...EDGES.slice(0, -1).map((e, i) => `${e}–${EDGES[i + 1]}`), `≥${EDGES.at(-1)}`];
  const step = (n, i) => {
    const c = gapInk(i), tip = keyed([[`gaps of ${n} ms`, ''], ['share of decode time', percent(all ? spent[i] / all : 0)]]);
    return `<i data-css="background:${c};color:${dark(c) ? '#fff' : '#1a1d21'}" tabindex="0" data-tip="${esc(tip)}">${n}</i>`;
  };
  const buttons = [[0.6, '+', 'Zoom in'], [1.6, '−', 'Zoom out'], [0, 'Reset', 'Reset the view']];
  return each([['client', 'client queue'], ['front', 'front end'], ['prefill', 'queue and prefill']], ([k, n]) => swatch(ink(`k-${k}`), n))
    + `<span class="ramp" role="group" aria-label="Colours of gaps, ms">${each(names, step)}</span><span>ms gap</span><span class="failed">✕ failed: ${count(l.s.failed)}</span>`
    + filterKeys(l) + (onlyOf(l) === '' ? seg('', [[true, 'packed'], [false, 'by arrival']], 'packed') : '') + (seen().length > 1 ? seg('', seen().map((o) => [o.run.k, esc(o.run.name)]), 'whose', timelineLevel().run.k) : '')
    + `<span>${each(buttons, ([k, n, say]) => `<button class="btn" data-zoom="${k}" aria-label="${say}">${n}</button> `)}</span>`
    + '<span class="hint"><kbd>W</kbd> <kbd>S</kbd> zoom <kbd>A</kbd> <kbd>D</kbd> pan, with <kbd>⇧</kbd> rows; <kbd>N</kbd> <kbd>P</kbd> next and previous request; wheel after a click</span>';
}
function timelinePaint(width) {
  const c = this.plot.querySelector('canvas'), l = timelineLevel(), dpr = Math.min(2, devicePixelRatio || 1), height = timelineHeight(l), ctx = c.getContext('2d');
  c.width = width * dpr; c.height = height * dpr; c.style.height = `${height}px`;
  const W = Math.max(1, Math.round((width - PAD.left - PAD.right) * dpr)), H = Math.max(1, Math.round((height - PAD.top - PAD.bottom) * dpr));
  ctx.fillStyle = ink('paper'); ctx.fillRect(0, 0, c.width, c.height);
  ctx.putImageData(colourIn(cells(rowsShown(l), W, H), W, H), PAD.left * dpr, PAD.top * dpr);
  ctx.scale(dpr, dpr);
  pauseStrip(ctx, l, width);
  failStrip(ctx, l, width, height);
  failCrosses(ctx, rowsShown(l), width, height);
  pinMark(ctx, l, width, height);
  timelineAxes(ctx, width, height);
}
/* One value per pixel: 0 empty, 1 to 3 kinds, 4 to 10 gaps. The highest value wins. */
function cells(rows, W, H) {
  const out = new Uint8Array(W * H), px = W / (view.t1 - view.t0), tall = H / (view.r1 - view.r0), gap = tall >= 4 ? 1 : 0;
  const span = (from, to, y, v) => {
    const a = Math.max(0, Math.floor((from - view.t0) * px)), b = Math.min(W, Math.max(a + 1, Math.floor((to - view.t0) * px)));
    for (let i = y * W + a, e = y * W + b; i < e; i++) if (out[i] < v) out[i] = v;
  };
  const below = new Map(); // last pixel line of a row by its first; rows that share a line are one line high
  for (const q of rows) {
    const r = rowOf(q), y0 = Math.round((r - view.r0) * tall), y1 = Math.max(y0 + 1, Math.round((r + 1 - view.r0) * tall) - gap), y = Math.max(0, y0);
    if (y1 <= 0 || y0 >= H || q.end < view.t0 || q.due > view.t1) continue;
    below.set(y, Math.min(H, y1));
    if (q.due < q.sent) span(q.due, q.sent, y, 1);
    span(q.sent, q.head, y, 2); span(q.head, q.first ?? q.end, y, 3);
    const gaps = gapsOf(q);
    for (let k = 0, t = q.first; k < gaps.length; t += gaps[k++]) if (t + gaps[k] > view.t0 && t < view.t1) span(t, t + gaps[k], y, 3 + classOf(gaps[k]));
  }
  for (const [y, end] of below) for (let k = y + 1; k < end; k++) out.copyWithin(k * W, y * W, (y + 1) * W);
  return out;
}
function colourIn(values, W, H) {
  const image = new ImageData(W, H), words = new Uint32Array(image.data.buffer);
  const word = (c) => { const [r, g, b] = rgb(c); return (255 << 24) | (b << 16) | (g << 8) | r; };
  const table = [ink('paper'), ...KINDS.map((k) => ink(`k-${k}`)), ...EDGES.concat(0).map((_, i) => gapInk(i))].map(word);
  for (let i = 0; i < values.length; i++) words[i] = table[values[i]];
  return image;
}
function pauseStrip(ctx, l, width) { // above the rows
  const from = PAD.left, to = width - PAD.right, x = linear(view.t0 / 1000, view.t1 / 1000, from, to);
  ctx.fillStyle = ink('bad');
  for (const p of pausesOf(l)) { const s = pauseSpan(p, x, from, to); if (s) ctx.fillRect(s[0], PAD.top - 7, s[1], 4); }
}
function failStrip(ctx, l, width, height) { // all failures by time, below the rows, so that sampling hides none
  const x = linear(view.t0 / 1000, view.t1 / 1000, PAD.left, width - PAD.right), { failed, width_s: s } = l.p.bins, top = most(failed, 1);
  ctx.fillStyle = ink('bad');
  failed.forEach((n, i) => {
    if (!n) return;
    const a = Math.max(PAD.left, x(i * s)), b = Math.min(width - PAD.right, Math.max(x((i + 1) * s), a + 2)), tall = 2 + 8 * n / top;
    if (b > PAD.left && a < width - PAD.right) ctx.fillRect(a, height - PAD.bottom + 12 - tall, b - a, tall);
  });
}
function failCrosses(ctx, rows, width, height) { // drawn last and at least 8 px at any zoom
  const x = linear(view.t0, view.t1, PAD.left, width - PAD.right), y = linear(view.r0, view.r1, PAD.top, height - PAD.bottom);
  ctx.strokeStyle = ink('bad'); ctx.lineWidth = 2;
  for (const q of rows) {
    const yy = y(rowOf(q) + 0.5), a = Math.max(PAD.left, x(q.sent)), b = Math.min(width - PAD.right, x(q.end));
    if (!q.error || b < PAD.left || a > width - PAD.right || yy < PAD.top - 4 || yy > height - PAD.bottom) continue;
    ctx.beginPath(); ctx.moveTo(a, yy); ctx.lineTo(b, yy); ctx.moveTo(b - 4, yy - 4); ctx.lineTo(b + 4, yy + 4); ctx.moveTo(b - 4, yy + 4); ctx.lineTo(b + 4, yy - 4); ctx.stroke();
  }
}
function timelineAxes(ctx, width, height) {
  const x = linear(view.t0 / 1000, view.t1 / 1000, PAD.left, width - PAD.right), y = linear(view.r0, view.r1, PAD.top, height - PAD.bottom), lower = height - PAD.bottom + 12;
  ctx.font = `11px ${getComputedStyle(document.body).fontFamily}`; ctx.fillStyle = ink('soft'); ctx.strokeStyle = ink('faint'); ctx.lineWidth = 1;
  ctx.beginPath(); ctx.moveTo(PAD.left, lower + 0.5); ctx.lineTo(width - PAD.right, lower + 0.5);
  ctx.textAlign = 'center';
  for (const t of x.ticks(width / 90)) { ctx.moveTo(Math.round(x(t)) + 0.5, lower); ctx.lineTo(Math.round(x(t)) + 0.5, lower + 4); ctx.fillText(tick(t), x(t), lower + 16); }
  ctx.stroke();
  ctx.textAlign = 'right';
  for (const r of y.ticks(5)) if (Number.isInteger(r)) ctx.fillText(tick(r), PAD.left - 6, Math.max(PAD.top + 8, y(r) + 4));
  ctx.fillStyle = ink('faint'); ctx.fillText('s since the start of the level', width - PAD.right, lower + 31);
  ctx.textAlign = 'left'; ctx.fillText(onlyOf(timelineLevel()) !== '' ? 'chosen requests' : state.packed ? 'rows, reused after a request ends' : 'requests in order of sending', 0, 11);
}
