import { opClasses } from '../../model/classes.js';
import { kernelLabel } from '../kernel-classes/classify.js';

/** Labels from kernel names: class as an index in opClasses, tile and dtype in `texts`; NaN: unknown. */
interface NameLabels {
  class: number[];
  tile: number[];
  dtype: number[];
  texts: string[];
}

/** @param names distinct ones: each is classified once */
export function labelNames(names: readonly string[]): NameLabels {
  const codes = new Map<string, number>();
  const code = (text: string | null): number => {
    if (text === null) return Number.NaN;
    if (!codes.has(text)) codes.set(text, codes.size);
    return codes.get(text)!;
  };
  const labels = names.map(kernelLabel);
  return {
    class: labels.map((label) => opClasses.indexOf(label.class)),
    tile: labels.map(({ tile }) => code(tile)),
    dtype: labels.map(({ dtype }) => code(dtype)),
    texts: [...codes.keys()],
  };
}
