import type { Document } from '../../model/document.js';
import type { EstimateResult } from '../../model/documents/estimate.js';
import type { EstimateMemory, EstimatePoint } from '../../model/documents/estimate-memory.js';
import { formatBytes, formatCount, formatQuantity, nbsp, noValue } from '../format.js';
import { componentLabels } from '../../vocabulary/memory-components.js';
import { colour } from './colour.js';
import { textTable, type TextColumn } from './table.js';
import { hanging, inert, readingWidth, textWidth, withPlainSpaces, wrap } from './text.js';

const right = (head: string): TextColumn => ({ head, align: 'right' });
const short = (count: number): string => formatQuantity(count, 'FLOP').replace(/FLOP$/, '').trim();

/** What `inferscope estimate` prints: at most 100 columns, readable without colour. */
export function estimateText(made: Document<EstimateResult>, { width: columns }: { width: number }): string {
  const { data, issues } = made;
  const width = readingWidth(columns);
  const lines = [...wrap(titleOf(made), width), '', ...factLines(data, width)];
  if (data.memory) lines.push('', ...memoryLines(data.memory, width));
  if (issues.length > 0) lines.push('');
  for (const { severity, text } of issues) {
    lines.push(...hanging(`  ${severity === 'info' ? 'note' : severity}: `, inert(text), width));
  }
  return withPlainSpaces(lines.join('\n'));
}

function titleOf({ data, tool_version }: Document<EstimateResult>): string {
  const { model, weight_format, activation_dtype } = data;
  const format =
    weight_format === activation_dtype
      ? weight_format
      : `${weight_format} weights, ${activation_dtype} activations`;
  return [
    `inferscope${nbsp}${tool_version}`,
    'estimate',
    inert(`${model.name} (${model.model_type}, ${format})`),
    `${formatCount(model.layers)}${nbsp}layers`,
  ].join(' · ');
}

function factLines(data: EstimateResult, width: number): string[] {
  const { parameters, files } = data;
  const active =
    parameters.active === parameters.total ? '' : `, ${short(parameters.active)} active for a token`;
  const facts: [string, string][] = [
    ['parameters', `${formatCount(parameters.total)} (${short(parameters.total)})${active}`],
  ];
  if (files) {
    const left = files.left_out.map(({ what, bytes }) => `${formatBytes(bytes)} ${what}`).join(', ');
    facts.push([
      'files',
      inert(`${formatBytes(files.bytes)}, ${files.source}${left ? `; left out: ${left}` : ''}`),
    ]);
  }
  facts.push([
    'KV cache',
    `${formatBytes(data.kv_cache_bytes_per_token)} a token of each sequence (${data.kv_cache_dtype})`,
  ]);
  return facts.flatMap(([name, text]) => hanging(`  ${colour.bold(name.padEnd(12))}`, text, width));
}

function memoryLines(memory: EstimateMemory, width: number): string[] {
  const [first] = memory.points;
  return memory.points.length === 1 && first ? pointLines(memory, first, width) : tableLines(memory, width);
}

function whereOf(memory: EstimateMemory): string {
  const { gpu, gpu_count: count } = memory;
  const groups = (['tensor', 'pipeline', 'expert'] as const).flatMap((kind) => {
    const size = memory[`${kind}_parallel_size`];
    return size === 1 ? [] : [`${kind} parallel ${size}`];
  });
  const room = gpu?.total_bytes ? `, ${formatBytes(gpu.total_bytes)}${count > 1 ? ' each' : ''}` : '';
  if (memory.engine === 'onnx') return 'main memory';
  const name = gpu ? inert(gpu.name ?? 'GPU') : 'GPU';
  return [`${count}${nbsp}× ${name}${room}`, ...groups].join(', ');
}

function pointLines(memory: EstimateMemory, point: EstimatePoint, width: number): string[] {
  const shape = `batch${nbsp}${point.batch_size}, ${formatCount(point.input_len)}${nbsp}+${nbsp}${formatCount(point.output_len)}${nbsp}tokens`;
  const share = memory.engine === 'vllm' ? `, utilisation ${memory.gpu_memory_utilization}` : '';
  const title = `Memory at ${point.peak === 'start-up' ? 'start-up' : `the peak, in ${point.peak}`}: ${memory.engine}${share}, ${shape}, ${whereOf(memory)}`;
  const kinds = differentGpus(point);
  return [
    ...hanging('  ', title, width).map((line) => colour.bold(line)),
    '',
    ...componentTables(point, kinds, width),
    '',
    ...point.lines.flatMap(({ component, formula }) =>
      hanging(`  ${colour.dim((componentLabels[component] ?? component).padEnd(18))}`, inert(formula), width),
    ),
    '',
    ...verdictLines(memory, point, width),
  ];
}

