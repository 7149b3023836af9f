import type { ErrorSummary, ValidatedProfile, Validation } from '../model/documents/validate.js';
import { formatBytes, formatPercent, noValue } from './format.js';
import { componentWords } from './memory-words.js';

/** +4.2 %: above 0 the calculator says too much; what rounds to nothing has no sign. */
export function signedShare(share: number | null): string {
  return share === null ? noValue : signed(share, formatPercent(share));
}

export function signedBytes(bytes: number): string {
  return signed(bytes, formatBytes(bytes));
}

const signed = (value: number, text: string): string => (value > 0 && /[1-9]/.test(text) ? `+${text}` : text);

/** "llama-3.1-8b bfloat16, batch 16, 1024 + 32" */
export function runWords(profile: ValidatedProfile): string {
  const { model, dtype, batch_size, input_len, output_len, tensor_parallel_size: tp, quantization } = profile;
  const format = [dtype, quantization].filter((one) => one !== null).join(' ');
  const group = tp > 1 ? `, ${tp} GPUs` : '';
  return `${model} ${format}, batch ${batch_size}, ${input_len} + ${output_len}${group}`;
}

export const groupWords: Readonly<Record<Validation['groups'][number]['by'], string>> = {
  family: 'family',
  dtype: 'dtype',
  tensor_parallel_size: 'tensor parallel',
  engine: 'engine',
  quantization: 'quantisation',
};

/** Cells of a row of errors: n, mean, mean of the absolute, worst, mean in bytes, within. */
export function errorCells(summary: ErrorSummary): string[] {
  return [
    String(summary.profiles),
    signedShare(summary.mean_share),
    summary.mean_absolute_share === null ? noValue : formatPercent(summary.mean_absolute_share),
    signedShare(summary.worst_share),
    formatBytes(summary.mean_absolute_bytes),
    `${summary.within}/${summary.profiles}`,
  ];
}

export const errorHeads = ['n', 'mean', 'mean |e|', 'worst', 'mean |B|', 'within'] as const;

export function resultWords({ result, counts, tolerance }: Validation): string {
  const { compared, rejected, skipped, within } = counts;
  const rest = [
    rejected > 0 ? `${rejected} rejected as implausible` : '',
    skipped > 0 ? `${skipped} not comparable` : '',
  ].filter((one) => one !== '');
  const tail = rest.length > 0 ? `; ${rest.join(', ')}` : '';
  if (result === 'nothing_compared') return `nothing could be compared${tail}`;
  return `${within} of ${compared} totals within ${formatPercent(tolerance)}${tail}`;
}

/** Components that only a formula gave, in how many compared profiles; null without any. */
export function notMeasuredWords(profiles: readonly ValidatedProfile[]): string | null {
  const counts = new Map<ValidatedProfile['not_measured'][number], number>();
  for (const { status, not_measured: own } of profiles) {
    if (status === 'compared') for (const one of own) counts.set(one, (counts.get(one) ?? 0) + 1);
  }
  if (counts.size === 0) return null;
  const words = [...counts].map(([one, count]) => `${componentWords[one]} in ${count}`).join(', ');
  return `${words}: a formula gave it, so there is nothing to compare`;
}
