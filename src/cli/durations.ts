import { InferscopeError } from '../model/errors.js';

const unitMs = { us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, m: 6e4, min: 6e4, h: 3.6e6 };

/** `200ms`, `1.5s`, `10m`, `2h`; a number without a unit is in `bare`. Null for other text. */
export function durationMs(text: string, bare: 'ms' | 's' = 's'): number | null {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*(us|µs|ms|s|min|m|h)?$/.exec(text.trim()) ?? [];
  return number === undefined ? null : Number(number) * unitMs[(unit as keyof typeof unitMs) ?? bare];
}

/**
 * Returns a parser of durations for a flag, which returns milliseconds and throws E_USAGE; a number without unit is in seconds.
 * @param example a valid value that errors show
 */
export function durationParser(flag: string, { example }: { example: string }): (text: string) => number {
  return (text) => {
    const ms = durationMs(text);
    // Node's timers hold 2^31 ms, 24 days.
    if (ms !== null && ms > 0 && ms < 2 ** 31) return ms;
    throw new InferscopeError('E_USAGE', {
      what: `${flag} ${text} is not a duration`,
      why: 'It must be above 0 and at most 24 days: a number with unit ms, s, m or h (default: s).',
      fix: `Type for example: ${flag} ${example}`,
    });
  };
}