type GpuKind = ReturnType<typeof differentGpus>[number];

/** A column for each kind of GPU; as many tables as it takes for none to be wider than `width`. */
function componentTables(point: EstimatePoint, kinds: readonly GpuKind[], width: number): string[] {
  const table = (shown: readonly GpuKind[]): string => {
    const rows = point.lines.map((line) => [
      componentLabels[line.component] ?? line.component,
      ...shown.map(({ gpu }) => formatBytes(line.gpu_bytes[gpu] ?? 0)),
      line.confidence,
    ]);
    const together = ['together', ...shown.map(({ gpu }) => formatBytes(point.gpus[gpu]!.bytes)), ''];
    const heads = shown.map(({ label }) =>
      right(kinds.length === 1 ? (point.gpus.length > 1 ? 'each GPU' : 'bytes') : label),
    );
    return textTable([{ head: 'component' }, ...heads, { head: 'confidence' }], [...rows, together], {
      width,
    });
  };
  for (let shown = kinds.length; ; shown--) {
    const made = table(kinds.slice(0, shown));
    if (shown > 1 && isWider(made, width)) continue;
    const rest = kinds.slice(shown);
    return rest.length === 0 ? [made] : [made, '', ...componentTables(point, rest, width)];
  }
}

const isWider = (table: string, width: number): boolean =>
  table.split('\n').some((line) => textWidth(line) > width);

/** GPUs that hold equally much stand in one column. */
function differentGpus({ gpus, lines }: EstimatePoint): { gpu: number; label: string }[] {
  const groups = new Map<string, number[]>();
  for (const { gpu } of gpus) {
    const key = lines.map(({ gpu_bytes }) => gpu_bytes[gpu]).join();
    groups.set(key, [...(groups.get(key) ?? []), gpu]);
  }
  return [...groups.values()].map((members) => {
    const [from = 0] = members;
    const to = members.at(-1) ?? from;
    const run = to - from + 1 === members.length;
    return { gpu: from, label: `GPU ${from}${members.length === 1 ? '' : run ? `–${to}` : ', …'}` };
  });
}

function verdictLines(memory: EstimateMemory, point: EstimatePoint, width: number): string[] {
  const line = (name: string, text: string): string[] =>
    hanging(`  ${colour.bold(name.padEnd(11))}`, text, width);
  const lines: string[] = [];
  const total = memory.gpu?.total_bytes ?? null;
  const { fits, largest, kv_pool: pool } = point;
  if (memory.engine === 'vllm' && pool) {
    lines.push(
      ...line(
        'KV pool',
        `${formatCount(pool.tokens)} tokens, ${pool.concurrency.toFixed(1)} sequences of ${formatCount(memory.max_model_len)} at once; this batch needs ${formatBytes(point.kv_needed_bytes)}${pool.concurrency < 1 ? `. That is less than one: vLLM does not start without --max-model-len ${pool.tokens}` : ''}`,
      ),
    );
  }
  if (fits === null || total === null) {
    lines.push(...line('fits', 'not known: give --gpu, e.g. --gpu A10G or --gpu 24GiB'));
    return lines;
  }
  const spare = total - point.needed_gpu_bytes;
  const reserve = Math.max(
    0,
    ...(point.lines.find(({ component }) => component === 'allocator_reserve')?.gpu_bytes ?? []),
  );
  const least = memory.engine === 'vllm' ? ' with the batch’s own cache' : '';
  lines.push(
    ...line(
      'fits',
      fits
        ? `yes: ${formatBytes(point.needed_gpu_bytes)}${least} of ${formatBytes(total)} (${memory.gpu!.source})`
        : `no: ${formatBytes(point.needed_gpu_bytes)}${least} of ${formatBytes(total)}${spare < 0 ? `, ${formatBytes(-spare)} too much` : ', and its share is smaller'}${spare < 0 && spare + reserve >= 0 ? '; that is less than torch’s reserve, of which it gives back what it can: it may run, slower' : ''}`,
    ),
  );
  lines.push(...line('largest', largestWords(point, memory)));
  if (point.would_fit.length > 0) {
    const changes = point.would_fit.map(
      ({ change, needed_gpu_bytes }) => `${change} (${formatBytes(needed_gpu_bytes)} a GPU)`,
    );
    lines.push(...line('would fit', changes.join(', ')));
  } else if (!fits) {
    lines.push(
      ...line('would fit', largest.batch_size ? 'a smaller batch' : 'a larger GPU, or more of them'),
    );
  }
  return lines;
}

