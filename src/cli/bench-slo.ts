import type { Slo } from '../model/documents/serving.js';
import { InferscopeError } from '../model/errors.js';

const names = { ttft: 'ttft_ms', tpot: 'tpot_ms', e2e: 'e2e_ms' } as const;

/** `200ms`, `1.5s`, `800us`; a bare number is milliseconds. Null when it is none of them. */
export function durationMs(text: string): number | null {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(us|µs|ms|s|m)?$/.exec(text.trim()) ?? [];
  if (number === undefined) return null;
  return Number(number) * { us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000 }[unit ?? 'ms']!;
}

/** Parser of a duration flag. @returns milliseconds. @throws E_USAGE */
export function duration(flag: string, example: string): (text: string) => number {
  return (text) => {
    const ms = durationMs(text);
    if (ms !== null && ms > 0) return ms;
    throw new InferscopeError('E_USAGE', {
      what: `${flag} ${text} is no duration`,
      why: 'A duration is a number with us, ms, s or m, above 0.',
      fix: `Type for example: ${flag} ${example}`,
    });
  };
}

/** `ttft=200ms,tpot=30ms`. @throws E_USAGE */
export function parseSlo(text: string, share: number): Slo {
  const slo: Slo = { ttft_ms: null, tpot_ms: null, e2e_ms: null, share };
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=').map((side) => side.trim());
    const ms = durationMs(value);
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
