import { maxThreads } from '../hardware/threads.js';
import { InferscopeError } from '../model/errors.js';

/**
 * Returns a parser of whole numbers for a flag; it throws E_USAGE.
 * @param min the smallest valid value
 * @param max the largest one
 * @param example a valid value that errors show, which those of commander do not
 */
export function wholeNumberParser(
  flag: string,
  { min, max = Infinity, example }: { min: number; max?: number; example: number },
): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= min && value <= max) return value;
    throw new InferscopeError('E_USAGE', {
      what: `invalid ${flag} ${text}`,
      why: `It must be a whole number${max === Infinity ? `, at least ${min}` : ` from ${min} to ${max}`}.`,
      fix: `Type for example: ${flag} ${example}`,
    });
  };
}

/** Parses --threads for compute threads. */
export function parseThreadCount(text: string): number {
  const threads = wholeNumberParser('--threads', { min: 1, example: 2 })(text);
  const max = maxThreads();
  if (threads <= max) return threads;
  throw new InferscopeError('E_USAGE', {
    what: `--threads ${text} is too high for this machine`,
    why: `It has ${max / 4} logical cores; the limit is four threads per core.`,
    fix: `Type for example: --threads ${Math.max(1, max / 4 - 1)}`,
  });
}

/** Returns a parser of --port; 0 is a free one. @param example a valid value that errors show */
export const portParser = ({ example }: { example: number }): ((text: string) => number) =>
  wholeNumberParser('--port', { min: 0, max: 2 ** 16 - 1, example });

const exponents = { '': 0, k: 10, m: 20, g: 30, t: 40 } as const;

/** Returns a parser of sizes for a flag: `16GiB`, `500MiB`, `2G`; a number without unit is bytes. It throws E_USAGE. */
export function byteSizeParser(flag: string): (text: string) => number {
  return (text) => {
    const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim());
    const unit = match?.[2]!.toLowerCase() as keyof typeof exponents | undefined;
    if (match && unit !== undefined) return Number(match[1]) * 2 ** exponents[unit];
    throw new InferscopeError('E_USAGE', {
      what: `${flag} ${text} is not a size`,
      why: 'It is a number with a unit: KiB, MiB, GiB or TiB.',
      fix: `Type for example: ${flag} 2GiB`,
    });
  };
}
