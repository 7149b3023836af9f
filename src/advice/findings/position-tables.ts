import type { SequenceKernel } from './step-sequence.js';

const isTrigonometric = ({ name }: SequenceKernel): boolean => /(?:^|[^a-z])(?:sin|cos)_kernel/i.test(name);
const touchesEachElement = ({ class: opClass }: SequenceKernel): boolean =>
  opClass === 'elementwise' || opClass === 'copy';

/**
 * Sines and cosines of positions (a rotary or sinusoidal embedding) computed from nothing but constants: their kernels, a list per
 * table. From the tensor that is numbered (arange) to the last sine or cosine, with nothing between them that could bring in a
 * value of the step, such as a product with the positions of the batch.
 */
export function tablesOfPositions(sequence: readonly SequenceKernel[]): SequenceKernel[][] {
  const found: SequenceKernel[][] = [];
  for (const stream of new Set(sequence.map((kernel) => kernel.stream))) {
    let run: SequenceKernel[] = [];
    const close = () => {
      const first = run.findIndex(({ role, name }) => role === 'constant' && /arange/i.test(name));
      const last = run.findLastIndex(isTrigonometric);
      if (first >= 0 && last > first) found.push(run.slice(first, last + 1));
      run = [];
    };
    for (const kernel of sequence.filter((sequenceKernel) => sequenceKernel.stream === stream)) {
      if (touchesEachElement(kernel)) run.push(kernel);
      else close();
    }
    close();
  }
  return found;
}
