import { maxThreads } from '../hardware/threads.js';
import { InferscopeError } from '../model/errors.js';

/** Parses a count: whole numbers from `least`. Unlike commander's errors it states a valid value. */
export function wholeNumber(flag: string, least: number, example: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least) return value;
    throw new InferscopeError('E_LENGTHS', {
      what: `invalid ${flag} ${text}`,
      why: `It must be a whole number, at least ${least}.`,
      fix: `Type for example: ${flag} ${example}`,
    });
  };
}

/** Parses --threads for compute threads. */
export function threadCount(text: string): number {
  const threads = wholeNumber('--threads', 1, 2)(text);
  const most = maxThreads();
  if (threads <= most) return threads;
  throw new InferscopeError('E_USAGE', {
    what: `--threads ${text} is too high for this machine`,
    why: `It has ${most / 4} logical cores; the limit is four threads per core.`,
    fix: `Type for example: --threads ${Math.max(1, most / 4 - 1)}`,
  });
}

/** Reads --port. @param example shown where it is not one */
export const listeningPort =
  (example: number) =>
  (text: string): number => {
    const value = wholeNumber('--port', 0, example)(text);
    if (value < 2 ** 16) return value;
    throw new InferscopeError('E_USAGE', {
      what: `invalid --port ${text}`,
      why: 'Ports are 0 to 65535.',
      fix: 'Type for example: --port 8000, or --port 0 for a free port.',
    });
  };
