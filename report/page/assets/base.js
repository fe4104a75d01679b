/* ---------- helpers for the scripts of the report and of tacho ui ---------- */
const $ = (id) => document.getElementById(id);
const esc = (s) => String(s).replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }[c]));
const each = (list, f) => list.map(f).join('');
const sumOf = (list, f) => list.reduce((sum, one) => sum + f(one), 0);
const meanOf = (values) => (values.length ? sumOf(values, (v) => v) / values.length : null);
/* The title of a run: model, load and engine. */
const titleOf = ({ about, load }) => [about.model, load, about.engine || about.backend].filter(Boolean).join(' · ');
/* The chips of a run: its verdict, how many of its levels are INVALID, and whether a simulated engine served it. */
const SIGNS = { VALID: '✓', PREDICTED: '≈', SIMULATED: '≈', 'NOT JUDGED': '?' };
const badge = (v, text = v) => (v ? `<span class="badge ${esc(v.replace(' ', '-'))}">${SIGNS[v] || '!'} ${esc(text)}</span>` : '');
function chips({ verdict, invalid, levels, simulated }) {
  return [badge(verdict), invalid && verdict !== 'INVALID' ? badge('INVALID', `${invalid} of ${levels} levels INVALID`) : '', simulated ? badge('SIMULATED') : ''].filter(Boolean).join(' ');
}
/* Sets the contents of an element. The page's policy forbids style attributes, so colours and widths are in data-css. */
function put(el, html) {
  el.innerHTML = html;
  for (const one of el.querySelectorAll('[data-css]')) { one.style.cssText = one.dataset.css; delete one.dataset.css; }
}
