import { InferscopeError } from '../model/errors.js';

/** `a,b`, `a b` or repeated; each once. */
export function wordList(text: string, before: string[] = []): string[] {
  return [...new Set([...before, ...text.split(/\s*,\s*|\s+/).filter((word) => word !== '')])];
}

const units = { '': 1, k: 10, m: 20, g: 30, t: 40 } as const;

/** `16GiB`, `500MiB`, `2G`; a number without unit is bytes. @throws E_USAGE */
export function byteSize(flag: string): (text: string) => number {
  return (text) => {
    const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim());
    const unit = match?.[2]!.toLowerCase() as keyof typeof units | undefined;
    if (match && unit !== undefined) return Number(match[1]) * (unit === '' ? 1 : 2 ** units[unit]);
    throw new InferscopeError('E_USAGE', {
      what: `${flag} ${text} is not a size`,
      why: 'It is a number with a unit: KiB, MiB, GiB or TiB.',
      fix: `Type for example: ${flag} 2GiB`,
    });
  };
}
