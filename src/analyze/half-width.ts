import type { Figure } from '../model/figure.js';

/** Half of the 95 % interval over the value; from sd and n where the figure has no interval; null without either. */
export function halfWidth(figure: Figure): number | null {
  if (figure.value === null || figure.value <= 0) return null;
  if (figure.ci95) return (figure.ci95[1] - figure.ci95[0]) / 2 / figure.value;
  const { sd, n } = figure;
  return sd === undefined || !n || n < 2 ? null : (1.96 * sd) / Math.sqrt(n) / figure.value;
}
