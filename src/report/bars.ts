import type { StageResult } from '../model/documents/profile.js';
import { barShare } from '../model/figure.js';
import { formatPercent, noValue } from './format.js';
import { barLabel, barMeaning } from './names.js';

export interface ShownBar {
  /** Bar id, or "smaller" for several that were put together. */
  id: string;
  label: string;
  meaning: string;
  ms: number;
  confidence: string | null;
}

/** Share of the measured time below which a bar is put together with others of its size. */
const smallShare = 0.01;

/** These two are always shown: what the hardware allows, and that nothing (or something) is left unexplained. */
const kept = (id: string): boolean => id === 'roofline' || id === 'unattributed';

/**
 * A stage's bars as a reader wants them: in order, those under 1 % of the measured time as one, before `unattributed`. They sum
 * to what the stage's own bars sum to; the table in the report and the JSON document have every one.
 */
export function shownBars({ bars, duration_ms }: StageResult): ShownBar[] {
  const least = smallShare * (duration_ms.value ?? 0);
  const small = bars.filter(({ id, ms }) => !kept(id) && Math.abs(ms) < least);
  const together = small.length > 1 ? new Set(small.map(({ id }) => id)) : new Set<string>();
  const shown = bars
    .filter(({ id }) => !together.has(id))
    .map((bar): ShownBar => ({ ...bar, label: barLabel(bar.id), meaning: barMeaning(bar.id) }));
  if (together.size === 0) return shown;
  const last = shown.findIndex(({ id }) => id === 'unattributed');
  shown.splice(last === -1 ? shown.length : last, 0, {
    id: 'smaller',
    label: `${together.size} smaller parts`,
    meaning: small.map(({ id }) => barLabel(id)).join(', '),
    ms: small.reduce((sum, { ms }) => sum + ms, 0),
    confidence: null,
  });
  return shown;
}

export function barShareText(ms: number, measuredMs: number): string {
  const share = barShare(ms, measuredMs);
  return share === null ? noValue : formatPercent(share);
}
