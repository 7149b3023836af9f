import { closest } from 'fastest-levenshtein';
import { bytesPerElement, dtypeAmong, dtypes } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { kernelNames, type KernelName } from '../model/kernels.js';

const splitWords = (text: string): string[] =>
  text
    .trim()
    .toLowerCase()
    .split(/\s*,\s*|\s+/)
    .filter((word) => word !== '');

/** Other names of kernels. */
const kernelAliases: Record<string, KernelName> = {
  matmul: 'gemm',
  mm: 'gemm',
  conv: 'conv2d',
  layernorm: 'layernorm-gelu',
  gelu: 'layernorm-gelu',
  sdpa: 'attention',
  flash: 'attention',
  rms_norm: 'rmsnorm',
  silu: 'swiglu',
  rotary: 'rope',
  argmax: 'sampling',
};

/** `gemm,rope` or `gemm rope`; all. @throws E_USAGE with the nearest name */
export function parseKernelNames(text: string): KernelName[] {
  return splitWords(text).flatMap((word): readonly KernelName[] => {
    if (word === 'all') return kernelNames;
    const found = kernelNames.find((name) => name === word);
    if (found) return [found];
    const nearest =
      (Object.hasOwn(kernelAliases, word) ? kernelAliases[word] : undefined) ??
      closest(word, [...kernelNames]);
    throw new InferscopeError('E_USAGE', {
      what: `unknown kernel "${word}"`,
      why: `Kernels are ${kernelNames.join(', ')}.`,
      fix: `Type for example: inferscope kernels ${nearest}`,
    });
  });
}

const suiteDTypes = [...dtypes.filter((candidate) => bytesPerElement[candidate] >= 1), 'tfloat32'];

/** tfloat32: float32 matrices on tensor cores. @throws E_DTYPE */
export function parseDTypes(text: string, before: string[] = []): string[] {
  const parsed = splitWords(text).map((word) => {
    if (word === 'tfloat32' || word === 'tf32') return 'tfloat32';
    const dtype = dtypeAmong(word, suiteDTypes);
    if (bytesPerElement[dtype] >= 1) return dtype;
    throw new InferscopeError('E_DTYPE', {
      what: `no kernel of the suite computes in ${dtype}`,
      why: `The suite has ${suiteDTypes.join(', ')}.`,
      fix: 'Use --dtype int8 or --dtype float8; to measure a model with int4 weights use inferscope profile --dtype int4.',
    });
  });
  return [...new Set([...before, ...parsed])];
}

const backends = ['flash', 'efficient', 'cudnn', 'math'];

/** @throws E_USAGE */
export function parseBackends(text: string, before: string[] = []): string[] {
  const names = splitWords(text).flatMap((word) => {
    if (word === 'all') return backends;
    if (backends.includes(word)) return [word];
    throw new InferscopeError('E_USAGE', {
      what: `unknown attention backend "${word}"`,
      why: `PyTorch has ${backends.join(', ')}; all selects all of them.`,
      fix: `Type for example: --backend ${closest(word, backends)}`,
    });
  });
  return [...new Set([...before, ...names])];
}

export function parseMaxSeconds(text: string): number {
  const value = Number(/^\s*([\d.]+)\s*s?\s*$/.exec(text)?.[1]);
  if (value > 0) return value;
  throw new InferscopeError('E_USAGE', {
    what: `invalid --max-seconds ${text}`,
    why: 'It is the time limit per case in seconds.',
    fix: 'Type for example: --max-seconds 2',
  });
}
