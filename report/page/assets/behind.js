/* ---------- 4. behind the numbers ---------- */
const metricOf = (l, name) => statsOf(l.s.metrics, name);
const server = (l) => l.s.instruments?.[0];
const tail = (d) => (d ? ['p50', 'p99', 'max'].map((k) => num(d[k])).join(' / ') : '–');
const beside = (l, key, of) => (server(l)?.[of] != null && l[key] ? `${num(server(l)[of])} / ${num(l[key].mean)}` : '–');
const apart = (l) => (server(l)?.tpot_ms && l.tpot ? l.tpot.mean / server(l).tpot_ms - 1 : null);
const columns = () => (several() ? shown().map(picked) : first().levels); // all levels of one run, or the picked ones of several
const either = (test, yes, no) => () => (columns().every(test) ? yes : no); // a saying is true of all columns, or the other one stands
const perEvent = (l) => (l.s.events ? l.s.tokens.output / l.s.events : null);
const shareOf = (a, b) => (b ? a / b : null);
const client = (l) => l.s.config.client;
const none = () => '';
const little = (l) => l.s.steady_state?.little;
const warmUp = (l) => l.s.steady_state?.warm_up;
const whyNot = (l) => l.s.steady_state?.why_not;
function reasonsOf(get) { // each reason once, with the columns that it is true of if it is not true of all
  const at = new Map();
  for (const l of columns()) if (get(l)) at.set(get(l), [...(at.get(get(l)) || []), l]);
  return [...at].map(([why, ls]) => [why, ls.length === columns().length ? '' : ` at ${ls.map(several() ? fullName : shortName).join(', ')}`]);
}
const unlikeStart = (l) => { const w = warmUp(l); return w && (w.first_ms > w.rest_ms ? 'slower: warm up with --num-warmups' : 'faster than the rest'); };
const inBalance = (l, key) => { const d = l.steady && statsOf(l.steady.metrics, key); return d ? `${num(d.p50)} / ${num(d.p99)}` : '–'; };
const BEHIND = [
  ['The client', [
    [term('client lag', 'Client lag') + ' p50 / p99 / max, ms', (l) => tail(metricOf(l, 'lag')), either((l) => !metricOf(l, 'lag') || !l.ttft || metricOf(l, 'lag').p99 < 0.1 * l.ttft.p50 || l.s.limit_bound, 'Small against TTFT, or the wait for a free place.', 'Not small against TTFT at every level.')],
    [term('send lag', 'Send lag') + ' p50 / p99 / max, ms', (l) => tail(metricOf(l, 'send_lag')), either((l) => !metricOf(l, 'send_lag') || !l.ttft || metricOf(l, 'send_lag').p99 < 0.1 * l.ttft.p50, 'Small against TTFT: the client did not delay what it sent.', 'Not small against TTFT at every level: the client delayed requests.')],
    ['Lag, first / last tenth, ms', (l) => (l.s.drift ? `${num(l.s.drift.first_tenth_ms)} / ${num(l.s.drift.last_tenth_ms)}` : '–'), none],
    ['Asked / sent, requests/s', (l) => `${valueOf(l, 'request-rate') ? tick(valueOf(l, 'request-rate')) : '–'} / ${num(l.sent)}`, () => (columns().some((l) => valueOf(l, 'request-rate')) ? 'A random (Poisson) schedule differs from its mean in a short run.' : '')],
    ['Processors used by the client', (l) => percent(client(l)?.busy_share), either((l) => !client(l) || client(l).busy_share < 0.85, 'There was room to spare.', 'Nearly all: streams may have waited for it.')],
    ['Longest pause of the client', (l) => time(client(l)?.pauses.longest_ms), either((l) => !client(l) || client(l).pauses.longest_ms < 250, 'It ran all the time.', 'It did not run for a while: what came then was read late.')]]],
  ['The steady state', [
    [term('in balance', 'In balance') + ', s', (l) => (l.steady ? `${num(l.steady.start_s)} – ${num(l.steady.end_s)}` : whyNot(l) ? 'never' : '–'), () => reasonsOf(whyNot).map(([why, where]) => `Never${where}: ${why}.`).join(' ')],
    ['Requests in it', (l) => (l.steady ? `${count(l.steady.requests)} (${percent(l.steady.share)})` : '–'), none],
    ['Served in it / in all, requests/s', (l) => (l.steady ? `${num(l.steady.requests_per_s)} / ${num(l.rps)}` : '–'), none],
    ['TTFT p50 / p99 in it, ms', (l) => inBalance(l, 'ttft'), none],
    ['TPOT p50 / p99 in it, ms', (l) => inBalance(l, 'tpot'), none],
    ['In flight / rate x latency', (l) => (little(l) ? `${num(little(l).mean_in_flight)} / ${num(little(l).mean_in_flight * (1 + little(l).off))}` : '–'), either((l) => !(Math.abs(little(l)?.off) > 0.1), 'Little’s law holds: what came in went out.', 'Little’s law is off by more than a tenth: it was not in balance.')],
    ['First requests / the rest, mean ms', (l) => (warmUp(l) ? `${num(warmUp(l).first_ms)} / ${num(warmUp(l).rest_ms)}` : '–'), () => reasonsOf(unlikeStart).map(([how, where]) => `The first requests${where} were ${how}.`).join(' ')]]],
  ['The clock', [
    ['Arrivals stamped by', (l) => l.s.clock?.name || '–', either((l) => ['kernel', 'wire'].includes(l.s.clock?.name), 'The time of arrival, not when the program got to read it.', 'At times the program’s own clock: its pauses are in the times.')],
    [term('read lag', 'Read lag') + ' p50 / p99 / max, ms', (l) => tail(metricOf(l, 'read_lag')), () => 'What a clock inside the program would have added.'],
    [term('coalesced', 'Coalesced') + ' token events', (l) => percent(shareOf(l.s.coalesced_events, l.s.events)), either((l) => !(shareOf(l.s.coalesced_events, l.s.events) >= 0.01), 'Below 1 %: practically each event has its own time.', 'Some gaps read as zero and others too long: trust TPOT before ITL.')]]],
  ['Token counts', [
    ['Input tokens, counted by the server', (l) => `${count(l.s.tokens.input)} (${count(l.s.tokens.input_by_server)} of ${count(l.s.completed)})`, either((l) => l.s.tokens.prompt_check.differ === 0, 'No prompt differs from what was asked.', 'Some prompts differ from what was asked.')],
    ['Output tokens, by', (l) => `${count(l.s.tokens.output)}, ${(l.s.tokens.output_by || []).map((o) => o.source).join(' and ') || '–'}`, () => 'Tokens are not events: an event may hold several.'],
    ['Tokens per event', (l) => num(perEvent(l)), either((l) => !(perEvent(l) > 1.005), 'One token an event: ITL is a token’s.', 'Above 1: several tokens came at once, so ITL is longer than TPOT.')],
    ['Told to be exact: short / long', (l) => (l.s.tokens.exact ? `${count(l.s.tokens.short)} / ${count(l.s.tokens.long)}` : '–'), none],
    ['Found in a cache', (l) => percent(server(l)?.prefix_hit_share ?? (l.s.cache.prompt ? l.s.cache.cached / l.s.cache.prompt : null)), either((l) => !(server(l)?.prefix_hit_share >= 0.01) && !(l.s.cache.cached > 0.01 * l.s.cache.prompt), 'Practically no prompt was served from a cache.', 'Repeated prompts: the server looks faster than it would with fresh ones.')]]],
  ['The server’s own figures / ours, mean, ms', [
    [term('TTFT'), (l) => beside(l, 'ttft', 'ttft_ms'), () => 'The difference: HTTP and the API process, before and after the engine.'],
    [term('TPOT'), (l) => beside(l, 'tpot', 'tpot_ms'), () => 'The difference: tokens that the engine has made and the API process has not yet sent.'],
    ['TPOT, ours above the server’s', (l) => (apart(l) == null ? '–' : `${apart(l) > 0.005 ? '+' : '±'}${num(Math.abs(apart(l)) * 100)} %`), either((l) => !(apart(l) >= 0.02), 'They agree.', 'They part: there the front end adds to every token.')],
    [term('E2EL'), (l) => beside(l, 'e2el', 'e2el_ms'), none],
    ['Queue in the server, mean ms', (l) => num(server(l)?.queue_ms), none],
    ['Most running / queued', (l) => (server(l) ? `${count(server(l).running?.max)} / ${count(server(l).queued?.max)}` : '–'), none],
    [term('KV cache') + ', most', (l) => percent(server(l)?.kv_share?.max), either((l) => !(server(l)?.kv_share?.max >= 0.8), 'Far from full: its size is not the limit here.', 'Full or nearly: its size limits what runs at once.')],
    ['Preemptions', (l) => count(server(l)?.preemptions), either((l) => !server(l)?.preemptions, 'None.', 'Requests were thrown out and computed again.')],
    ['GPU busy, mean / power, W', (l) => (server(l)?.gpu_share || server(l)?.power_w ? `${percent(server(l).gpu_share?.mean)} / ${num(server(l).power_w?.mean)}` : '–'), none]]],
  ['More figures', (D.figures || []).map((f) => [`<abbr tabindex="0" data-tip="${esc(esc(f.doc))}">${esc(f.title)}</abbr>, ${esc(f.unit)}`, (l) => num(l.s.figures?.[f.name]), none])]];
function behind() {
  const ls = columns(), on = (l) => (picked(l.run) === l && !several() ? 'on' : ''), blank = ([, get]) => ls.every((l) => /^[–/ ]*$/.test(get(l)));
  const row = ([name, get, say]) => `<tr><td>${name}</td>${each(ls, (l) => `<td class="${on(l)}">${esc(get(l))}</td>`)}<td class="say">${esc(say())}</td></tr>`;
  const group = ([name, rows]) => { const told = rows.filter((r) => !blank(r)); return told.length ? `<tr><th class="group" colspan="${ls.length + 2}" scope="rowgroup">${name}</th></tr>${each(told, row)}` : ''; };
  const heads = each(ls, (l) => `<th scope="col" class="${on(l)}">${several() ? `${esc(l.run.name)}<br>` : ''}${esc(shortName(l))}<br>${esc([...l.coords.keys()].map((o) => UNITS[o] || o).join(' · '))}</th>`);
  $('behind').hidden = !ls.some((l) => l.p); // a report in text does not tell
  put($('behind-table'), `<table><thead><tr><th></th>${heads}<th></th></tr></thead><tbody>${each(BEHIND, group)}</tbody></table>`);
}
