import type { FC } from 'hono/jsx';
import { answerable } from '../advice/what-if/answerable.js';
import type { Change } from '../advice/what-if/words.js';
import { deviceOf } from '../facts/device.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { safeText } from '../render/safe-text.js';
import type { Session } from '../session/open.js';

/** Changes that the overview offers, those of one word exclude each other; `explain --what-if` takes more. */
const known = [
  'cudagraph',
  'no-sync',
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
  /** Changes that are on, in their order. */
  chosen: readonly string[];
  offered: readonly string[];
  /** Where the waterfalls are under some changes; under none as measured. */
  linkTo: (changes: readonly string[]) => string;
  /** A change switches the one before it off. */
  alone?: boolean;
}

/** The changes that a session has an answer to; none without stages. */
export function offeredFor({ manifest }: Session, explain: ExplainResult | undefined): string[] {
  if (!explain) return [];
  const isAnswered = answerable(manifest, explain);
  const gpu = deviceOf(manifest, null).name;
  return known.filter((change) => isAnswered(wordOf(change)) && !isOf(gpu, change));
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

/** A change to the GPU that the session ran on changes nothing. */
const isOf = (gpu: string | null, change: string): boolean =>
  change.startsWith('gpu=') && (gpu ?? '').split(/[\s-]/).includes(change.slice('gpu='.length));
