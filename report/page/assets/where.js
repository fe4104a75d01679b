/* ---------- 3f. where the time goes ---------- */
const STAGES = { // colour and name of each stage
  client_queue: ['waiting', 'client queue'], client: ['client', 'client'], connect: ['connect', 'connect'], server_queue: ['queue', 'server queue'], prefill: ['prefill', 'prefill'],
  decode: ['decode', 'decode'], front_end: ['front', 'server’s front end'], network: ['network', 'network'],
};
const partName = (part) => part.of.map((p) => STAGES[p]?.[1] || p).join(' + ');
const stageInk = (name) => ink(`k-${STAGES[name]?.[0] || 'client'}`);
const partInk = (part) => part.of.slice(1).reduce((colour, name) => mix(colour, stageInk(name), 0.5), stageInk(part.of[0])); // stages that cannot be separated share a mixed colour
const orderOf = (part) => Object.keys(STAGES).indexOf(part.of[0]) + 0.01 * part.of.length;
const splitOf = (l) => (state.slowest ? l.s.where?.slowest : l.s.where?.all);
/* The note on the stages, of all levels shown or of the chosen one, which it then names. */
function splitNote() {
  const notes = new Set(levelsShown().filter(splitOf).map((l) => l.s.where.note)), { note } = picked(first()).s.where || {};
  return note ? `${notes.size > 1 ? `At ${fullName(picked(first()))}: ` : ''}${note}` : 'Stages that cannot be separated are shown together.';
}
const BAR = { row: 26, top: 20, left: 150 };
function barOf(l, i, x) {
  const split = splitOf(l), y = BAR.top + i * BAR.row;
  let at = 0;
  const piece = (part) => {
    const from = x(state.share ? at / split.ms * 100 : at), to = x(state.share ? (at + part.ms) / split.ms * 100 : at + part.ms);
    const more = part.more_ms == null ? [] : [['vs mean of all requests', time(part.more_ms)]], tip = keyed([[fullName(l), ''], [partName(part), time(part.ms)], ['share', percent(part.share)], ['source', part.source], ...more]);
    at += part.ms;
    return part.ms > 0 ? `<rect class="part" x="${r1(from)}" y="${y}" width="${Math.max(0.5, r1(to - from))}" height="${BAR.row - 8}" data-value="${part.ms}" data-tip="${esc(tip)}" data-css="${l.invalid ? `fill:none;stroke:${partInk(part)};stroke-dasharray:2 2` : `fill:${partInk(part)}`}"/>` : '';
  };
  return each([...split.parts].sort((p, q) => orderOf(p) - orderOf(q)), piece) + text(x(state.share ? 100 : split.ms) + 6, y + 13, time(split.ms), 'strong halo');
}
function whereTimeGoes() {
  const list = () => levelsShown().filter(splitOf), anySlowest = () => levelsShown().some((l) => l.s.where?.slowest);
  const parts = () => list().flatMap((l) => splitOf(l).parts.filter((p) => p.ms > 0));
  const kinds = () => [...new Map([...parts()].sort((p, q) => orderOf(p) - orderOf(q)).map((p) => [partName(p), partInk(p)]))]; // in the order of the bars
  figure('part-charts', {
    name: 'Where the time goes', title: 'Where the time goes', has: () => levelsShown().some((l) => l.s.where?.all.parts?.length),
    note: () => `Mean time of a request from its due time to its last token${state.slowest ? ', of the slowest 1 %' : ''}. ${esc(splitNote())}`,
    keys: () => each(kinds(), ([name, colour]) => swatch(colour, esc(name))) + seg('', [[false, 'ms'], [true, 'share']], 'share') + (anySlowest() ? seg('', [[false, 'all'], [true, 'slowest 1 %']], 'slowest') : ''),
    say: () => list().map((l) => `${fullName(l)}: ${splitOf(l).parts.map((p) => `${partName(p)} ${time(p.ms)}`).join(', ')}`).join('; '),
    draw(w) {
      const ls = list(), left = Math.min(BAR.left + (several() ? 60 : 0), w * 0.4), lower = BAR.top - 4 + ls.length * BAR.row;
      const x = linear(0, state.share ? 100 : above(most(ls.map((l) => splitOf(l).ms), 1e-3)), left, w - 60), room = Math.floor(left / 6.2);
      const name = (l, i) => { const s = `${l.invalid ? '✕ ' : ''}${fullName(l)}`; return text(0, BAR.top + i * BAR.row + 13, s.length > room ? `${s.slice(0, room - 1)}…` : s, picked(l.run) === l ? 'strong' : ''); };
      return svg(w, lower + 40, each(x.ticks(w / 110), (t) => line(x(t), BAR.top - 8, x(t), lower, 'grid-line') + text(x(t), lower + 15, short(t), '', 'middle'))
        + text(w - 60, lower + 30, state.share ? '% of the mean' : 'ms', 'unit', 'end') + each(ls, (l, i) => name(l, i) + barOf(l, i, x)));
    },
    table: () => ({ head: ['run', 'level', 'stage', 'ms', 'share', 'source'], rows: list().flatMap((l) => splitOf(l).parts.map((p) => [l.run.name, shortName(l), partName(p), p.ms, percent(p.share), p.source])) }),
  });
}
