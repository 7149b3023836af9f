import type { SequenceKernel } from './step-sequence.js';

const isTrigonometric = ({ name }: SequenceKernel): boolean => /(?:^|[^a-z])(?:sin|cos)_kernel/i.test(name);
const touchesEachElement = ({ class: opClass }: SequenceKernel): boolean =>
  opClass === 'elementwise' || opClass === 'copy';

/**
 * Kernels that compute sines and cosines of positions (a rotary or sinusoidal embedding) from constants only, one list
 * per table: from the numbered tensor (arange) to the last sine or cosine, with nothing between them that could use a
 * value of the step, such as a product with the batch's positions.
 */
export function tablesOfPositions(sequence: readonly SequenceKernel[]): SequenceKernel[][] {
  const tables: SequenceKernel[][] = [];
  for (const stream of new Set(sequence.map((kernel) => kernel.stream))) {
    let run: SequenceKernel[] = [];
    const close = () => {
      const first = run.findIndex(({ role, name }) => role === 'constant' && /arange/i.test(name));
      const last = run.findLastIndex(isTrigonometric);
      if (first >= 0 && last > first) tables.push(run.slice(first, last + 1));
      run = [];
    };
    for (const kernel of sequence.filter((sequenceKernel) => sequenceKernel.stream === stream)) {
      if (touchesEachElement(kernel)) run.push(kernel);
      else close();
    }
    close();
  }
  return tables;
}
