import { chosenGpuWords, findGpuSheet } from '../../hardware/find-gpu.js';
import { gpuSheets } from '../../hardware/gpu-sheets.js';
import { type DType, dtypes, parseDType } from '../../model/dtype.js';
import { InferscopeError } from '../../model/errors.js';

/** One change of `explain --what-if`: text as typed, and its meaning. */
export type Change = { text: string } & (
  | {
      word:
        | 'cudagraph'
        | 'fused-attention'
        | 'fused-elementwise'
        | 'no-sync'
        | 'pinned-copies'
        | 'no-slow-rank'
        | 'equal-links';
    }
  | { word: 'batch-size'; batchSize: number }
  | { word: 'context-len'; contextLen: number }
  | { word: 'dtype'; dtype: DType }
  // `chosen`: the product that a short name was resolved to, and the alternatives; null for a full name.
  | { word: 'gpu'; name: string; chosen: string | null }
);

/** All changes and their meaning, in the order of `--help`. */
export const changeWords: readonly { word: string; means: string }[] = [
  { word: 'cudagraph', means: 'the stage is launched as one CUDA graph' },
  { word: 'batch-size=N', means: 'N sequences share a step' },
  { word: 'dtype=NAME', means: `weights and GEMMs in ${dtypes.join(', ')}` },
  {
    word: 'int4',
    means: 'dtype=int4: 4-bit weights, multiplied in the dtype of the activations (CPU: in int8)',
  },
  { word: 'fused-attention', means: 'attention in one kernel, without its score matrix' },
  { word: 'fused-elementwise', means: 'norms, rotations, activations and casts in one kernel each' },
  { word: 'no-sync', means: 'the host waits for the device at most once per step' },
  { word: 'pinned-copies', means: 'copies from pinned memory, overlapped with kernels' },
  { word: 'no-slow-rank', means: 'the slowest rank takes as long as the others' },
  { word: 'equal-links', means: 'a slow group of ranks exchanges as fast as the others' },
  { word: 'context-len=N', means: 'attention over N tokens per sequence' },
  { word: 'gpu=NAME', means: 'another GPU, by its data sheet; host time stays' },
];

/**
 * Changes of one or more `--what-if`, separated by commas; they are applied in order.
 * @throws E_USAGE for an unknown word or an impossible value, E_DTYPE for an unknown dtype
 */
export function parseChanges(texts: readonly string[]): Change[] {
  const changes = texts
    .flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map(parseChange);
  if (changes.length === 0) throw unknown('(nothing)');
  const twice = changes.find(
    (change, index) => changes.findIndex(({ word }) => word === change.word) !== index,
  );
  if (twice) {
    throw new InferscopeError('E_USAGE', {
      what: `${twice.word} is given twice`,
      why: 'Changes are applied one after another, each once.',
      fix: 'Give one at a time: run explain --what-if for each.',
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
    case 'no-slow-rank':
    case 'equal-links':
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
    what: `"${text}" is not a change`,
    why: 'It needs a whole number, at least 1.',
    fix: `For example: --what-if ${text.split('=')[0]}=32`,
  });
}

/** The reported name of a GPU with a known data sheet; if several match, the common form factor. */
function gpuNamed(text: string): { name: string; chosen: string | null } {
  const gpus = findGpuSheet(text);
  if (!Array.isArray(gpus)) return { name: gpus.name, chosen: chosenGpuWords(text, gpus) };
  const names = (gpus.length > 0 ? gpus : gpuSheets).flatMap((sheet) => sheet.names);
  throw new InferscopeError('E_USAGE', {
    what: gpus.length > 0 ? `"${text}" matches several GPUs` : `no data sheet is known for GPU "${text}"`,
    why: `Known: ${names.join(', ')}.`,
    fix: 'Use one of these, for example --what-if gpu=H100.',
  });
}

function unknown(text: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `unknown change "${text}"`,
    why: `Known: ${changeWords.map(({ word }) => word).join(', ')}.`,
    fix: 'For example: inferscope explain --what-if cudagraph,batch-size=32',
  });
}
