/* ---------- numbers: the rules of metric/words.go ---------- */
function rounded(x, digits) { // halves are rounded away from zero; no zeros at the end
  if (x == null) return '–';
  if (Number.isNaN(x)) return 'n/a';
  const a = Math.abs(x), sign = x < 0 ? '-' : '';
  if (a === Infinity) return `${sign}inf`;
  const [mantissa, power] = a.toExponential(digits - 1).split('e');
  if (a && (power < -4 || a >= 1e9)) return `${sign}${+mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  return sign + (power < digits ? +a.toPrecision(digits) : Math.round(a)).toLocaleString('en', { maximumFractionDigits: digits + 4 });
}
const num = (x) => rounded(x, 3); // measured: three significant digits, and all digits before the point
const tick = (x) => rounded(x, 6); // chosen: a load, a limit, a mark on an axis
const signed = (x) => (x == null ? '–' : Math.abs(x) < 1e-9 ? '0' : (x > 0 ? '+' : '') + num(x)); // a difference
const count = (x) => (x == null ? '–' : x.toLocaleString('en'));
const time = (ms) => (ms == null ? '–' : Math.abs(ms) >= 999.5 && Number.isFinite(ms) ? `${num(ms / 1000)} s` : `${num(ms)} ms`);
const percent = (share) => (share == null ? '–' : share > 0 && share < 0.0001 ? 'less than 0.01 %' : `${num(share * 100)} %`);
