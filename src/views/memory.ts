import type { Document } from '../model/document.js';
import type { MemoryPoint, MemoryProfile } from '../model/documents/memory-profile.js';
import type { MemoryResult } from '../model/documents/memory-result.js';
import { componentColor } from '../vocabulary/colors.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import { pointLabels } from '../vocabulary/memory-points.js';
import type { Block, Column, Row, Section, Text, View } from './block.js';
import { allocationsSection, allocatorSections, timelineSection } from './memory-allocator.js';
import { definitions, engineText, runSection } from './memory-run.js';
import { lengthWords } from '../vocabulary/workload.js';

type Fact = { name: string; text: Text };

/** A memory profile: peak, its components, and when it was reached. */
export function memoryView(document: Document<MemoryResult>): View {
  const { data, issues } = document;
  const { session, profile } = data;
  return {
    command: 'memory',
    title: title(profile),
    document,
    session,
    explains: 'findings',
    lead: [
      { type: 'text', text: identity(profile) },
      {
        type: 'facts',
        items: [
          { name: 'peak', text: peakText(profile) },
          { name: 'latency', text: latencyText(profile) },
        ],
      },
      { type: 'facts', level: 3, items: largestComponents(profile) },
      { type: 'notes', level: 2, items: reasonsBelow(profile, 'latency_stats') },
      { type: 'issues', issues },
    ],
    sections: [
      componentSection(profile),
      pointSection(profile),
      ...gpuSection(profile),
      timelineSection(data),
      ...allocatorSections(data),
      ...allocationsSection(data),
      runSection(profile),
      definitions,
    ],
  };
}

/** "llama-2-7b · batch 4, 512 in + 128 out tokens" */
function title({ model_info, metadata }: MemoryProfile): string {
  const { batch_size, input_len, output_len } = metadata.config;
  return `${model_info.name} · batch ${batch_size}, ${lengthWords(input_len, output_len)}`;
}

/** Always in 10^9 bytes, as in memory profiles. */
const memory = (gb: number | null, why: string): Text =>
  gb === null ? { missing: why } : { n: gb, unit: 'GB', digits: 4 };

const join = (texts: readonly Text[], between: string): Text =>
  texts.flatMap((text, index) => [...(index === 0 ? [] : [between]), ...[text].flat()]) as Text;

/** Why a field is null: its own reason, or that of the enclosing part of the profile. */
function reasonOf({ missing }: MemoryProfile, path: string): string {
  const parts = path.split('.');
  const paths = parts.map((_, index) => parts.slice(0, parts.length - index).join('.'));
  return (
    paths.map((candidate) => missing[candidate]).find((why) => why !== undefined) ?? 'not in the profile'
  );
}

/** Reasons of all null fields below a path, each with its name. */
const reasonsBelow = ({ missing }: MemoryProfile, path: string): string[] =>
  Object.entries(missing)
    .filter(([name]) => name.startsWith(`${path}.`))
    .map(([name, why]) => `${fieldLabel(name.slice(path.length + 1))}: ${why}`);

function fieldLabel(field: string): string {
  const name = field.replace(/_(gb|ms)$/, '');
  return (componentLabels as Readonly<Record<string, string>>)[name] ?? name.replaceAll('_', ' ');
}

/** "8.03 B parameters · 32 layers · 32 heads (8 KV) × 128 · weights float16, cache float16 · vllm 0.32.0 · NVIDIA H200" */
function identity(profile: MemoryProfile): Text {
  const { model_info, metadata } = profile;
  const { num_parameters, num_layers, num_heads, num_kv_heads, head_dim, dtypes } = model_info;
  const parts: (Text | null)[] = [
    num_parameters === null ? null : { n: num_parameters, unit: 'parameters' },
    num_layers === null ? null : `${num_layers} layers`,
    num_heads === null ? null : `${num_heads} heads (${num_kv_heads ?? '?'} KV) × ${head_dim ?? '?'}`,
    `weights ${dtypes.weights ?? '?'}, cache ${dtypes.kv_cache ?? '?'}`,
    model_info.quantization,
    model_info.tensor_parallel_size > 1 ? `tensor parallel ${model_info.tensor_parallel_size}` : null,
    engineText(profile),
    metadata.gpus[0]?.name ?? null,
    metadata.status === 'partial' ? { text: 'stopped early', tone: 'fault' } : null,
  ];
  return join(
    parts.filter((part) => part !== null),
    ' · ',
  );
}

