/** Numbers inside sentences that analyses write; presenters format figures themselves. */

/** "12 %", "0.4 %" of a share of 1. */
export function formatShare(share: number): string {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.095) return `${Number(percent.toPrecision(2))} %`;
  return `${percent >= 9.95 || percent === 0 ? Math.round(percent) : percent.toFixed(1)} %`;
}

/** Thousands apart, as tables have them: "22 593". */
const grouped = (text: string): string => text.replaceAll(/\B(?<!\.\d*)(?=(?:\d{3})+(?!\d))/g, '\u00a0');

/** "1.52 ms", "84.1 µs", "91 ns" of nanoseconds. */
export function formatNs(ns: number): string {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e5) return `${(ns / 1e3).toPrecision(3)} µs`;
  return ns < 1e10
    ? `${grouped((ns / 1e6).toPrecision(Math.max(3, Math.ceil(Math.log10(ns / 1e6)))))} ms`
    : `${(ns / 1e9).toFixed(1)} s`;
}

/** "183", "8.3". */
export function formatRate(value: number): string {
  return value >= 100 || Number.isInteger(value) ? grouped(String(Math.round(value))) : value.toFixed(1);
}
