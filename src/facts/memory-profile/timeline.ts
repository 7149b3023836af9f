import type { AllocatorMoment, MemoryResult, MemorySeries } from '../../model/documents/memory-result.js';
import type { MemoryPoints } from './points.js';
import {
  isAfterFailure,
  maxRecorded,
  tensorBytes,
  recordedRows,
  type MemoryRows,
  type Sample,
  type RecordedRow,
} from './rows.js';

/** Maximum points of a series. */
const maxPoints = 2000;

export function timelineOf(
  rows: MemoryRows,
  points: MemoryPoints,
  gpus: readonly number[],
): MemoryResult['timeline'] {
  const series: MemorySeries[] = [];
  for (const gpu of gpus) {
    const used = rows.used.get(gpu);
    if (used)
      series.push({
        label: `GPU ${gpu}`,
        gpu,
        kind: 'used',
        source: rows.usedSource ?? 'GPU driver',
        points: thin(used),
      });
    for (const { gpu: processGpu, pid, samples } of rows.processes)
      if (processGpu === gpu)
        series.push({
          label: `GPU ${gpu} · pid ${pid}`,
          gpu,
          kind: 'process',
          source: 'GPU driver, by process',
          points: thin(samples),
        });
  }
  if (rows.rss.length > 0)
    series.push({
      label: 'host',
      gpu: null,
      kind: 'rss',
      source: "/proc/<pid>/status VmRSS of the engine's processes",
      points: thin(rows.rss),
    });
  return {
    series,
    marks: (['baseline', 'post_warmup', 'peak'] as const).flatMap((point) => {
      const { t_s, total_bytes } = points[point];
      return t_s === null || total_bytes === null ? [] : [{ point, t_s, bytes: total_bytes }];
    }),
    phases: rows.phases.map(({ label, start_ns, end_ns }) => ({
      label,
      start_s: start_ns / 1e9,
      end_s: end_ns / 1e9,
    })),
  };
}

/** Keeps the highest value of each bin, so that the chart shows the peak. */
function thin(samples: readonly Sample[]): { t_s: number; bytes: number }[] {
  const step = Math.ceil(samples.length / maxPoints);
  const highestOfBins: Sample[] = [];
  for (let start = 0; start < samples.length; start += step)
    highestOfBins.push(
      samples
        .slice(start, start + step)
        .reduce((highest, sample) => (sample.bytes > highest.bytes ? sample : highest)),
    );
  return highestOfBins.map(({ t_ns, bytes }) => ({ t_s: t_ns / 1e9, bytes }));
}

const momentStages = new Set(['load', 'prefill', 'decode', 'post_warmup', 'end', 'failed']);

/** Allocator state after each stage; the maximum of repeated stages. */
export function allocatorMoments(rows: MemoryRows): AllocatorMoment[] {
  const lastRows = new Map<string, RecordedRow>();
  for (const row of rows.recorded) {
    if (!['allocated', 'rss'].includes(row.what) || !momentStages.has(row.stage ?? '')) continue;
    if (row.stage === 'post_warmup' && isAfterFailure(rows, row.t_ns)) continue;
    lastRows.set(`${row.device} ${row.rank} ${row.stage}`, row);
  }
  return [...lastRows.values()].map(({ device, rank, stage, t_ns }): AllocatorMoment => {
    const rankRows = rows.recorded.filter((row) => row.rank === rank);
    const bytesOf = (what: string) => maxRecorded(rankRows, { what, stage: stage!, device });
    const weights = tensorBytes(rankRows, { what: 'weights', device });
    const kv = tensorBytes(rankRows, { what: 'kv_cache', stage: stage!, device });
    const allocated = bytesOf('allocated');
    const peakBytes = bytesOf('max_allocated');
    const allocatedBytes = peakBytes ?? allocated;
    return {
      gpu: device,
      rank,
      stage: stage!,
      t_s: t_ns / 1e9,
      allocated_bytes: allocated,
      reserved_bytes: bytesOf('reserved'),
      max_allocated_bytes: peakBytes,
      weights_bytes: weights,
      kv_cache_bytes: kv,
      other_bytes: allocatedBytes === null ? null : allocatedBytes - (weights ?? 0) - (kv ?? 0),
    };
  });
}

export function fragmentationOf(rows: MemoryRows): MemoryResult['fragmentation'] {
  const gpus = new Set(
    recordedRows(rows.recorded, { what: 'reserved' }).flatMap(({ device }) => device ?? []),
  );
  return [...gpus].flatMap((gpu) => {
    const reserved = maxRecorded(rows.recorded, { what: 'max_reserved', device: gpu });
    const allocated = maxRecorded(rows.recorded, { what: 'max_allocated', device: gpu });
    if (!reserved || allocated === null) return [];
    return [
      {
        gpu,
        reserved_bytes: reserved,
        max_allocated_bytes: allocated,
        unused_share: (reserved - allocated) / reserved,
        inactive_split_bytes: maxRecorded(rows.recorded, {
          what: 'inactive_split',
          stage: 'end',
          device: gpu,
        }),
      },
    ];
  });
}

export function allocationsOf(rows: MemoryRows): MemoryResult['allocations'] {
  const allocations = recordedRows(rows.recorded, { what: 'allocation' });
  if (allocations.length === 0) return null;
  return allocations
    .map(({ device, stage, detail, bytes, blocks }) => ({
      gpu: device ?? 0,
      stage: stage ?? 'unknown',
      operator: detail ?? 'unknown place',
      bytes,
      blocks,
    }))
    .sort((a, b) => b.bytes - a.bytes);
}
