import { mostThreads } from '../hardware/threads.js';
import { InferscopeError } from '../model/errors.js';

/** Parser of a count option: whole numbers from `least`. Unlike commander's own errors it says what would be right. */
export function wholeNumber(flag: string, least: number, example: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least) return value;
    throw new InferscopeError('E_LENGTHS', {
      what: `${flag} ${text} is impossible`,
      why: `It must be a whole number, at least ${least}.`,
      fix: `Type for example: ${flag} ${example}`,
    });
  };
}

/** Parser of --threads where they compute. */
export function threadCount(text: string): number {
  const threads = wholeNumber('--threads', 1, 2)(text);
  const most = mostThreads();
  if (threads <= most) return threads;
  throw new InferscopeError('E_USAGE', {
    what: `--threads ${text} is more than this machine can use`,
    why: `It has ${most / 4} logical cores; beyond four threads a core they only wait for each other.`,
    fix: `Type for example: --threads ${Math.max(1, most / 4 - 1)}`,
  });
}
