import type { Document } from '../../model/document.js';
import type { MemoryPoint, MemoryProfile } from '../../model/documents/memory-profile.js';
import type { MemoryResult } from '../../model/documents/memory-result.js';
import { formatMs, formatNumber, nbsp, noValue } from '../format.js';
import { memorySentences, withOthers } from '../memory-sentences.js';
import { componentLabels } from '../../vocabulary/memory-components.js';
import { engineWords, gbText } from '../memory-words.js';
import { collapsed } from '../notices.js';
import { colour } from './colour.js';
import { type Explanation, explanationLines } from './explanation.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, textBar, textWidth, withPlainSpaces } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });

/** What `inferscope memory` prints at its end: sentences, where the memory went, findings; then points, what it rests on, latency. */
export function memorySummary(
  document: Document<MemoryResult>,
  columns: number,
  explanation?: Explanation,
): string {
  const width = readingWidth(columns);
  const { session, profile, fragmentation } = document.data;
  const lines = [
    ...hanging('', `inferscope ${document.tool_version} · ${inert(session.title)}`, width),
    ...hanging('  ', modelWords(profile), width),
    '',
    ...memorySentences(document.data).flatMap((text) => hanging('  ', text, width)),
    '',
    breakdownTable(profile, width),
    ...explanationLines([explanation?.findings]),
    '',
    pointTable(profile, width),
    ...hanging('  ', increaseWords(profile), width),
    '',
  ];
  for (const { component, evidence } of profile.memory_breakdown.components)
    lines.push(...hanging(`  ${componentLabels[component]}: `, inert(evidence.join('; ')), width));
  for (const { gpu, unused_share } of fragmentation) {
    const share = `${formatNumber(100 * unused_share, 2)} %`;
    lines.push(...hanging('  ', `gpu${gpu}: ${share} of what torch reserved was never given out`, width));
  }
  lines.push('', ...hanging('  latency: ', latencyWords(profile), width));
  const said = collapsed(document.issues).flatMap(({ severity, text }) =>
    severity === 'info'
      ? []
      : hanging(
          severity === 'error' ? `  ${colour.red('error:')} ` : `  ${colour.yellow('warning:')} `,
          inert(text),
          width,
        ),
  );
  if (said.length > 0) lines.push('', ...said);
  lines.push('', `  Session ${session.id}`);
  return withPlainSpaces(lines.join('\n'));
}

function modelWords(profile: MemoryProfile): string {
  const { model_info, metadata } = profile;
  const { num_parameters, num_layers, num_heads, num_kv_heads, head_dim, dtypes } = model_info;
  const parts = [
    num_parameters === null ? null : `${parameterText(num_parameters)} parameters`,
    num_layers === null ? null : `${num_layers} layers`,
    num_heads === null ? null : `${num_heads} heads (${num_kv_heads ?? '?'} KV) × ${head_dim ?? '?'}`,
    `weights ${dtypes.weights ?? '?'}, cache ${dtypes.kv_cache ?? '?'}`,
    model_info.quantization,
    model_info.tensor_parallel_size > 1 ? `tensor parallel ${model_info.tensor_parallel_size}` : null,
    engineWords(profile),
    metadata.gpus[0]?.name ?? null,
  ];
  return inert(parts.filter((part) => part !== null).join(' · '));
}

function pointTable({ memory_measurements, metadata }: MemoryProfile, width: number): string {
  const several = metadata.gpus.length > 1;
  const spread = several ? ['max', 'mean', 'sd'].map(right) : [];
  const row = (label: string, point: MemoryPoint) => [
    label,
    gbText(point.total_gb),
    ...(several ? [gbText(point.max_gb), gbText(point.mean_gb), gbText(point.stddev_gb)] : []),
    point.t_s === null ? noValue : `${formatNumber(point.t_s)}${nbsp}s`,
    point.source ?? 'not reached',
  ];
  const { baseline, post_warmup, peak } = memory_measurements;
  const columns = [
    { head: '' },
    right('sum'),
    ...spread,
    right('at'),
    { head: 'measured by', flexible: true },
  ];
  const rows = [row('baseline', baseline), row('after warm-up', post_warmup), row('peak', peak)];
  const table = textTable(columns, rows, { width });
  if (!several) return table;
  const gpus = peak.per_gpu_details.map(({ gpu, used_gb }, at) => [
    `gpu${gpu}`,
    gbText(baseline.per_gpu_details[at]?.used_gb ?? null),
    gbText(post_warmup.per_gpu_details[at]?.used_gb ?? null),
    gbText(used_gb),
  ]);
  const heads = [{ head: '' }, right('baseline'), right('after warm-up'), right('peak')];
  return `${table}\n\n${textTable(heads, gpus, { width })}`;
}

function increaseWords(profile: MemoryProfile): string {
  const { warmup_increase_gb, growth_gb, memory_increase_gb } = profile.memory_measurements;
  return `${gbText(warmup_increase_gb)} came up to warm-up, ${gbText(growth_gb)} after it: ${gbText(memory_increase_gb)} in all${withOthers(profile)}`;
}

function breakdownTable({ memory_breakdown }: MemoryProfile, width: number): string {
  const { components, total_measured_gb } = memory_breakdown;
  const total = memory_breakdown.total_measured_bytes ?? 0;
  const rows = components.map((one) => [
    componentLabels[one.component],
    gbText(one.gb),
    total > 0 ? `${((100 * one.bytes) / total).toFixed(1).replace('-', '−')}${nbsp}%` : noValue,
    one.component === 'residual' ? '' : one.confidence,
    gbText(one.estimate_bytes === null ? null : one.estimate_bytes / 1e9),
  ]);
  rows.push(['measured', gbText(total_measured_gb), '', memory_breakdown.confidence_levels.overall, '']);
  const columns = [
    { head: 'where it went' },
    right(''),
    right('share'),
    { head: 'confidence' },
    right('calculator'),
  ];
  // Bars take what room there is.
  const taken = Math.max(...textTable(columns, rows, { width }).split('\n').map(textWidth));
  const room = Math.max(4, Math.min(16, width - taken - 2));
  const bars = [...components.map(({ bytes }) => textBar(bytes, total, room)), ''];
  return textTable(
    [...columns, { head: '' }],
    rows.map((cells, index) => [...cells, bars[index]!]),
    { width },
  );
}

function latencyWords({ latency_stats, missing }: MemoryProfile): string {
  const { mean_latency_ms, tokens_per_second, mean_ttft_ms, mean_tpot_ms, runs } = latency_stats;
  if (mean_latency_ms === null) return missing['latency_stats'] ?? 'not measured';
  const parts = [
    `${formatMs(mean_latency_ms)} end to end`,
    tokens_per_second === null ? null : `${formatNumber(tokens_per_second)} tok/s`,
    mean_ttft_ms === null ? null : `TTFT ${formatMs(mean_ttft_ms)}`,
    mean_tpot_ms === null ? null : `TPOT ${formatMs(mean_tpot_ms)}`,
    `mean of ${runs}`,
  ];
  return parts.filter((part) => part !== null).join(' · ');
}

/** 8.03 B, 24.2 M. */
const parameterText = (count: number): string =>
  count >= 1e9 ? `${formatNumber(count / 1e9)} B` : `${formatNumber(count / 1e6)} M`;
