import type { Workload } from '../model/manifest.js';
import { formatCount, noValue, plural } from './format.js';

/** Dtype and quantization, as far as known: "MatMulNBits int4, block 32" contains the dtype already. */
export const weightFormat = (dtype: string | null, quantization: string | null): string[] =>
  [dtype !== null && quantization?.includes(dtype) ? null : dtype, quantization].filter(
    (part) => part !== null,
  );

/** "llama-24m (random weights, float32)"; "" for an unknown model, as on a server. */
export function modelWords({ model }: Workload): string {
  if (!model) return '';
  const { dtype, quantization } = model;
  const traits = [
    ...(model.weights === 'unknown' ? [] : [`${model.weights} weights`]),
    ...weightFormat(dtype === 'unknown' ? null : dtype, quantization),
  ];
  return traits.length === 0 ? model.name : `${model.name} (${traits.join(', ')})`;
}

/** "onnxruntime 1.30.0 CPU, 1 thread"; "" without a recorded engine. */
export function engineWords({ engine, device, threads }: Workload): string {
  if (engine.name === 'unknown') return '';
  const version = engine.version ? ` ${engine.version}` : '';
  const where = device === 'cpu' ? 'CPU' : device === 'server' ? '(server)' : device;
  return `${engine.name}${version} ${where}${threads === null ? '' : `, ${plural(threads, 'thread')}`}`;
}

/** "batch 1, 128 in + 32 out tokens"; "" if unknown (another tool's capture, a sweep). */
export function shapeWords({ batch_size, input_len, output_len }: Workload): string {
  const batch = batch_size === null ? null : `batch ${batch_size}`;
  const tokens =
    input_len === null && output_len === null
      ? null
      : output_len === null
        ? plural(input_len!, 'prompt token')
        : lengthWords(input_len, output_len);
  return [batch, tokens].filter((part) => part !== null).join(', ');
}

/** "2040 in + 32 out tokens": lengths of prompt and output, as typed. */
export const lengthWords = (input: number | null, output: number | null): string =>
  `${lengthOf(input)} in + ${lengthOf(output)} out tokens`;

/** The lengths of a memory estimate: of prompt and output, or of the whole context (--context-len), which has no output of its own. */
export const estimateLengthWords = (input: number, output: number): string =>
  output === 0 ? plural(input, 'token') : lengthWords(input, output);

const lengthOf = (tokens: number | null): string =>
  tokens === null ? noValue : Number.isInteger(tokens) ? String(tokens) : formatCount(tokens);

/** Workload, engine and shape: the title of a session without a title of its own. */
export const identityWords = (workload: Workload): string =>
  [modelWords(workload), engineWords(workload), shapeWords(workload), givenPartsText(workload)]
    .filter(Boolean)
    .join(' · ');

/** "model, batch size given by you". */
const givenPartsText = ({ given_by_user: given = [] }: Workload): string =>
  given.length === 0 ? '' : `${given.map((part) => partWords[part]).join(', ')} given by you`;

const partWords: Readonly<Record<NonNullable<Workload['given_by_user']>[number], string>> = {
  model: 'model',
  dtype: 'dtype',
  batch_size: 'batch size',
  input_len: 'prompt length',
};
