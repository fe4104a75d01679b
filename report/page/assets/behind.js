/* ---------- 4. behind the numbers ---------- */
const metricOf = (l, name) => statsOf(l.s.metrics, name);
const server = (l) => l.s.instruments?.[0];
const tail = (d) => (d ? ['p50', 'p99', 'max'].map((k) => num(d[k])).join(' / ') : '–');
const beside = (l, key, of) => (server(l)?.[of] != null && l[key] ? `${num(server(l)[of])} / ${num(l[key].mean)}` : '–');
const apart = (l) => (server(l)?.tpot_ms && l.tpot ? l.tpot.mean / server(l).tpot_ms - 1 : null);
const columns = () => (several() ? shown().map(picked) : first().levels); // all levels of one run, or the picked levels of several runs
/* Sentences about the columns, each once, with its levels unless it is about all, at most two; ok if there are none. */
function sayOf(get, ok = '') {
  const at = new Map();
  for (const l of columns()) if (get(l)) at.set(get(l), [...(at.get(get(l)) || []), l]);
  const where = (ls) => (ls.length === columns().length ? '' : `At ${ls.map(several() ? fullName : shortName).join(', ')}: `);
  const all = [...at].map(([words, ls]) => `${where(ls)}${where(ls) ? words : words[0].toUpperCase() + words.slice(1)}.`);
  return (all.length > 2 ? [all[0], all[1], `${all.length - 2} more like these.`] : all).join(' ') || ok;
}
const either = (test, yes, no) => () => sayOf((l) => (test(l) ? '' : no), yes); // yes if the test holds for all columns
/* What the rules of the verdict with these codes say, without the action. */
const ruled = (codes, ok) => () => sayOf((l) => l.reasons.filter((r) => codes.includes(r.code)).map((r) => r.text.split(': ')[0]).join('; '), ok);
const perEvent = (l) => (l.s.events ? l.s.tokens.output / l.s.events : null);
const shareOf = (a, b) => (b ? a / b : null);
const client = (l) => l.s.config.client;
const none = () => '';
const little = (l) => l.s.steady_state?.little;
const warmUp = (l) => l.s.steady_state?.warm_up;
const whyNot = (l) => l.s.steady_state?.why_not;
const unlikeStart = (l) => { const w = warmUp(l); return w && (w.first_ms > w.rest_ms ? 'slower: warm up with --num-warmups' : 'faster than the rest'); };
const inWindow = (l, key) => { const d = l.steady && statsOf(l.steady.metrics, key); return d ? `${num(d.p50)} / ${num(d.p99)}` : '–'; };
const BEHIND = [
  ['Client', [
    [term('client lag', 'Client lag') + ' p50 / p99 / max, ms', (l) => tail(metricOf(l, 'lag')), ruled(['lag-median', 'lag-p99', 'drift', 'limit-bound'], 'No request was late by an amount that matters.')],
    [term('send lag', 'Send lag') + ' p50 / p99 / max, ms', (l) => tail(metricOf(l, 'send_lag')), either((l) => !metricOf(l, 'send_lag') || !l.ttft || metricOf(l, 'send_lag').p99 < 0.1 * l.ttft.p50, 'Small compared to TTFT: the client did not delay requests.', 'not small compared to TTFT: the client delayed requests')],
    ['Mean lag of the first / last tenth, ms', (l) => (l.s.drift ? `${num(l.s.drift.first_tenth_ms)} / ${num(l.s.drift.last_tenth_ms)}` : '–'), none],
    ['Request rate configured / sent, requests/s', (l) => rated(l) ? `${tick(valueOf(l, 'request-rate'))} / ${num(l.sent)}` : '–', ruled(['rate'], 'A random (Poisson) schedule differs from its mean in a short run.')],
    ['Client CPU utilization', (l) => percent(client(l)?.busy_share), ruled(['client-cpu', 'client-throttled', 'client-steal'], 'The client had spare CPU.')],
    ['Longest pause of the client', (l) => time(client(l)?.pauses.longest_ms), ruled(['client-stall', 'client-stalled', 'stalled-reads', 'client-scheduling', 'client-gc'], 'No pause of the client affects the figures.')]]],
  ['Steady state', [
    [term('steady window', 'Steady window') + ', s', (l) => (l.steady ? `${num(l.steady.start_s)} – ${num(l.steady.end_s)}` : whyNot(l) ? 'none' : '–'), () => sayOf((l) => whyNot(l) && `none, because ${whyNot(l)}`)],
    ['Requests in the window', (l) => (l.steady ? `${count(l.steady.requests)} (${percent(l.steady.share)})` : '–'), none],
    ['Throughput in the window / whole level, requests/s', (l) => (l.steady ? `${num(l.steady.requests_per_s)} / ${num(l.rps)}` : '–'), none],
    ['TTFT p50 / p99 in the window, ms', (l) => inWindow(l, 'ttft'), none],
    ['TPOT p50 / p99 in the window, ms', (l) => inWindow(l, 'tpot'), none],
    ['Little’s law: measured / expected in flight', (l) => (little(l) ? `${num(little(l).mean_in_flight)} / ${num(little(l).mean_in_flight * (1 + little(l).off))}` : '–'), either((l) => !(Math.abs(little(l)?.off) > 0.1), 'Little’s law holds: arrivals and completions balance.', 'Little’s law is off by more than 10 %: the level was not in steady state')],
    ['First requests / the rest, mean ms', (l) => (warmUp(l) ? `${num(warmUp(l).first_ms)} / ${num(warmUp(l).rest_ms)}` : '–'), () => sayOf((l) => unlikeStart(l) && `the first requests were ${unlikeStart(l)}`)]]],
  ['Clock', [
    ['Source of arrival timestamps', (l) => l.s.clock?.name || '–', either((l) => ['kernel', 'wire'].includes(l.s.clock?.name), 'Arrival times, not read times.', 'partly user-space timestamps, which include pauses of the client')],
    [term('read lag', 'Read lag') + ' p50 / p99 / max, ms', (l) => tail(metricOf(l, 'read_lag')), () => 'The error that user-space timestamps would have.'],
    [term('read late', 'Token events read late'), (l) => percent(shareOf(l.s.coalesced_events, l.s.events)), ruled(['coalesced', 'late-reads'], 'Nearly every event has its own timestamp.')]]],
  ['Token counts', [
    ['Input tokens (requests counted by the server)', (l) => `${count(l.s.tokens.input)} (${count(l.s.tokens.input_by_server)} of ${count(l.s.completed)})`, ruled(['prompt-count', 'input-estimated'], 'Server and workload agree on every prompt.')],
    ['Output tokens, source of the count', (l) => `${count(l.s.tokens.output)}, ${(l.s.tokens.output_by || []).map((o) => o.source).join(' and ') || '–'}`, ruled(['output-by-events', 'token-sums', 'more-events'], 'An event may contain several tokens.')],
    ['Tokens per event', (l) => num(perEvent(l)), either((l) => !(perEvent(l) > 1.005), 'One token per event: ITL is the gap between tokens.', 'several tokens arrive together, so ITL is longer than TPOT')],
    ['Output length off (too short / too long)', (l) => (l.s.tokens.exact ? `${count(l.s.tokens.short)} / ${count(l.s.tokens.long)}` : '–'), ruled(['output-count'], '')],
    ['Prefix cache hits', (l) => percent(server(l)?.prefix_hit_share ?? (l.s.cache.prompt ? l.s.cache.cached / l.s.cache.prompt : null)), ruled(['cache'], 'No doubt about repeated prompts.')]]],
  ['Server / client metrics, mean, ms', [
    [term('TTFT'), (l) => beside(l, 'ttft', 'ttft_ms'), () => 'The difference is HTTP and the API process, before and after the engine.'],
    [term('TPOT'), (l) => beside(l, 'tpot', 'tpot_ms'), () => 'The difference is the delay between the engine and the API process.'],
    ['TPOT, client above server', (l) => (apart(l) == null ? '–' : `${signed(apart(l) * 100)} %`), either((l) => !(apart(l) >= 0.02), 'They agree.', 'the front end adds time to every token')],
    [term('E2EL'), (l) => beside(l, 'e2el', 'e2el_ms'), none],
    ['Server queue time, mean ms', (l) => num(server(l)?.queue_ms), none],
    ['Peak requests running / queued', (l) => (server(l) ? `${count(server(l).running?.max)} / ${count(server(l).queued?.max)}` : '–'), none],
    [term('KV cache') + ', peak', (l) => percent(server(l)?.kv_share?.max), either((l) => !(server(l)?.kv_share?.max >= 0.8), 'Far from full: its size is not the limit here.', 'full or nearly full, so its size limits the batch')],
    ['Preemptions', (l) => count(server(l)?.preemptions), either((l) => !server(l)?.preemptions, 'None.', 'requests were preempted and computed again')],
    ['Corrupted requests', (l) => count(server(l)?.corrupted), either((l) => !server(l)?.corrupted, 'None.', 'the logits contained NaN, so these answers are wrong')],
    ['GPU utilization, mean / power, W', (l) => (server(l)?.gpu_share || server(l)?.power_w ? `${percent(server(l).gpu_share?.mean)} / ${num(server(l).power_w?.mean)}` : '–'), none]]],
  ['More figures', (D.figures || []).map((f) => [`<abbr tabindex="0" data-tip="${esc(esc(f.doc))}">${esc(f.title)}</abbr>${f.title.endsWith(`(${f.unit})`) ? '' : `, ${esc(f.unit)}`}`, (l) => num(l.s.figures?.[f.name]), none])]];
function behind() {
  const ls = columns(), on = (l) => (picked(l.run) === l && !several() ? 'on' : ''), blank = ([, get]) => ls.every((l) => /^[–/ ]*$/.test(get(l)));
  const row = ([name, get, say]) => `<tr><td>${name}</td>${each(ls, (l) => `<td class="${on(l)}">${esc(get(l))}</td>`)}<td class="say">${esc(say())}</td></tr>`;
  const group = ([name, rows]) => { const known = rows.filter((r) => !blank(r)); return known.length ? `<tr><th class="group" colspan="${ls.length + 2}" scope="rowgroup">${name}</th></tr>${each(known, row)}` : ''; };
  const heads = each(ls, (l) => `<th scope="col" class="${on(l)}">${several() ? `${esc(l.run.name)}<br>` : ''}${esc(shortName(l))}${l.invalid ? ' ✕ INVALID' : ''}<br>${esc([...l.coords.keys()].map((o) => UNITS[o] || o).join(' · '))}</th>`);
  $('behind').hidden = !ls.some((l) => l.p); // a parsed text report has no such data
  put($('behind-table'), `<table><thead><tr><th></th>${heads}<th></th></tr></thead><tbody>${each(BEHIND, group)}</tbody></table>`);
}
