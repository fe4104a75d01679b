/* ---------- wiring ---------- */
$('folder').textContent = D.folder;
const route = () => new URLSearchParams(location.hash.slice(1));
const shownIds = () => (route().get('run') || route().get('compare') || '').split(',').filter(Boolean);
const query = (ids) => ids.map((id) => `run=${encodeURIComponent(id)}`).join('&');
function say(words, bad = false) { $('status').textContent = words; $('status').classList.toggle('bad', bad); }
async function ask(path, body) { // calls the server; an error has the server's message
  const post = body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const r = await fetch(path, post || {});
  if (!r.ok) throw new Error((await r.text()).trim());
  return r.json();
}

function runBar(items) {
  const one = items.length === 1 ? items[0] : null, n = one?.notes || {}, mine = one && one.state !== 'result', title = one ? nameOf(one) : `${items.length} runs`;
  put($('run-bar'), `<a href="#" class="btn">← All runs</a><h2>${esc(title)}</h2>${one ? each(tagsOf(one), (t) => `<span class="tag">${esc(t)}</span>`) : ''}${one?.state === 'running' && one.simulated ? badge('SIMULATED') : ''}
    <div class="controls">${one ? '' : `<span class="seg" role="group" aria-label="View"><span class="opts">${each([['differences', 'Differences'], ['charts', 'Charts']], ([k, name]) => `<button data-tab="${k}" aria-pressed="${tab === k}">${name}</button>`)}</span></span>`}${one?.state === 'running' ? '' : `<a class="btn" href="/page?${query(items.map((it) => it.id))}" target="_blank" rel="noopener">Open in a new tab</a>`}
    ${mine && one.state !== 'running' ? `<button class="btn" id="baseline-button" aria-pressed="${tagsOf(one).includes(BASELINE)}">Use as baseline</button>` : ''}${mine ? '<button class="btn" id="notes-button" aria-expanded="false" aria-controls="notes">Notes and tags</button>' : ''}${mine && one.state !== 'running' ? '<button class="btn danger" id="delete-button">Delete</button>' : ''}</div>
    ${one ? '' : `<p class="sides">${each(items, (it, i) => `<span>${i ? '' : 'Base: '}<b>${breakable(it.about.label || nameOf(it))}</b> ${chips(it)}</span>`)}</p>`}${n.note ? `<p class="note">${esc(n.note)}</p>` : ''}
    ${mine ? `<form id="notes" hidden><label>Tags <input type="text" id="note-tags" value="${esc((n.tags || []).join(' '))}"></label><label>Note <textarea id="note-text">${esc(n.note || '')}</textarea></label><div><button class="btn" id="save-button">Save</button></div>${n.log?.length ? `<details><summary>${count(n.log.length)} changes</summary><ul class="log">${each([...n.log].reverse(), (l) => `<li>${esc(l.at.slice(0, 19).replace('T', ' '))} UTC, ${esc(l.from)}: ${esc(l.what)}</li>`)}</ul></details>` : ''}</form>` : ''}`);
}
let tab = 'differences'; // of a comparison
let open = ''; // address of the frame
function showPage(ids) {
  const address = `/page?${query(ids)}`, frame = $('page'), off = ids.some((id) => itemOf(id)?.state === 'running') || (ids.length > 1 && tab !== 'charts');
  frame.hidden = off;
  document.body.classList.toggle('framed', !off); // the frame fills the window, so that only the report scrolls
  $('loading').hidden = off || open === address;
  if (off || open === address) return;
  open = address;
  frame.onload = () => { $('loading').hidden = true; };
  frame.src = address;
}
async function showComparison(ids) {
  const el = $('comparison');
  el.hidden = ids.length < 2 || tab === 'charts';
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
function show() { // the view of the current address
  const ids = shownIds(), items = ids.map(itemOf).filter(Boolean);
  $('list-view').hidden = ids.length > 0;
  document.body.classList.remove('framed');
  $('run-view').hidden = !ids.length;
  if (!ids.length) { document.title = 'tacho: runs'; drawList(); return; }
  if (!ui.loaded) return;
  if (items.length < ids.length) { put($('run-bar'), '<a href="#" class="btn">← All runs</a><p>This run no longer exists.</p>'); $('page').hidden = true; return; }
  document.title = `${items.map((it) => (items.length > 1 ? nameOf(it) : titleOf(it) || nameOf(it))).join(' · ')} – tacho`;
  const bar = JSON.stringify([tab, items.map((it) => [it.id, it.state, it.notes])]);
  if (bar !== barOf) { barOf = bar; runBar(items); }
  showLive(items.length === 1 ? items[0] : null);
  showComparison(ids);
  showPage(ids);
}

async function saveNotes() {
  const [id] = shownIds(), tags = $('note-tags').value.split(/[\s,]+/).filter(Boolean);
  try {
    const notes = await ask('/api/notes', { run: id, note: $('note-text').value, tags }), it = itemOf(id); // the list may have been replaced meanwhile
    if (it) it.notes = notes;
    say('Saved.'); show();
  } catch (e) { say(e.message, true); }
}
function askDelete() {
  const it = itemOf(shownIds()[0]);
  $('ask-words').textContent = `Delete ${nameOf(it)}, with ${count(it.totals.requests)} requests and ${bytes(it.bytes || 0)} on disk? This cannot be undone.`;
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
/* Marks a run as the baseline of the runs with its tags, or takes the mark back. */
async function toggleBaseline() {
  const it = itemOf(shownIds()[0]), tags = tagsOf(it), on = tags.includes(BASELINE);
  try {
    const notes = await ask('/api/notes', { run: it.id, note: it.notes.note || '', tags: on ? tags.filter((t) => t !== BASELINE) : [...tags, BASELINE] }), now = itemOf(it.id);
    if (now) now.notes = notes;
    say(on ? 'No longer the baseline.' : 'This run is the baseline now.'); show();
  } catch (e) { say(e.message, true); }
}
async function copy(el) {
  try { await navigator.clipboard.writeText(el.dataset.copy); say('Copied.'); } catch { say('The browser does not allow copying: select the text.', true); }
}
function compareTicked() { // the baseline comes first, then the oldest run
  const started = (it) => (tagsOf(it).includes(BASELINE) ? -Infinity : it.about.began > '0002' ? Date.parse(it.about.began) : Infinity);
  const at = new Map([...ui.ticked].map((id) => [id, started(itemOf(id))]));
  location.hash = `compare=${[...at.keys()].sort((a, b) => (at.get(a) > at.get(b)) - (at.get(a) < at.get(b))).join(',')}`;
}
const CLICKS = {
  '#compare-button': compareTicked, '#baseline-button': toggleBaseline, '[data-copy]': copy,
  '[data-sort]': (el) => sortBy(el.dataset.sort),
  '[data-tab]': (el) => { tab = el.dataset.tab; show(); document.querySelector(`[data-tab="${tab}"]`).focus(); },
  '#notes-button': (el) => { const form = $('notes'); form.hidden = !form.hidden; el.setAttribute('aria-expanded', String(!form.hidden)); if (!form.hidden) $('note-tags').focus(); },
  '#delete-button': askDelete, '#ask-no': () => $('ask').close(), '#ask-yes': remove,
  'button[data-tag]': (el) => pickTag(el.dataset.tag),
};
document.addEventListener('click', (e) => { const hit = Object.keys(CLICKS).find((s) => e.target.closest(s)); if (hit) CLICKS[hit](e.target.closest(hit)); });
document.addEventListener('submit', (e) => { e.preventDefault(); if (e.target.id === 'notes') saveNotes(); });
document.addEventListener('change', (e) => {
  const { tick } = e.target.dataset, set = (id, on) => { if (on) ui.ticked.add(id); else ui.ticked.delete(id); };
  if (tick) set(tick, e.target.checked);
  if (e.target.id === 'sort') { const [key, up] = e.target.value.split(' '); sortBy(key, up === 'true'); }
  if (e.target.id === 'tick-all') for (const it of found().filter(canTick)) set(it.id, e.target.checked);
  if (tick || e.target.id === 'tick-all') drawList();
});
$('search').addEventListener('input', (e) => { ui.words = e.target.value; drawList(); });
document.addEventListener('pointermove', (e) => { const el = e.target.closest?.('[data-tip]'); if (el) showTip(el.dataset.tip, e.clientX, e.clientY); else hideTip(); });
document.addEventListener('keydown', (e) => { if (e.key === '/' && !/INPUT|TEXTAREA/.test(document.activeElement.tagName) && !shownIds().length) { e.preventDefault(); $('search').focus(); } });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { inks = new Map(); show(); });
let parting = ''; // message for the next view
addEventListener('hashchange', () => { say(parting); parting = ''; tab = 'differences'; show(); });
addEventListener('resize', () => { if (shownIds().length) showLive(itemOf(shownIds()[0])); else drawTrend(); });

/* Live updates of the folder. While a button is pressed nothing is redrawn, because the pressed element would be replaced before its release. */
let held = false, late = false;
const letGo = () => setTimeout(() => { held = false; if (late) { late = false; show(); } });
document.addEventListener('pointerdown', () => { held = true; });
for (const kind of ['pointerup', 'pointercancel', 'dragend']) document.addEventListener(kind, letGo);
addEventListener('blur', letGo);
const refresh = () => { if (held) late = true; else show(); };
const events = new EventSource('/api/events');
events.addEventListener('runs', (e) => {
  const first = ui.loaded && !ui.items.length;
  ui.items = JSON.parse(e.data) || []; ui.loaded = true;
  if (first && ui.items.length) say(`The first run is here: ${nameOf(ui.items[0])}.`);
  const there = new Set(ui.items.map((it) => it.id));
  for (const id of ui.ticked) if (!there.has(id)) ui.ticked.delete(id);
  refresh();
});
events.addEventListener('live', (e) => { const { run, snapshot } = JSON.parse(e.data); ui.live.set(run, snapshot); refresh(); });
events.onopen = () => { if ($('status').classList.contains('bad')) say(''); };
events.onerror = () => say('Connection to tacho ui lost. This page shows the last known state.', true);
