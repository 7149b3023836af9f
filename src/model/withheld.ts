import { z } from 'zod';

/** Why a computed result is not claimed. */
export const withheldReasonSchema = z.object({
  code: z.enum(['machine_busy', 'not_a_share', 'passes_differ']),
  text: z.string(),
});

type Reason = z.infer<typeof withheldReasonSchema>;

export const withheldReasons = {
  machine_busy: {
    code: 'machine_busy',
    text: 'other processes or an unsteady machine alone can be the cause',
  },
  not_a_share: {
    code: 'not_a_share',
    text: 'it is below 0 or above 100 % of the measured time, so it cannot be a share of it',
  },
  passes_differ: {
    code: 'passes_differ',
    text: 'the times of the profiled and the clean pass differ too much: parts of one are not shares of the other',
  },
} as const satisfies Record<string, Reason>;

/** "Withheld: runtime call (decode): …": each reason once; null if nothing is withheld. */
export function withheldWords(
  withheld: readonly { title: string; stage: string | null; reason: Reason }[],
): string | null {
  const reasons = [...new Set(withheld.map(({ reason }) => reason.text))];
  const parts = reasons.map((why) => {
    const names = withheld
      .filter(({ reason }) => reason.text === why)
      .map(({ title, stage }) => `${title.replaceAll('_', ' ')}${stage === null ? '' : ` (${stage})`}`);
    return `${[...new Set(names)].join(', ')}: ${why}`;
  });
  return parts.length === 0 ? null : `Withheld: ${parts.join('. ')}.`;
}
