/* ---------- wiring ---------- */
$('folder').textContent = D.folder;
const route = () => new URLSearchParams(location.hash.slice(1));
const shownIds = () => (route().get('run') || route().get('compare') || '').split(',').filter(Boolean);
const query = (ids) => ids.map((id) => `run=${encodeURIComponent(id)}`).join('&');
function say(words, bad = false) { $('status').textContent = words; $('status').classList.toggle('bad', bad); }
async function ask(path, body) { // asks the server; its words where it says no
  const post = body && { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Tacho-Token': D.token }, body: JSON.stringify(body) };
  const r = await fetch(path, post || {});
  if (!r.ok) throw new Error((await r.text()).trim());
  return r.json();
}

function runBar(items) {
  const one = items.length === 1 ? items[0] : null, n = one?.notes || {}, mine = one && one.state !== 'result', title = one ? titleOf(one) : `${items.length} runs`;
  put($('run-bar'), `<a href="#" class="btn">← All runs</a><h2>${esc(title)}</h2>${one ? each(tagsOf(one), (t) => `<span class="tag">${esc(t)}</span>`) : ''}
    <div class="controls">${one?.state === 'running' ? '' : `<a class="btn" href="/page?${query(items.map((it) => it.id))}" target="_blank" rel="noopener">Open alone</a>`}
    ${mine ? '<button class="btn" id="notes-button" aria-expanded="false" aria-controls="notes">Notes and tags</button>' : ''}${mine && one.state !== 'running' ? '<button class="btn danger" id="delete-button">Delete</button>' : ''}</div>
    ${n.note ? `<p class="note">${esc(n.note)}</p>` : ''}
    ${mine ? `<form id="notes" hidden><label>Tags <input type="text" id="note-tags" value="${esc((n.tags || []).join(' '))}"></label><label>Note <textarea id="note-text">${esc(n.note || '')}</textarea></label><div><button class="btn" id="save-button">Save</button></div></form>` : ''}`);
}
let open = ''; // what the frame shows
function showPage(ids) {
  const address = `/page?${query(ids)}`, frame = $('page'), running = ids.some((id) => itemOf(id)?.state === 'running');
  frame.hidden = running;
  $('loading').hidden = running || open === address;
  if (running || open === address) return;
  open = address;
  frame.onload = () => { $('loading').hidden = true; };
  frame.src = address;
}
async function showComparison(ids) {
  const el = $('comparison');
  el.hidden = ids.length < 2;
  if (ids.length < 2 || el.dataset.of === ids.join()) return;
  el.dataset.of = ids.join();
  put(el, '<p class="foot">Comparing …</p>');
  try { comparisonView(await ask(`/api/compare?${query(ids)}`)); } catch (e) { put(el, `<p class="foot failed">${esc(e.message)}</p>`); }
}
function showLive(it) {
  const s = it?.state === 'running' ? ui.live.get(it.id) : null;
  $('live').hidden = !s;
  if (s) liveView(s);
}
let barOf = '';
function show() { // what the address says
  const ids = shownIds(), items = ids.map(itemOf).filter(Boolean);
  $('list-view').hidden = ids.length > 0;
  $('run-view').hidden = !ids.length;
  if (!ids.length) { document.title = 'tacho: runs'; drawList(); return; }
  if (!ui.loaded) return;
  if (items.length < ids.length) { put($('run-bar'), '<a href="#" class="btn">← All runs</a><p>This run is gone.</p>'); $('page').hidden = true; return; }
  document.title = `tacho: ${items.map(titleOf).join(' · ')}`;
  const bar = JSON.stringify(items.map((it) => [it.id, it.state, it.notes]));
  if (bar !== barOf) { barOf = bar; runBar(items); }
  showLive(items.length === 1 ? items[0] : null);
  showComparison(ids);
  showPage(ids);
}

async function saveNotes() {
  const [id] = shownIds(), tags = $('note-tags').value.split(/[\s,]+/).filter(Boolean);
  try {
    const notes = await ask('/api/notes', { run: id, note: $('note-text').value, tags }), it = itemOf(id); // the list may have come anew meanwhile
    if (it) it.notes = notes;
    say('Saved.'); show();
  } catch (e) { say(e.message, true); }
}
function askDelete() {
  const it = itemOf(shownIds()[0]);
  $('ask-words').textContent = `Delete ${titleOf(it)}, with ${count(it.totals.requests)} requests and ${bytes(it.bytes || 0)} on disk? It cannot be brought back.`;
  $('ask').showModal();
  $('ask-no').focus();
}
async function remove() {
  const [id] = shownIds();
  $('ask').close();
  try {
    await ask('/api/delete', { run: id });
    ui.items = ui.items.filter((it) => it.id !== id); ui.ticked.delete(id);
    parting = 'Deleted.';
    location.hash = '';
  } catch (e) { say(e.message, true); }
}
function pickTag(tag) {
  const words = ui.words.split(/\s+/).filter(Boolean), word = `tag:${tag}`;
  ui.words = (words.includes(word) ? words.filter((w) => w !== word) : [...words, word]).join(' ');
  $('search').value = ui.words;
  drawList();
}
const CLICKS = {
  '#compare-button': () => { location.hash = `compare=${[...ui.ticked].join(',')}`; },
  '#notes-button': (el) => { const form = $('notes'); form.hidden = !form.hidden; el.setAttribute('aria-expanded', String(!form.hidden)); if (!form.hidden) $('note-tags').focus(); },
  '#delete-button': askDelete, '#ask-no': () => $('ask').close(), '#ask-yes': remove,
  'button[data-tag]': (el) => pickTag(el.dataset.tag),
};
document.addEventListener('click', (e) => { const hit = Object.keys(CLICKS).find((s) => e.target.closest(s)); if (hit) CLICKS[hit](e.target.closest(hit)); });
document.addEventListener('submit', (e) => { e.preventDefault(); if (e.target.id === 'notes') saveNotes(); });
document.addEventListener('change', (e) => {
  const { tick } = e.target.dataset, set = (id, on) => { if (on) ui.ticked.add(id); else ui.ticked.delete(id); };
  if (tick) set(tick, e.target.checked);
  if (e.target.id === 'tick-all') for (const it of found().filter(canTick)) set(it.id, e.target.checked);
  if (tick || e.target.id === 'tick-all') drawList();
});
$('search').addEventListener('input', (e) => { ui.words = e.target.value; drawList(); });
document.addEventListener('pointermove', (e) => { const el = e.target.closest?.('[data-tip]'); if (el) showTip(el.dataset.tip, e.clientX, e.clientY); else hideTip(); });
document.addEventListener('keydown', (e) => { if (e.key === '/' && !/INPUT|TEXTAREA/.test(document.activeElement.tagName) && !shownIds().length) { e.preventDefault(); $('search').focus(); } });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { inks = new Map(); show(); });
let parting = ''; // what is said when another view is there
addEventListener('hashchange', () => { say(parting); parting = ''; show(); });
addEventListener('resize', () => showLive(itemOf(shownIds()[0])));

/* What happens in the folder, as it happens. While a button is held down nothing is drawn anew: what was pressed would be gone when it is let go. */
let held = false, late = false;
const letGo = () => setTimeout(() => { held = false; if (late) { late = false; show(); } });
document.addEventListener('pointerdown', () => { held = true; });
for (const kind of ['pointerup', 'pointercancel', 'dragend']) document.addEventListener(kind, letGo);
addEventListener('blur', letGo);
const refresh = () => { if (held) late = true; else show(); };
const events = new EventSource('/api/events');
events.addEventListener('runs', (e) => {
  ui.items = JSON.parse(e.data) || []; ui.loaded = true;
  const there = new Set(ui.items.map((it) => it.id));
  for (const id of ui.ticked) if (!there.has(id)) ui.ticked.delete(id);
  refresh();
});
events.addEventListener('live', (e) => { const { run, snapshot } = JSON.parse(e.data); ui.live.set(run, snapshot); refresh(); });
events.onopen = () => { if ($('status').classList.contains('bad')) say(''); };
events.onerror = () => say('tacho ui has ended, or cannot be reached: this page shows what was known.', true);