function largestWords(
  { largest, batch_size, input_len, output_len }: EstimatePoint,
  { engine }: EstimateMemory,
): string {
  const { context_tokens: context, batch_size: batch, concurrency } = largest;
  const length = input_len + output_len;
  const parts = [
    context === null
      ? ''
      : context === 0
        ? `no context fits at batch ${batch_size}`
        : `${formatCount(context)} tokens of context at batch ${batch_size}`,
    batch === null
      ? ''
      : batch === 0
        ? `not one sequence of ${formatCount(length)} tokens`
        : `batch ${formatCount(batch)} at ${formatCount(length)} tokens`,
    engine === 'vllm' && concurrency !== null
      ? `${formatCount(concurrency)} sequences of the longest length at once`
      : '',
  ];
  return parts.filter((part) => part !== '').join(', ') || noValue;
}

/** Lists of batch and lengths: one row each. */
function tableLines(memory: EstimateMemory, width: number): string[] {
  const of = (point: EstimatePoint, ...components: string[]): string => {
    const bytes = point.lines
      .filter(({ component }) => components.includes(component))
      .reduce((sum, { gpu_bytes }) => sum + Math.max(...gpu_bytes), 0);
    return formatBytes(bytes);
  };
  const overhead = ['framework_overhead', 'cuda_graphs', 'cuda_context', 'allocator_reserve'];
  const text = (count: number | null): string => (count === null ? noValue : formatCount(count));
  const all: Column[] = [
    { head: 'batch', of: ({ batch_size }) => String(batch_size) },
    { head: 'input', of: ({ input_len }) => formatCount(input_len) },
    { head: 'output', of: ({ output_len }) => formatCount(output_len) },
    { head: 'weights', of: (point) => of(point, 'model_weights') },
    { head: 'KV cache', of: ({ kv_needed_bytes }) => formatBytes(kv_needed_bytes) },
    { head: 'activations', of: (point) => of(point, 'activations') },
    { head: 'overhead', of: (point) => of(point, ...overhead) },
    { head: 'needed', of: ({ needed_gpu_bytes }) => formatBytes(needed_gpu_bytes) },
    { head: 'fits', of: ({ fits }) => (fits === null ? noValue : fits ? 'yes' : 'no') },
    { head: 'max context', of: ({ largest }) => text(largest.context_tokens) },
  ];
  const { columns, same, dropped } = columnsFor(memory, all, width);
  const without = memory.points.every(({ fits }) => fits === null) && memory.engine !== 'onnx';
  return [
    ...hanging('  ', `Memory of the fullest GPU: ${memory.engine}, ${whereOf(memory)}`, width).map((line) =>
      colour.bold(line),
    ),
    ...(same === '' ? [] : hanging('  all: ', same, width)),
    '',
    pointTable(memory, columns, width),
    ...(dropped.length > 0
      ? ['', ...hanging('  ', `Not shown for want of room: ${dropped.join(', ')}; --json has all.`, width)]
      : []),
    ...(without
      ? ['', ...hanging('  ', 'Whether it fits: give --gpu, e.g. --gpu A10G or --gpu 24GiB', width)]
      : []),
  ];
}

interface Column {
  head: string;
  of: (point: EstimatePoint) => string;
}

function pointTable({ points }: EstimateMemory, columns: readonly Column[], width: number): string {
  return textTable(
    columns.map(({ head }) => right(head)),
    points.map((point) => columns.map((column) => column.of(point))),
    { width },
  );
}

/** Columns that go first where there is no room: what makes up the sum, not what was asked. */
const dispensable = ['overhead', 'activations', 'weights', 'KV cache', 'output'];

/** What all rows have alike stands above the table; where there is still no room, columns go. */
function columnsFor(memory: EstimateMemory, all: readonly Column[], width: number) {
  if (!isWider(pointTable(memory, all, width), width)) return { columns: all, same: '', dropped: [] };
  const { points } = memory;
  const first = points[0]!;
  const alike = ({ head, of }: Column): boolean =>
    head !== 'batch' && head !== 'needed' && points.every((point) => of(point) === of(first));
  const same = all
    .filter((column) => alike(column) && column.of(first) !== noValue)
    .map(({ head, of }) => `${head}${nbsp}${of(first)}`)
    .join(', ');
  let columns = all.filter((column) => !alike(column));
  const dropped: string[] = [];
  for (const name of dispensable) {
    if (!isWider(pointTable(memory, columns, width), width)) break;
    if (!columns.some(({ head }) => head === name)) continue;
    columns = columns.filter(({ head }) => head !== name);
    dropped.push(name);
  }
  return { columns, same, dropped };
}
