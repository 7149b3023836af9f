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
