import type { BenchFlag, BenchResult } from '../../../model/documents/bench.js';
import { collapsed } from '../../notices.js';

export interface ShownFlag {
  severity: BenchFlag['severity'];
  code: string;
  text: string;
  /** How many points say so. */
  count: number;
  /** Whose it is; null with one variant. */
  variant: string | null;
}

const order: BenchFlag['severity'][] = ['warning', 'info', 'good'];

/** The flags of a benchmark, those of several points that differ in numbers only as one, what warns first. */
export function shownFlags({ variants }: BenchResult): ShownFlag[] {
  const all = variants.flatMap((variant) => {
    const flags = [...variant.flags, ...variant.points.flatMap((point) => point.flags)];
    return order.flatMap((severity) => {
      const own = flags.filter((flag) => flag.severity === severity);
      return collapsed(own.map(({ code, text }) => ({ code, text, severity: 'info' as const }))).map(
        ({ code, text, count }): ShownFlag => ({
          severity,
          code,
          text,
          count: count ?? 1,
          variant: variants.length > 1 ? variant.label : null,
        }),
      );
    });
  });
  return all.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}
