import type { Document } from '../model/document.js';
import type { EstimateFits } from '../model/documents/estimate-memory.js';
import { estimateLengthWords } from '../vocabulary/workload.js';
import type { Text, View } from './block.js';

/** Short labels for narrow columns; the document has the schemes' own names. */
const shortFormat: Readonly<Record<string, string>> = {
  bfloat16: '16-bit',
  'fp8-row': '8-bit',
  'awq-int4-g128': 'awq int4',
};

const withoutUnit = (n: number): Text => ({ n, unit: '' });

/** Which bundled models fit one GPU: one row per model; what does not fit is in parentheses. */
export function estimateFitsView(document: Document<EstimateFits>): View {
  const { gpu, engine, batch_size, input_len, output_len, models } = document.data;
  const formats = models[0]?.formats.map(({ format }) => format) ?? [];
  const fitCount = models.filter((model) => model.formats.some(({ fits }) => fits)).length;
  return {
    command: 'estimate',
    title: `which models fit ${gpu.name ?? 'a GPU'}`,
    document,
    session: { id: null, started_at: '' },
    lead: [
      {
        type: 'text',
        text: [
          { n: gpu.total_bytes / 1e9, unit: 'GB' },
          ` (${gpu.source}); ${engine}, batch ${batch_size}, ${estimateLengthWords(input_len, output_len)}: weights + KV cache + activations + overhead, GB (16-bit: float16 and bfloat16; 8-bit: float8 and int8). In parentheses: does not fit. `,
          engine === 'vllm' ? 'A context longer than the KV pool needs --max-model-len. ' : '',
          'Nothing was downloaded.',
        ],
      },
      {
        type: 'table',
        title: 'Memory per model and format, GB',
        columns: [
          { id: 'model', head: 'model', wraps: true },
          { id: 'parameters', head: 'params, B', numeric: true },
          { id: 'download_gb', head: 'disk, GB', numeric: true },
          { id: 'gated', head: 'gated', drop: 0 },
          ...formats.map((id) => ({ id, head: shortFormat[id] ?? id, numeric: true })),
        ],
        rows: models.map(({ model, parameters, download_bytes, gated, formats: modelFormats }) => ({
          cells: [
            model,
            withoutUnit(parameters / 1e9),
            withoutUnit(download_bytes / 1e9),
            gated ? 'yes' : '',
            ...modelFormats.map(({ needed_bytes, fits }): Text => {
              const needed = { n: needed_bytes / 1e9, unit: '' };
              return fits ? needed : ['(', needed, ')'];
            }),
          ],
        })),
      },
      {
        type: 'text',
        text: [
          `${fitCount} of ${models.length} fit in some format. Gated: the hub requires a login and an agreement (HF_TOKEN). For details of one model: `,
          { code: 'inferscope estimate --model NAME --gpu …' },
        ],
      },
    ],
    sections: [],
  };
}
