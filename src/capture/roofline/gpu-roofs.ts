import {
  gpuHostLink,
  gpuPeakBandwidth,
  gpuPeakFlops,
  gpuPeerLink,
  gpuSheet,
  sheetCitation,
} from '../../hardware/gpu-peaks.js';
import { migInstance } from '../../hardware/mig.js';
import { busFactor } from '../../model/collectives.js';
import {
  bandwidthPatterns,
  type Collectives,
  type GpuBandwidth,
  type GpuComputePeak,
  type HostLink,
  type MeasuredGpu,
} from '../../model/documents/gpu-roofline.js';
import { type Figure, figure } from '../../model/figure.js';
import type { MicrobenchmarkLine } from '../../model/record.js';
import { standardDeviation } from '../../model/statistics.js';
import type { Conditions } from './conditions.js';
import type { PlannedDevice } from './gpu-plan.js';
import { fastestLine, medianNs, rateOf } from './microbenchmark-lines.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** Facts from driver and framework about the GPU, in addition to its plan. */
interface GpuFacts extends PlannedDevice {
  index: number;
  l2Bytes: number | null;
  powerLimitW: number | null;
  /** vendor:device */
  pciId: string | null;
}

type GpuName = Pick<GpuFacts, 'name' | 'pciId'>;

export type ConditionsOf = (line: MicrobenchmarkLine) => Conditions;

function measurement(line: MicrobenchmarkLine, conditions: ConditionsOf) {
  const median = medianNs(line)!;
  const { samples_ns: samples } = line;
  return {
    case: line.case,
    method: line.method,
    runs: samples.length,
    median_ns: median,
    sd_share: samples.length > 1 ? standardDeviation(samples) / median : 0,
    ...conditions(line),
  };
}

function shareOf(value: number, sheet: Figure): Figure {
  return sheet.value === null ? sheet : figure(value / sheet.value, 'ratio', `measured / ${sheet.source}`);
}

/** Rooflines of one GPU from its measured cases; missing ones were not measured. Rates are those of the median run. */
export function gpuRoofsOf(
  facts: GpuFacts,
  scope: MeasuredGpu['scope'],
  lines: readonly MicrobenchmarkLine[],
  conditions: ConditionsOf,
): MeasuredGpu {
  const sheet = gpuSheet(facts.name, facts.pciId);
  const linesOf = (kernel: string) => lines.filter((line) => line.kernel === kernel);
  const bandwidth = bandwidths(facts, linesOf, conditions);
  const memory = bandwidth.filter(({ pattern }) => pattern !== 'write').map((result) => result.bytes_per_s);
  const memoryRoof = memory.length > 0 ? Math.max(...memory) : null;
  const l2Bytes = facts.l2Bytes ?? sheet?.l2Bytes ?? null;
  const smCount = facts.smCount ?? sheet?.smCount ?? null;
  const l2 = fastestLine(l2Reads(linesOf('l2-read'), l2Bytes, smCount));
  const latency = (kernel: string, backend: string | null = null) => {
    const line = linesOf(kernel).find(
      (one) => medianNs(one) !== null && (backend === null || one.backend === backend),
    );
    return line ? { ...measurement(line, conditions), ns: medianNs(line)! } : null;
  };
  return {
    index: facts.index,
    name: facts.name,
    pci_id: facts.pciId,
    compute_capability: facts.computeCapability,
    sm_count: smCount,
    l2_bytes: l2Bytes,
    memory_bytes: facts.memoryBytes,
    power_limit_w: facts.powerLimitW,
    mig_profile: migInstance(facts.name)?.profile ?? null,
    sheet: sheet && [sheetCitation(sheet), sheet.note].filter(Boolean).join('. '),
    scope,
    compute: computePeaks(facts, linesOf('gemm'), memoryRoof, conditions),
    bandwidth,
    memory_bytes_per_s: memoryRoof,
    l2: l2 && {
      ...measurement(l2, conditions),
      bytes_per_s: rateOf(l2)!,
      array_bytes: l2.params['bytes']!,
    },
    launch: latency('launch', 'host'),
    launch_device: latency('launch', 'device'),
    launch_round_trip: latency('launch', 'round-trip'),
    graph_node: latency('graph-node'),
    host_links: hostLinks(facts, linesOf, conditions),
    tried: linesOf('gemm').map((line) => ({
      dtype: line.dtype,
      m: line.params['m']!,
      n: line.params['n']!,
      k: line.params['k']!,
      flops_per_s: rateOf(line),
      outcome: line.outcome,
    })),
  };
}

