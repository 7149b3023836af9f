import { chosenGpuWords, findGpuSheet } from '../../hardware/find-gpu.js';
import { gpuSheets } from '../../hardware/gpu-sheets.js';
import { type DType, dtypes, parseDType } from '../../model/dtype.js';
import { InferscopeError } from '../../model/errors.js';

/** One change of `explain --what-if`, as it was typed and as it is meant. */
export type Change = { text: string } & (
  | { word: 'cudagraph' | 'fused-attention' | 'fused-elementwise' | 'no-sync' | 'pinned-copies' }
  | { word: 'batch-size'; batchSize: number }
  | { word: 'context-len'; contextLen: number }
  | { word: 'dtype'; dtype: DType }
  // `chosen`: which product a short name was taken for, and which others it could be; null for the name of one.
  | { word: 'gpu'; name: string; chosen: string | null }
);

/** What may be asked, with what it means; in the order of `--help`. */
export const changeWords: readonly { word: string; means: string }[] = [
  { word: 'cudagraph', means: 'the stage is launched as one CUDA graph' },
  { word: 'batch-size=N', means: 'N sequences share a step' },
  { word: 'dtype=NAME', means: `weights and products in ${dtypes.join(', ')}` },
  { word: 'int4', means: 'dtype=int4: 4-bit weights, multiplied in the dtype of the activations' },
  { word: 'fused-attention', means: 'attention in one kernel, without its score matrix' },
  { word: 'fused-elementwise', means: 'norms, rotations, activations and casts in one kernel each' },
  { word: 'no-sync', means: 'the host waits for the device once a step at most' },
  { word: 'pinned-copies', means: 'copies from pinned memory, behind kernels' },
  { word: 'context-len=N', means: 'N tokens of each sequence are attended to' },
  { word: 'gpu=NAME', means: 'another GPU, by its data sheet; the host stays' },
];

/**
 * Changes of one or more `--what-if`, several in one by commas; they are made one after another.
 * @throws E_USAGE for an unknown word or an impossible value, E_DTYPE for an unknown dtype
 */
export function parseChanges(texts: readonly string[]): Change[] {
  const changes = texts
    .flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map(parseChange);
  if (changes.length === 0) throw unknown('(nothing)');
  const twice = changes.find((one, at) => changes.findIndex(({ word }) => word === one.word) !== at);
  if (twice) {
    throw new InferscopeError('E_USAGE', {
      what: `${twice.word} is asked twice`,
      why: 'Changes are made one after another, each once.',
      fix: 'Ask for one at a time: explain --what-if for each.',
    });
  }
  return changes;
}

function parseChange(text: string): Change {
  const [word = '', value = null] = text.split(/=(.*)/s);
  switch (word) {
    case 'cudagraph':
    case 'fused-attention':
    case 'fused-elementwise':
    case 'no-sync':
    case 'pinned-copies':
      if (value !== null) throw unknown(text);
      return { text, word };
    case 'int4':
    case 'int8':
    case 'float8':
    case 'fp8':
      if (value !== null) throw unknown(text);
      return { text, word: 'dtype', dtype: parseDType(word) };
    case 'dtype':
      return { text, word, dtype: parseDType(value ?? '') };
    case 'batch-size':
      return { text, word, batchSize: wholeNumber(text, value) };
    case 'context-len':
      return { text, word, contextLen: wholeNumber(text, value) };
    case 'gpu':
      return { text, word, ...gpuNamed(value ?? '') };
    default:
      throw unknown(text);
  }
}

function wholeNumber(text: string, value: string | null): number {
  const number = Number(value);
  if (value !== null && /^\d+$/.test(value) && number >= 1) return number;
  throw new InferscopeError('E_USAGE', {
    what: `"${text}" is no change`,
    why: 'It takes a whole number from 1.',
    fix: `For example: --what-if ${text.split('=')[0]}=32`,
  });
}

/** The reported name of a GPU whose data sheet is known; of several that are called so, the common form. */
function gpuNamed(text: string): { name: string; chosen: string | null } {
  const found = findGpuSheet(text);
  if (!Array.isArray(found)) return { name: found.name, chosen: chosenGpuWords(text, found) };
  const names = (found.length > 0 ? found : gpuSheets).flatMap((sheet) => sheet.names);
  throw new InferscopeError('E_USAGE', {
    what: found.length > 0 ? `"${text}" is several GPUs` : `no data sheet is known of a GPU "${text}"`,
    why: `Known: ${names.join(', ')}.`,
    fix: 'Take one of these, for example --what-if gpu=H100.',
  });
}

function unknown(text: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `unknown change "${text}"`,
    why: `Known: ${changeWords.map(({ word }) => word).join(', ')}.`,
    fix: 'For example: inferscope explain --what-if cudagraph,batch-size=32',
  });
}
