import { colour } from './colour.js';
import type { Document } from '../../model/document.js';
import type { EstimateLayers, EstimateResult, EstimateSizes } from '../../model/documents/estimate.js';
import { formatBytes, formatCount, formatQuantity, nbsp } from '../format.js';
import { textTable, type TextColumn } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';

const right = (head: string): TextColumn => ({ head, align: 'right' });

/** "58.7 M", "2.14 G": a count in the prefix that reads best. */
const short = (count: number): string => formatQuantity(count, 'FLOP').replace(/FLOP$/, '').trim();

function sizeRow(name: string, row: EstimateSizes): string[] {
  return [
    name,
    short(row.parameters),
    short(row.flops),
    formatBytes(row.bytes),
    formatBytes(row.kv_read_bytes + row.kv_write_bytes),
    formatBytes(row.activation_in_bytes),
    formatBytes(row.activation_out_bytes),
  ];
}

/** "0–2, 4, 6–7". */
export function layerRanges(layers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const layer of layers) {
    const last = ranges.at(-1);
    if (last && layer === last[1] + 1) last[1] = layer;
    else ranges.push([layer, layer]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
}

function layerLines(layers: EstimateLayers, width: number): string[] {
  const { phase, batch_size: batch, new_tokens: tokens, context_tokens: context } = layers;
  const shape = `${phase}, batch${nbsp}${batch}, ${formatCount(tokens)}${nbsp}new token${tokens === 1 ? '' : 's'} a sequence after ${formatCount(context)} in the KV cache`;
  // One table, so that the columns of all groups stand below each other.
  const rows: string[][] = [];
  const titles = new Map<number, string>();
  for (const group of layers.groups) {
    const count = group.layers.length;
    const all = count === 1 ? 'layer' : `${formatCount(count)}${nbsp}layers alike, summed:`;
    titles.set(rows.length, `${all} ${layerRanges(group.layers)}: ${group.structure}`);
    rows.push(...group.modules.map((row) => sizeRow(row.module, row)), sizeRow('together', group.total));
  }
  titles.set(rows.length, 'outside the layers');
  rows.push(...layers.outside.map((row) => sizeRow(row.module, row)));
  titles.set(rows.length, 'all');
  rows.push(sizeRow('total', layers.total));
  const columns: TextColumn[] = [
    { head: 'module', flexible: true },
    ...['params', 'FLOP', 'bytes', 'of it KV', 'act. in', 'act. out'].map(right),
  ];
  const [head = '', ...table] = textTable(columns, rows, { width }).split('\n');
  return [
    ...hanging('  ', `Layers: ${shape}`, width).map((line) => colour.bold(line)),
    '',
    head,
    ...table.flatMap((line, index) => {
      const title = titles.get(index);
      return title === undefined
        ? [line]
        : [...hanging('  ', inert(title), width).map((l) => colour.bold(l)), line];
    }),
  ];
}

/** What `inferscope estimate` prints: at most 80 columns, readable without colour. */
export function layersSummary(made: Document<EstimateResult>, { width: columns }: { width: number }): string {
  const { data, issues } = made;
  const width = readingWidth(columns);
  const { model, parameters } = data;
  const format =
    data.weight_format === data.activation_dtype
      ? data.weight_format
      : `${data.weight_format} weights, ${data.activation_dtype} activations`;
  const title = [
    `inferscope${nbsp}${made.tool_version}`,
    'estimate',
    inert(`${model.name} (${model.model_type}, ${format})`),
    `${formatCount(model.layers)}${nbsp}layers`,
  ].join(' · ');
  const active =
    parameters.active === parameters.total ? '' : `, ${short(parameters.active)} active for a token`;
  const named: [string, string][] = [
    ['parameters', `${formatCount(parameters.total)} (${short(parameters.total)})${active}`],
    ['weights', formatBytes(data.weight_bytes)],
    [
      'KV cache',
      `${formatBytes(data.kv_cache_bytes_per_token)} a token of each sequence (${data.kv_cache_dtype})`,
    ],
  ];
  const lines = [...wrap(title, width), ''];
  for (const [name, text] of named) {
    lines.push(...hanging(`  ${colour.bold(name.padEnd(12))}`, text, width));
  }
  if (data.layers) lines.push('', ...layerLines(data.layers, width));
  if (issues.length > 0) lines.push('');
  for (const { severity, text } of issues) {
    lines.push(...hanging(`  ${severity === 'info' ? 'note' : severity}: `, inert(text), width));
  }
  return withPlainSpaces(lines.join('\n'));
}
