import type { BenchFlag, BenchResult } from '../../../model/documents/bench.js';
import { collapsed } from '../../notices.js';
import { pointWords } from './bench-parts.js';

export interface ShownFlag {
  severity: BenchFlag['severity'];
  code: string;
  /** Whose it is: a variant, a point, several points; empty where it is all there is. */
  whose: string;
  text: string;
}

const order: BenchFlag['severity'][] = ['warning', 'info', 'good'];

/** The flags of a benchmark, those of several points that differ in numbers only as one, what warns first. */
export function shownFlags({ variants }: BenchResult): ShownFlag[] {
  const all = variants.flatMap(({ label, flags, points }) => {
    const prefix = variants.length > 1 ? label : '';
    const own = flags.map(({ severity, code, text }): ShownFlag => ({ severity, code, whose: prefix, text }));
    const ofPoints = order.flatMap((severity) => {
      const said = points.flatMap((point) =>
        point.flags.filter((flag) => flag.severity === severity).map((flag) => ({ point, ...flag })),
      );
      const issues = said.map(({ code, text }) => ({ code, text, severity: 'info' as const }));
      return collapsed(issues).map(({ code, text, count = 1 }): ShownFlag => {
        const one = said.find((flag) => flag.code === code && (count > 1 || flag.text === text));
        const where = count > 1 ? `${count} of ${points.length} points` : one ? pointWords(one.point) : '';
        return { severity, code, text, whose: [prefix, where].filter(Boolean).join(', ') };
      });
    });
    return [...own, ...ofPoints];
  });
  return all.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}
