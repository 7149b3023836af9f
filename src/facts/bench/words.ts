import type { BenchPoint } from '../../model/bench.js';

/** "batch 4, 128 in + 64 out". */
export const pointWords = ({
  batch_size,
  input_len,
  output_len,
}: Omit<BenchPoint, 'point' | 'parts'>): string => `batch ${batch_size}, ${input_len} in + ${output_len} out`;

/** A sentence as part of another: no full stop, and a first word The, A, An, It or There in lower case. */
export const asClause = (text: string): string =>
  text
    .trimEnd()
    .replace(/\.+$/, '')
    .replace(/^(?:The|An?|It|There) /, (word) => word.toLowerCase());