/** Memory in use at the peak, and its share of the GPUs of the run. */
function peakText(profile: MemoryProfile): Text {
  const { peak } = profile.memory_measurements;
  const capacityBytes = peak.per_gpu_details.reduce((sum, { total_bytes }) => sum + (total_bytes ?? 0), 0);
  if (peak.total_gb === null)
    return `not measured: ${reasonOf(profile, 'memory_measurements.peak.total_gb')}`;
  const capacity: Text =
    peak.total_bytes !== null && capacityBytes > 0
      ? [
          ' of ',
          { n: capacityBytes / 1e9, unit: 'GB', digits: 4 },
          ' (',
          { n: peak.total_bytes / capacityBytes, unit: 'ratio' },
          ')',
        ]
      : [];
  return [{ n: peak.total_gb, unit: 'GB', digits: 4 }, ...capacity, ` in use${ofAllProcesses(profile)}`];
}

/** The three points measure whole GPUs, so on a shared GPU they include other processes. */
const ofAllProcesses = ({ metadata }: MemoryProfile): string =>
  metadata.issues.some(({ code }) => code === 'gpu_shared') ? ', by all processes on the GPU' : '';

/** The largest components. */
function largestComponents({
  memory_breakdown: { components, total_measured_bytes: total },
}: MemoryProfile): Fact[] {
  const texts = components
    .filter(({ component, bytes }) => component !== 'residual' && bytes > 0)
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, 3)
    .map(({ component, bytes, gb }): Text => [
      `${componentLabels[component]} `,
      { n: gb, unit: 'GB', digits: 4 },
      ...(total ? [' (', { n: bytes / total, unit: 'ratio' }, ')'] : []),
    ]);
  return texts.length === 0 ? [] : [{ name: 'largest', text: join(texts, ', ') }];
}

function latencyText(profile: MemoryProfile): Text {
  const { mean_latency_ms, tokens_per_second, mean_ttft_ms, mean_tpot_ms, runs } = profile.latency_stats;
  if (mean_latency_ms === null) return `not measured: ${reasonOf(profile, 'latency_stats.mean_latency_ms')}`;
  const parts: (Text | null)[] = [
    { n: mean_latency_ms, unit: 'ms' },
    tokens_per_second === null ? null : { n: tokens_per_second, unit: 'tok/s' },
    mean_ttft_ms === null ? null : ['TTFT ', { n: mean_ttft_ms, unit: 'ms' }],
    mean_tpot_ms === null ? null : ['TPOT ', { n: mean_tpot_ms, unit: 'ms' }],
    runs === 1 ? '1 run' : `mean of ${runs} runs`,
  ];
  return join(
    parts.filter((part) => part !== null),
    ' · ',
  );
}

function componentSection(profile: MemoryProfile): Section {
  const {
    components,
    total_measured_gb,
    total_measured_bytes: total,
    confidence_levels,
  } = profile.memory_breakdown;
  const section = (blocks: Block[]): Section => ({
    id: 'breakdown',
    title: 'Components at the peak',
    blocks,
  });
  if (components.length === 0)
    return section([
      {
        type: 'missing',
        what: 'The peak has no breakdown.',
        why: 'Neither engine nor model provides a breakdown.',
      },
    ]);
  return section([
    {
      type: 'chart',
      level: 3,
      label: 'Components of the measured memory',
      chart: {
        form: 'waterfall',
        unit: 'GB',
        bars: components.map(({ component, bytes, confidence, evidence }) => ({
          name: componentLabels[component],
          value: bytes / 1e9,
          meaning: evidence[0] ?? '',
          color: componentColor(component),
          confidence,
        })),
        ...(total !== null && {
          total: {
            value: total / 1e9,
            meaning: "the run's own memory at its peak",
            shareOf: 'measured',
          },
        }),
      },
      behind: {
        type: 'table',
        title: 'Components in bytes',
        columns: [
          { id: 'component', head: 'component' },
          { id: 'bytes', head: 'bytes', numeric: true },
        ],
        rows: components.map(({ component, bytes }) => ({
          cells: [componentLabels[component], { count: bytes }],
        })),
      },
    },
    {
      type: 'table',
      title: "The run's own memory at its peak; the residual is measured − components",
      reasons: true,
      columns: [
        { id: 'component', head: 'component' },
        { id: 'memory_gb', head: 'memory', numeric: true },
        { id: 'share', head: 'share', numeric: true },
        { id: 'confidence', head: 'confidence' },
        { id: 'estimate_gb', head: 'estimate', numeric: true, drop: 2 },
        { id: 'off_share', head: 'error', numeric: true, drop: 1 },
      ],
      rows: [
        ...components.map(({ component, bytes, gb, confidence, basis, estimate_bytes: estimate }): Row => ({
          cells: [
            componentLabels[component],
            { n: gb, unit: 'GB', digits: 4 },
            total ? { n: bytes / total, unit: 'ratio' } : { missing: 'the total was not measured' },
            confidence,
            ...(component === 'residual'
              ? ['', '']
              : [estimateText(estimate), errorText(estimate, bytes, basis)]),
          ],
        })),
        {
          cells: [
            { text: 'measured', tone: 'strong' },
            memory(total_measured_gb, reasonOf(profile, 'memory_breakdown.total_measured_gb')),
            '',
            '',
            '',
            '',
          ],
        },
      ],
    },
    { type: 'heading', level: 2, text: 'Evidence' },
    {
      type: 'facts',
      level: 2,
      items: components.map(({ component, evidence }) => ({
        name: componentLabels[component],
        text: evidence.join('; '),
      })),
    },
    {
      type: 'notes',
      level: 2,
      items: [
        `Overall confidence: ${confidence_levels.overall}. It is high while the residual is at most 2 % of the total, medium to 10 %.`,
        ...reasonsBelow(profile, 'memory_breakdown'),
      ],
    },
  ]);
}

