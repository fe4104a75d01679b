/* ---------- 1. verdict, conclusion and setup ---------- */
const chipsOf = (run) => chips({ verdict: run.conclusion.verdict, invalid: run.invalid, levels: run.levels.length + (run.left_out || 0), simulated: run.simulated }); // the table has the verdict of each level
function header() {
  const run = first(), title = several() ? shown().map((r) => r.name).join(' · ') : [titleOf(run) || run.name, run.about.label].filter(Boolean).join(' · ');
  put($('top'), `<div class="bar"><h1>${esc(title)}</h1>${several() ? '' : chipsOf(run)}<div class="controls" id="top-controls"></div></div>
    ${several() ? each(shown(), answerOfMany) : each(answerOf(run.conclusion), (s, i) => `<p class="answer${i && run.conclusion.verdict === 'INVALID' ? ' why' : ''}">${esc(s)}</p>`)}
    ${reasonList()}`);
  put($('about'), `${several() ? factTable() : `<dl class="facts">${each(factsOf(run), ([k, v]) => `<div><dt>${k}</dt><dd>${esc(v)}</dd></div>`)}</dl>`}
    ${each(shown().filter((r) => r.command), commandLine)}`);
  headline();
  put($('top-controls'), (RUNS.length > 1 ? each(RUNS, runButton) : '')
    + `<button class="btn" id="theme-button">Theme: ${document.documentElement.dataset.theme || 'auto'}</button>`);
  document.title = `${title} – tacho`;
}
/* The sentences of a conclusion. The reason of an INVALID one is a sentence of its own, because reasons are long. */
function answerOf({ verdict, text }) {
  const [, short, why] = (verdict === 'INVALID' && /^(.*?), because (.*)$/s.exec(text[0])) || [];
  return why ? [`${short}.`, why[0].toUpperCase() + why.slice(1), ...text.slice(1)] : text;
}
const answerOfMany = (run) => `<p class="answer many">${swatch(runInk(run), `<b>${esc(run.name)}</b>`)} ${chipsOf(run)} ${esc(run.conclusion.text.join(' '))}</p>`;
const runButton = (r) => `<button class="btn" data-run="${r.k}" aria-pressed="${shown().includes(r)}">${swatch(runInk(r), esc(r.name))}</button>`;
const commandLine = (r) => `<div class="command"><code>${esc(r.command)}</code><button class="btn" data-copy="${esc(r.command)}">Copy</button></div>`;
function reasonList() {
  const word = (r) => esc((r.level || 'NOTE').toLowerCase()), same = new Map(); // a reason at several levels appears once, with the text of the last level
  const say = (r, run, where) => { const key = `${run.k} ${r.level} ${r.code || r.text}`, before = same.get(key); same.set(key, { ...r, run, more: Boolean(before) && (before.more || before.text !== r.text), where: [...(before?.where || []), where] }); };
  for (const run of shown()) {
    for (const r of run.notes || []) say(r, run, 'whole run');
    for (const l of run.levels) for (const r of l.reasons) say(r, run, nameOf(l));
    if (run.left_out) say({ level: 'NOTE', text: `${count(run.left_out)} more levels do not fit on this page; tacho report --format levels shows all levels` }, run, 'whole run');
  }
  const rank = (r) => ['INVALID', 'DEGRADED', 'NOTE'].indexOf(r.level), place = (r) => (r.where.length > 2 ? `${r.where.length} levels` : r.where.join(' and '));
  const said = (r) => r.run.conclusion.text.some((s) => s.includes(r.text)); // the conclusion has its words
  const all = [...same.values()].filter((r) => !said(r)).sort((p, q) => rank(p) - rank(q));
  const lines = all.map((r) => `<li class="${word(r)}"><b>${word(r)}</b> (${esc(several() ? `${r.run.name}, ` : '')}${esc(place(r))}${r.more ? `, last at ${esc(r.where.at(-1))}` : ''}): ${esc(r.text)}</li>`);
  const grave = Math.min(2, all.filter((r) => r.level !== 'NOTE').length); // the rest is one click away
  return `<ul class="reasons">${lines.slice(0, grave).join('')}</ul>`
    + (lines.length > grave ? `<details class="reasons"><summary>${count(lines.length - grave)} ${grave ? 'more' : lines.length > 1 ? 'notes' : 'note'}</summary><ul class="reasons">${lines.slice(grave).join('')}</ul></details>` : '');
}
function factsOf(run) {
  const a = run.about, total = (key) => sumOf(run.levels, (l) => l.s[key]);
  return [
    ['Model', a.model], ['Server', [a.backend, ...(a.urls || [])].filter(Boolean).join(', ')], ['GPU', a.gpus], ['Dataset', a.dataset],
    ['Requests', `${count(total('requests'))}, ${count(total('failed'))} failed${total('canceled') ? `, ${count(total('canceled'))} canceled` : ''}`], ['Client', a.host],
    ['Date', a.began > '0002' ? `${a.began.slice(0, 19).replace('T', ' ')} UTC` : ''], ['Run', a.name],
    ...(a.metadata || []).map((f) => [esc(f.name), f.value]),
  ].filter(([, v]) => v);
}
function factTable() { // one column per run
  const names = [...new Set(shown().flatMap((r) => factsOf(r).map(([k]) => k)))], lists = shown().map((r) => new Map(factsOf(r)));
  const cell = (name) => (m) => `<td>${esc(m.get(name) ?? '–')}</td>`;
  return `<div class="scroll facts"><table><thead><tr><th></th>${each(shown(), (r) => `<th scope="col">${swatch(runInk(r), esc(r.name))}</th>`)}</tr></thead>
    <tbody>${each(names, (name) => `<tr><td>${name}</td>${each(lists, cell(name))}</tr>`)}</tbody></table></div>`;
}
