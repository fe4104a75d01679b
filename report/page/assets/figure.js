/* ---------- figures ---------- */
/* A figure is {name, title, note?, has?(), keys?(), draw(width) -> svg text, table() -> {head, rows}, hover?(x, y, width) -> {tip, mark}}.
   A figure with a canvas has paint(width) instead of draw, and creates its canvas in setUp(figure). */
const figures = [];
function figure(where, f) {
  const el = document.createElement('figure');
  el.className = 'chart';
  const actions = [['data', 'Show data'], ['svg', 'Save SVG'], ['png', 'Save PNG'], ['csv', 'Save CSV']];
  put(el, `<figcaption><div></div><details class="menu"><summary aria-label="Data and export of ${esc(f.name)}" title="Data and export">•••</summary>
    <div>${each(actions, ([k, label]) => `<button data-do="${k}">${label}</button>`)}</div></details></figcaption>
    ${f.keys ? '<div class="keys"></div>' : ''}<div class="plot${f.zooms ? ' zooms' : ''}" role="img"${f.hover ? ' tabindex="0"' : ''}></div>${f.below ? '<div class="below" aria-live="polite"></div>' : ''}<div class="data" hidden tabindex="0" role="region" aria-label="Data of ${esc(f.name)}"></div>`);
  Object.assign(f, { el, plot: el.querySelector('.plot'), caption: el.querySelector('figcaption > div'), data: el.querySelector('.data') });
  el.dataset.figure = f.name;
  $(where).append(el);
  el.querySelector('.menu').addEventListener('click', (e) => act(f, e.target.dataset.do));
  if (f.hover) hoverable(f);
  if (f.zooms) zoomable(f);
  if (f.setUp) f.setUp(f);
  figures.push(f);
}
function hoverable(f) {
  let at = null; // position of the keyboard's cross-hair, as a share of the width
  const leave = () => { mark(f, ''); hideTip(); };
  f.plot.addEventListener('pointermove', (e) => { const box = f.plot.getBoundingClientRect(); point(f, e.clientX - box.left, e.clientY - box.top); });
  f.plot.addEventListener('pointerleave', leave);
  f.plot.addEventListener('blur', leave);
  f.plot.addEventListener('keydown', (e) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[e.key];
    if (!step) return;
    e.preventDefault();
    at = Math.max(0, Math.min(1, (at ?? 0.5) + step));
    point(f, at * f.plot.clientWidth, 40);
  });
}
function point(f, x, y) {
  const box = f.plot.getBoundingClientRect(), h = f.hover(x, y, box.width);
  mark(f, h ? h.mark : '');
  if (h) showTip(h.tip, box.left + x, box.top + y); else hideTip();
}
function mark(f, body) { const g = f.plot.querySelector('.mark'); if (g) put(g, body); }
function render(f) {
  f.el.hidden = f.has ? !f.has() : false;
  if (f.el.hidden) return;
  const width = f.plot.clientWidth, value = (v) => (typeof v === 'function' ? v() : v);
  put(f.caption, `<b>${value(f.title)}</b><span class="note">${value(f.note) || ''}</span>`);
  if (f.keys) put(f.el.querySelector('.keys'), f.keys());
  if (f.setUp) f.paint(width); else put(f.plot, f.draw(width));
  if (f.below) put(f.el.querySelector('.below'), f.below());
  f.plot.setAttribute('aria-label', `${f.name}. ${f.say ? f.say() : ''} “Show data” lists the numbers.`);
  if (!f.data.hidden) put(f.data, plainTable(f.table()));
}
const MOST_ROWS = 500;
function plainTable({ head, rows }) {
  const cell = (c) => `<td>${esc(typeof c === 'number' ? num(c) : c ?? '–')}</td>`;
  return `<table><thead><tr>${each(head, (h) => `<th scope="col">${esc(h)}</th>`)}</tr></thead>
    <tbody>${each(rows.slice(0, MOST_ROWS), (r) => `<tr>${each(r, cell)}</tr>`)}</tbody></table>
    ${rows.length > MOST_ROWS ? `<p class="foot">The first ${count(MOST_ROWS)} of ${count(rows.length)}; the CSV has all rows.</p>` : ''}`;
}
const perLevel = (head, row) => ({ head: ['run', 'level', ...head], rows: levelsShown().map((l) => [l.run.name, shortName(l), ...row(l)]) });
function csvText({ head, rows }) { // an apostrophe keeps a spreadsheet from running a text as a formula
  const plain = (c) => (typeof c === 'string' && /^[=+\-@\t\r]/.test(c) && !/^[-+]?[\d.,]+$/.test(c) ? `'${c}` : String(c ?? ''));
  const cell = (c) => { const s = plain(c); return /[",\r\n]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s; };
  return `${[head, ...rows].map((r) => r.map(cell).join(',')).join('\n')}\n`;
}
function act(f, what) {
  if (!what) return;
  const menu = f.el.querySelector('.menu'), name = `tacho-${f.name.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
  menu.open = false;
  menu.querySelector('summary').focus();
  if (what === 'data') { f.data.hidden = !f.data.hidden; menu.querySelector('[data-do=data]').textContent = f.data.hidden ? 'Show data' : 'Hide data'; render(f); }
  if (what === 'csv') save(new Blob([csvText(f.table())], { type: 'text/csv' }), `${name}.csv`);
  if (what === 'svg') save(new Blob([standalone(f)], { type: 'image/svg+xml' }), `${name}.svg`);
  if (what === 'png' && f.setUp) f.plot.querySelector('canvas').toBlob((b) => save(b, `${name}.png`));
  if (what === 'png' && !f.setUp) picture(standalone(f), (b) => save(b, `${name}.png`));
}
function save(blob, name) {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(blob); a.download = name; a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
function asSVG(canvas) { // a canvas as an image inside an SVG
  const holder = document.createElement('div');
  put(holder, `${svg(canvas.clientWidth, canvas.clientHeight, `<image href="${canvas.toDataURL()}" width="${canvas.clientWidth}" height="${canvas.clientHeight}"/>`)}`);
  return holder.firstChild;
}
/* The chart's SVG with inlined styles and its title, so that the file is self-contained. */
const KEPT = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'opacity', 'font', 'paint-order'];
function standalone(f) {
  const from = f.setUp ? asSVG(f.plot.querySelector('canvas')) : f.plot.querySelector('svg'), copy = from.cloneNode(true), all = from.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((el, i) => { const s = getComputedStyle(all[i]); for (const k of KEPT) el.style.setProperty(k, s.getPropertyValue(k)); });
  const w = +from.getAttribute('width') + 24, h = +from.getAttribute('height') + 44;
  for (const [k, v] of [['viewBox', `-12 -32 ${w} ${h}`], ['width', w], ['height', h]]) copy.setAttribute(k, v);
  const ns = 'http://www.w3.org/2000/svg', paper = document.createElementNS(ns, 'rect'), title = document.createElementNS(ns, 'text');
  for (const [k, v] of [['x', -12], ['y', -32], ['width', w], ['height', h], ['fill', ink('paper')]]) paper.setAttribute(k, v);
  for (const [k, v] of [['x', 0], ['y', -12], ['fill', ink('ink')], ['font', '600 13px sans-serif']]) title.setAttribute(k, v);
  title.style.font = '600 13px sans-serif';
  title.textContent = f.caption.querySelector('b').textContent;
  copy.prepend(paper, title);
  return new XMLSerializer().serializeToString(copy);
}
function picture(source, done) { // at twice the resolution of the screen, for slides
  const img = new Image();
  img.onload = () => {
    const c = document.createElement('canvas');
    c.width = img.width * 2; c.height = img.height * 2;
    c.getContext('2d').drawImage(img, 0, 0, c.width, c.height);
    c.toBlob(done);
  };
  img.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
}
function showTip(html, x, y) {
  const t = $('tip');
  put(t, html); t.hidden = false;
  t.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - t.offsetWidth - 4))}px`;
  t.style.top = `${y + 16 + t.offsetHeight > innerHeight ? Math.max(4, y - t.offsetHeight - 12) : y + 16}px`;
}
const hideTip = () => { $('tip').hidden = true; };
function keyed(pairs) { // the text of a tip: a heading has an empty value
  return `<span class="kv">${each(pairs, ([k, v]) => (v === '' ? `<b class="all">${esc(k)}</b>` : `<span>${esc(k)}</span><b>${esc(v)}</b>`))}</span>`;
}
function seg(label, options, key, now = state[key]) { // a switch of one key of the state; options are [value, text, disabled]
  const button = ([v, name, off]) => `<button data-value="${esc(JSON.stringify(v))}" aria-pressed="${now === v}" ${off ? 'disabled' : ''}>${name}</button>`;
  return `<span class="seg" data-key="${key}" role="group" aria-label="${esc(label || key)}"><span>${label}</span><span class="opts">${each(options, button)}</span></span>`;
}
