/* ---------- 1c. goals: the grammar of --slo ---------- */
/* The same grammar as ParseSLO in the package metric: the same text gives the same goals or the same error. */
const float = (text) => (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN);
const quote = JSON.stringify;
const cut = (text, at) => { const i = text.indexOf(at); return i < 0 ? [text, '', false] : [text.slice(0, i), text.slice(i + at.length), true]; };
const fail = (words) => { throw new Error(words); };

/* The number of letters to insert, delete, replace or swap with a neighbour. */
function distance(a, b) {
  const rows = [[...Array(b.length + 1).keys()]];
  for (let i = 1; i <= a.length; i++) {
    rows[i] = [i];
    for (let j = 1; j <= b.length; j++) {
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.length][b.length];
}
function didYouMean(written, names) {
  let nearest = '', least = Math.max(1, Math.floor(written.length / 4)) + 1;
  for (const name of names) {
    const words = written.includes('-') && written.split('-').every((w) => name.split('-').includes(w)), d = words ? 1 : distance(written, name);
    if (d < least) [nearest, least] = [name, d];
  }
  return nearest ? `, did you mean ${quote(nearest)}?` : '';
}

/* A duration of Go in ms: "1m30s", "250us". */
function duration(text) {
  const [, sign, rest] = /^([+-]?)(.*)$/s.exec(text.replaceAll(' ', '')), NS = { ns: 1, us: 1e3, 'µs': 1e3, 'μs': 1e3, ms: 1e6, s: 1e9, m: 6e10, h: 3.6e12 };
  if (rest === '0') return 0;
  if (!/^((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return NaN;
  const ns = [...rest.matchAll(/([\d.]+)(ns|us|µs|μs|ms|s|m|h)/g)].reduce((sum, [, v, unit]) => sum + Math.trunc(v * NS[unit] + 1e-6), 0);
  return ns < 2 ** 63 ? ((sign === '-' ? -1 : 1) * ns) / 1e6 : NaN;
}
function amount(unit, text) {
  if (unit === 'verdict') { const i = ['VALID', 'DEGRADED', 'INVALID'].indexOf(text.toUpperCase()); return i < 0 ? NaN : i; }
  const with_ = text.endsWith(unit), v = float((with_ ? text.slice(0, text.length - unit.length) : text).trim());
  if (!Number.isNaN(v) && unit === '%' && !with_) return v < 0 || v >= 1 ? NaN : 100 * v;
  return Number.isNaN(v) && unit === 'ms' ? duration(text) : v;
}

function quantity(text) {
  const { metrics, level, level_names: names, other_metrics: others, other_level: otherLevel } = D.vocabulary;
  let [name, which, statistic] = cut(text.trim().toLowerCase(), '.');
  const [before, after, colon] = cut(name, ':');
  if (colon) [name, which, statistic] = [before, `${after}.${which}`.replace(/\.$/, ''), true];
  const find = (list, n) => list.find((q) => q.name === n);
  if (!find(metrics, name)) name = others[name] || name;
  const m = find(metrics, name);
  if (!m) {
    const q = find(level, otherLevel[name] || name);
    if (!q) fail(`${quote(text)} is not a known metric${didYouMean(name, [...metrics.map((o) => o.name), ...names]) || ':'} use a metric and a statistic, such as ttft.p99 or tpot.mean, or one of ${names.join(', ')} (tacho metrics lists all)`);
    if (statistic) fail(`${name} is a single number per level: remove .${which}`);
    return { ...q, metric: null, p: 0 };
  }
  if (which === 'median') which = 'p50';
  if (which === 'avg') which = 'mean';
  const p = float(which.replace(/^p/, ''));
  if (which !== 'mean' && !(which.startsWith('p') && p > 0 && p < 100)) fail(statistic ? `${quote(which)} is not a known statistic: use mean, p50, p99 or p99.9` : `${name} needs a statistic: use ${name}.mean or ${name}.p99`);
  return { ...m, metric: name, p: which === 'mean' ? 0 : p, name: `${name}.${which}`, title: `${name.toUpperCase()} ${which}` };
}
function goal(part) {
  if (part === 'slo') fail('its limit must be above 0'); // a condition of --fail-if
  const at = part.search(/[<>]/);
  if (at < 0) fail('< or > is missing: use a comparison such as ttft.p99<200ms');
  const q = quantity(part.slice(0, at)), above = part[at] === '>', text = part.slice(at + 1).replace(/^=/, '').trim(), relative = /^[+-].*%$/s.test(text);
  const limit = relative ? float(text.slice(0, -1)) / 100 : amount(q.unit, text);
  if (Number.isNaN(limit) && q.unit === 'verdict' && !relative) fail(`${quote(text)} is not a verdict: use verdict>valid or verdict>degraded`);
  if (!Number.isFinite(limit)) fail(`${quote(text)} is not a limit of ${q.name}: use a number in ${q.unit}, such as 5${q.unit}, or a difference such as +10%`);
  const failures = q.name === 'failures';
  if (relative) fail('a goal cannot be relative to another run: write ttft:p99<500ms');
  if (!(limit > 0)) fail('its limit must be above 0');
  if (failures && (above || limit >= 100)) fail('write it as error<0.1%');
  if (!failures && !q.metric) fail(`${q.name} is one number for a level, and no request keeps or misses it: write limits on metrics, as ttft:p99<500ms, and error<0.1%`);
  if (above && q.better < 0) fail('less is better there: write < in place of >');
  if (!above && q.better > 0) fail('more is better there: write > in place of <');
  return { name: q.name, metric: q.metric, p: q.p, above, limit, unit: q.unit, title: failures ? 'failed requests' : q.p ? q.title : `mean ${q.metric.toUpperCase()}` };
}
/* The goals of a text. It throws an error with the words of tacho. */
function parseSLO(text) {
  const parts = text.split(',').map((part) => part.trim().replace(/^slo$/i, 'slo')).filter(Boolean);
  if (!parts.length) fail('no limits given: use a list such as ttft:p99<500ms,error<1%');
  const syntax = [], wrong = []; // ParseSLO reads all parts before it judges the first
  const goals = parts.map((part) => { try { return goal(part); } catch (e) { (JUDGED.test(e.message) ? wrong : syntax).push(`${quote(part)}: ${e.message}`); return null; } });
  if (syntax.length || wrong.length) fail(syntax[0] ?? wrong[0]);
  return goals;
}
const JUDGED = /^(a goal cannot|its limit|write it as|less is|more is)|is one number for a level, and/;
/* The goals of a text, or none. */
const goalsOf = (text) => { try { return parseSLO(text || ''); } catch { return []; } };
