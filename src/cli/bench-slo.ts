import type { Slo } from '../model/documents/serving.js';
import { InferscopeError } from '../model/errors.js';
import { durationMs } from './durations.js';

const names = { ttft: 'ttft_ms', tpot: 'tpot_ms', e2e: 'e2e_ms' } as const;

/** `ttft=200ms,tpot=30ms`; a number without unit is milliseconds. @throws E_USAGE */
export function parseSlo(text: string, share: number): Slo {
  const slo: Slo = { ttft_ms: null, tpot_ms: null, e2e_ms: null, share };
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=').map((side) => side.trim());
    const ms = durationMs(value, 'ms');
    if (!Object.hasOwn(names, name) || ms === null) {
      throw new InferscopeError('E_USAGE', {
        what: `--slo ${text} cannot be read at "${part.trim()}"`,
        why: 'It is a list of ttft, tpot or e2e with a duration each.',
        fix: 'Type for example: --slo ttft=200ms,tpot=30ms',
      });
    }
    slo[names[name as keyof typeof names]] = ms;
  }
  return slo;
}