const noEstimate = { missing: 'no estimate' } as const;

const estimateText = (estimate: number | null): Text =>
  estimate === null ? noEstimate : { n: estimate / 1e9, unit: 'GB', digits: 4 };

function errorText(
  estimate: number | null,
  bytes: number,
  basis: MemoryProfile['memory_breakdown']['components'][number]['basis'],
): Text {
  if (estimate === null) return noEstimate;
  // Computed as the estimate, not measured.
  if (basis === 'formula') return 'by formula';
  if (bytes === 0) return { missing: 'none of it was measured' };
  return { n: (estimate - bytes) / bytes, unit: 'ratio', signed: true };
}

const pointNames = ['baseline', 'post_warmup', 'peak'] as const;
const increases = ['warmup_increase', 'growth', 'memory_increase'] as const;

function pointSection(profile: MemoryProfile): Section {
  const { memory_measurements: measured, metadata } = profile;
  const numeric = (id: string, head: string, drop?: number): Column => ({
    id,
    head,
    numeric: true,
    ...(drop === undefined ? {} : { drop }),
  });
  const several = metadata.gpus.length > 1;
  const row = (name: (typeof pointNames)[number]): Row => {
    const point: MemoryPoint = measured[name];
    const why = reasonOf(profile, `memory_measurements.${name}.total_gb`);
    return {
      cells: [
        pointLabels[name],
        memory(point.total_gb, why),
        ...(several ? [point.max_gb, point.mean_gb, point.stddev_gb].map((gb) => memory(gb, why)) : []),
        point.t_s === null ? { missing: why } : { n: point.t_s, unit: 's' },
        point.source ?? { missing: why },
      ],
    };
  };
  return {
    id: 'points',
    title: 'Points',
    blocks: [
      {
        type: 'table',
        title: several ? 'Sum over the GPUs of the run, and balance between them' : 'In use',
        reasons: true,
        columns: [
          { id: 'point', head: '' },
          numeric('total_gb', several ? 'sum' : 'memory'),
          ...(several
            ? [numeric('max_gb', 'max', 3), numeric('mean_gb', 'mean', 2), numeric('stddev_gb', 'sd', 1)]
            : []),
          numeric('t_s', 'at'),
          { id: 'source', head: 'measured by', wraps: true, lines: true },
        ],
        rows: pointNames.map(row),
      },
      {
        type: 'table',
        level: 2,
        title: `Increases${ofAllProcesses(profile)}`,
        columns: [{ id: 'increase', head: 'increase' }, numeric('memory_gb', 'memory')],
        rows: increases.map((name) => ({
          cells: [
            pointLabels[name],
            memory(measured[`${name}_gb`], reasonOf(profile, `memory_measurements.${name}_gb`)),
          ],
        })),
      },
    ],
  };
}

function gpuSection(profile: MemoryProfile): Section[] {
  const { memory_measurements: measured } = profile;
  const gpus = measured.peak.per_gpu_details;
  const usedAt = (point: MemoryPoint, gpu: number) =>
    point.per_gpu_details.find((detail) => detail.gpu === gpu)?.used_gb ?? null;
  if (gpus.length === 0) return [];
  return [
    {
      id: 'gpus',
      title: 'GPUs',
      level: 2,
      blocks: [
        {
          type: 'table',
          title: 'In use on each GPU',
          reasons: true,
          columns: [
            { id: 'gpu', head: 'GPU' },
            ...pointNames.map((id) => ({ id: `${id}_gb`, head: pointLabels[id], numeric: true })),
            { id: 'total_gb', head: 'capacity', numeric: true },
            { id: 'used_share', head: 'used', numeric: true },
          ],
          rows: gpus.map(({ gpu, name, used_bytes: used, total_bytes: total, total_gb }) => ({
            cells: [
              name === null ? `GPU ${gpu}` : `GPU ${gpu} · ${name}`,
              ...pointNames.map((id) =>
                memory(usedAt(measured[id], gpu), reasonOf(profile, `memory_measurements.${id}.total_gb`)),
              ),
              memory(total_gb, 'GPU size unknown'),
              used === null || !total ? { missing: 'GPU size unknown' } : { n: used / total, unit: 'ratio' },
            ],
          })),
        },
      ],
    },
  ];
}
