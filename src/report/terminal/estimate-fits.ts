import type { Document } from '../../model/document.js';
import type { EstimateFits } from '../../model/documents/estimate-memory.js';
import { formatBytes, formatCount, formatQuantity, nbsp } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';

/** 1 234 567 890 B as "1.23 GB": downloads are sold in powers of ten. */
const gigabytes = (bytes: number): string => formatQuantity(bytes / 1e9, '').trim();

/** Columns are narrow; the document has the schemes' own names. */
const shortFormat: Readonly<Record<string, string>> = {
  bfloat16: '16-bit',
  'fp8-row': '8-bit',
  'awq-int4-g128': 'awq int4',
};

/** What `inferscope estimate --gpu NAME --fits` prints: one row a model, what does not fit in brackets. */
export function fitsText(made: Document<EstimateFits>, { width: columns }: { width: number }): string {
  const { data, tool_version } = made;
  const width = readingWidth(columns);
  const room = formatBytes(data.gpu.total_bytes);
  const title = `inferscope${nbsp}${tool_version} · estimate · which models fit ${inert(data.gpu.name ?? 'a GPU')} (${room}, ${data.gpu.source})`;
  const shape = `Memory with ${data.engine}, batch${nbsp}${data.batch_size}, ${formatCount(data.input_len)}${nbsp}+${nbsp}${formatCount(data.output_len)}${nbsp}tokens: weights + KV cache + activations + overhead, GiB (16-bit: float16 and bfloat16; 8-bit: float8 and int8). In brackets: does not fit. Nothing was downloaded.`;
  const names = data.models[0]?.formats.map(({ format }) => format) ?? [];
  const rows = data.models.map((row) => [
    inert(row.model),
    `${formatQuantity(row.parameters, 'FLOP').replace(/FLOP$/, '').trim()}`,
    gigabytes(row.download_bytes),
    row.gated ? 'yes' : '',
    ...row.formats.map(({ needed_bytes, fits }) => {
      const gib = (needed_bytes / 2 ** 30).toFixed(1);
      return fits ? gib : colour.dim(`(${gib})`);
    }),
  ]);
  const table = textTable(
    [
      { head: 'model', flexible: true },
      { head: 'params', align: 'right' },
      { head: 'get, GB', align: 'right' },
      { head: 'gated' },
      ...names.map((head) => ({ head: shortFormat[head] ?? head, align: 'right' as const })),
    ],
    rows,
    { width },
  );
  const fit = data.models.filter(({ formats }) => formats.some(({ fits }) => fits)).length;
  return withPlainSpaces(
    [
      ...wrap(title, width),
      '',
      ...hanging('  ', shape, width),
      '',
      table,
      '',
      ...hanging(
        '  ',
        `${fit} of ${data.models.length} fit in some format. Gated: the hub wants a login and an agreement (HF_TOKEN) first. One of them: inferscope estimate --model NAME --gpu …`,
        width,
      ),
    ].join('\n'),
  );
}