/** The largest L1 per SM to date (Hopper, Blackwell). */
const l1BytesPerSm = 256 * 2 ** 10;

/**
 * An array that fits the combined L1s of all SMs is partly read from them: an H200 reads 24 MiB at 12 TB/s, 32 MiB at 8.8. Uses larger
 * arrays that still fit the L2 if there are any, else all that fit it.
 */
function l2Reads(
  lines: readonly MicrobenchmarkLine[],
  l2Bytes: number | null,
  smCount: number | null,
): readonly MicrobenchmarkLine[] {
  const size = (line: MicrobenchmarkLine) => line.params['bytes']!;
  const inL2 = lines.filter((line) => l2Bytes === null || size(line) <= 0.85 * l2Bytes);
  const largerThanL1 = inL2.filter((line) => size(line) >= (smCount ?? 0) * l1BytesPerSm);
  return largerThanL1.length > 0 ? largerThanL1 : inL2;
}

function computePeaks(
  { name, pciId }: GpuName,
  gemms: readonly MicrobenchmarkLine[],
  memory: number | null,
  conditions: ConditionsOf,
): GpuComputePeak[] {
  const dtypes = [...new Set(gemms.map((line) => line.dtype))];
  return dtypes.flatMap((dtype) => {
    const best = fastestLine(gemms.filter((line) => line.dtype === dtype));
    if (!best) return [];
    const flops = rateOf(best)!;
    const sheet = gpuPeakFlops(name, dtype as PeakDType, pciId);
    return [
      {
        ...measurement(best, conditions),
        dtype,
        flops_per_s: flops,
        m: best.params['m']!,
        n: best.params['n']!,
        k: best.params['k']!,
        sheet,
        of_sheet: shareOf(flops, sheet),
        ridge_flop_per_byte: memory === null ? null : flops / memory,
      },
    ];
  });
}

type LinesOf = (kernel: string) => MicrobenchmarkLine[];

function bandwidths({ name, pciId }: GpuName, linesOf: LinesOf, conditions: ConditionsOf): GpuBandwidth[] {
  const sheet = gpuPeakBandwidth(name, pciId);
  return bandwidthPatterns.flatMap((pattern) => {
    const best = fastestLine(linesOf(pattern));
    if (!best) return [];
    const bytes_per_s = rateOf(best)!;
    return [
      {
        ...measurement(best, conditions),
        pattern,
        bytes_per_s,
        array_bytes: best.params['bytes']!,
        sheet,
        of_sheet: shareOf(bytes_per_s, sheet),
      },
    ];
  });
}

function hostLinks({ name, pciId }: GpuName, linesOf: LinesOf, conditions: ConditionsOf): HostLink[] {
  const sheet = gpuHostLink(name, pciId);
  return (['host-to-device', 'device-to-host'] as const).flatMap((direction) =>
    [true, false].flatMap((pinned) => {
      const best = fastestLine(linesOf(direction).filter((line) => (line.params['pinned'] === 1) === pinned));
      if (!best) return [];
      const bytes_per_s = rateOf(best)!;
      const { bytes } = best;
      const of_sheet = shareOf(bytes_per_s, sheet);
      return [{ ...measurement(best, conditions), direction, pinned, bytes, bytes_per_s, sheet, of_sheet }];
    }),
  );
}

/** Algorithm and bus bandwidth of all-reduce by size, as nccl-tests define them. */
export function collectivesOf(
  name: string,
  ranks: number,
  lines: readonly MicrobenchmarkLine[],
  conditions: ConditionsOf,
): Collectives | null {
  const points = lines
    .filter((line) => line.kernel === 'all-reduce' && rateOf(line) !== null)
    .map((line) => {
      const algorithm = rateOf(line)!;
      return {
        ...measurement(line, conditions),
        bytes: line.params['bytes']!,
        algorithm_bytes_per_s: algorithm,
        bus_bytes_per_s: algorithm * busFactor(ranks),
      };
    })
    .sort((a, b) => a.bytes - b.bytes);
  if (points.length === 0) return null;
  const bus = Math.max(...points.map((point) => point.bus_bytes_per_s));
  const sheet = gpuPeerLink(name);
  return {
    operation: 'all-reduce',
    ranks,
    points,
    latency_ns: points[0]!.median_ns,
    bus_bytes_per_s: bus,
    sheet,
    of_sheet: shareOf(bus, sheet),
  };
}
