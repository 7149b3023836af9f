import type { FC } from 'hono/jsx';
import { answerableChanges } from '../advice/what-if/answerable.js';
import type { Change } from '../advice/what-if/words.js';
import { deviceOf } from '../facts/device.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { safeText } from '../render/safe-text.js';
import type { Session } from '../session/open.js';

/** Changes offered on the overview; those with the same key exclude each other. `explain --what-if` accepts more. */
const allChanges = [
  'cudagraph',
  'no-sync',
  'no-slow-rank',
  'equal-links',
  'fused-attention',
  'fused-elementwise',
  'batch-size=8',
  'batch-size=32',
  'dtype=float8',
  'dtype=int4',
  'gpu=H100',
  'gpu=H200',
  'gpu=B200',
] as const;

const wordOf = (change: string) => change.replace(/=.*/s, '') as Change['word'];

interface SwitchesProps {
  /** Changes that are switched on, in their order. */
  chosen: readonly string[];
  offered: readonly string[];
  /** Link to the waterfalls under the given changes; an empty list shows them as measured. */
  linkTo: (changes: readonly string[]) => string;
  /** Whether a change switches off the one before it. */
  alone?: boolean;
}

/** The changes that the session can predict; empty without stages. */
export function offeredFor(
  { manifest }: Pick<Session, 'manifest'>,
  explain: ExplainResult | undefined,
): string[] {
  if (!explain) return [];
  const isAnswered = answerableChanges(manifest, explain);
  const { name, peak } = deviceOf(manifest, null);
  // CPUs and older GPUs have no peak in float8, so that its prediction fails.
  const withoutPeak = peak('float8').value === null ? ['dtype=float8'] : [];
  return allChanges.filter(
    (change) => isAnswered(wordOf(change)) && !namesOwnGpu(name, change) && !withoutPeak.includes(change),
  );
}

/** Links that switch a change on or off; a script redraws the waterfalls in place. */
export const WhatIfSwitches: FC<SwitchesProps> = ({ chosen, offered, linkTo, alone = false }) => {
  const notOffered = chosen.filter((change) => !offered.includes(change));
  return (
    <nav class="pages switches" id="switches" aria-label="What if">
      <span class="spread">What if{alone && ' (one at a time)'}</span>
      {[...offered, ...notOffered].map((change) => {
        const isOn = chosen.includes(change);
        const otherChanges = chosen.filter(
          (otherChange) => !alone && otherChange !== change && wordOf(otherChange) !== wordOf(change),
        );
        return (
          <a
            href={linkTo(isOn ? otherChanges : [...otherChanges, change])}
            {...(isOn ? { 'aria-current': 'true' } : {})}
          >
            {safeText(change)}
          </a>
        );
      })}
      {chosen.length > 0 && <a href={linkTo([])}>as measured</a>}
    </nav>
  );
};

/** Whether a change names the GPU that the session ran on. */
const namesOwnGpu = (gpu: string | null, change: string): boolean =>
  change.startsWith('gpu=') && (gpu ?? '').split(/[\s-]/).includes(change.slice('gpu='.length));
