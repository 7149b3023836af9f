import type { Validation } from '../model/documents/validate.js';
import { estimatedComponents } from '../model/memory-components.js';
import { csvLines } from './csv.js';

const figures = [
  'measured_bytes',
  'estimated_bytes',
  'error_bytes',
  'error_share',
  'within_tolerance',
] as const;
const facts = [
  'source',
  'model',
  'family',
  'engine',
  'engine_version',
  'dtype',
  'quantization',
  'tensor_parallel_size',
  'batch_size',
  'input_len',
  'output_len',
  'gpu',
  'fitted',
  'status',
] as const;

/** One row per profile: the run, total and components measured, estimated and their error, and why it was rejected. */
export function validateCsv({ profiles }: Pick<Validation, 'profiles'>): string {
  const head = [
    ...facts,
    ...figures.map((figure) => `total_${figure}`),
    ...estimatedComponents.flatMap((component) => figures.map((figure) => `${component}_${figure}`)),
    'not_measured',
    'residual_bytes',
    'reasons',
    'explanation',
  ];
  const rows = profiles.map((profile) => [
    ...facts.map((name) => profile[name]),
    ...figures.map((figure) => profile.total?.[figure]),
    ...estimatedComponents.flatMap((component) => {
      const componentRow = profile.components.find((row) => row.component === component);
      return figures.map((figure) => componentRow?.[figure]);
    }),
    profile.not_measured.join(' '),
    profile.residual_bytes,
    profile.reasons.join(' '),
    profile.explanation,
  ]);
  return csvLines([head, ...rows]);
}
