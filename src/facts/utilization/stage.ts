import { kvCacheBytes } from '../../llm/kv-cache.js';
import { weightBytes } from '../../llm/storage.js';
import { boundOf, computeSeconds, mbu, mfuOfWork } from '../../llm/utilization.js';
import type { Work } from '../../llm/work-totals.js';
import type { UtilizationStage } from '../../model/documents/utilization.js';
import type { DType } from '../../model/dtype.js';
import { figure, mapFigure, missing, type Figure } from '../../model/figure.js';
import type { WorkloadModel } from '../model-work.js';
import { neededPeaks, type UtilizationRoofs } from './roofs.js';

/** Work of a mean step. */
type StageWork = Pick<Work, 'flops' | 'flops_by_dtype' | 'bytes_total'>;

type Shares = Pick<
  UtilizationStage,
  'peak_flops_per_s' | 'peak_bandwidth_bytes_per_s' | 'mfu' | 'mbu' | 'bound' | 'roof_ms' | 'roof_share'
>;

/** Weights and KV cache: bytes that every stage reads again. They decide which cache level of a CPU counts. */
export function workingSetBytes(
  { architecture, storage }: WorkloadModel,
  batchSize: number,
  contextTokens: number,
): number {
  const kv = kvCacheBytes(architecture, { kvCache: storage.kvCache, batchSize, contextTokens });
  return weightBytes(architecture, storage).total + kv;
}

/**
 * MFU, MBU, bound and share of the measured roof of work that took `time` (ms, with its interval). A value over 1 is
 * impossible; it is kept and shown as invalid.
 */
export function stageShares(
  work: StageWork,
  time: Figure,
  workingSet: number,
  roofs: UtilizationRoofs,
): Shares {
  const dtypes = Object.keys(work.flops_by_dtype) as DType[];
  const peaks = neededPeaks(dtypes, roofs.peak);
  const bandwidth = roofs.bandwidth(workingSet);
  const limit = 'reason' in peaks ? peaks : boundOf(work, peaks, bandwidth.value);
  return {
    peak_flops_per_s: 'reason' in peaks ? peaks : joinedPeak(work, roofs),
    peak_bandwidth_bytes_per_s: bandwidth,
    mfu:
      'reason' in peaks
        ? peaks
        : overTime(mfuOfWork(work as Work, 1, peaks), time, roofs.peak(dtypes[0] ?? 'float32')),
    mbu:
      bandwidth.value === null
        ? bandwidth
        : overTime(mbu(work.bytes_total, 1, bandwidth.value), time, bandwidth),
    bound: 'reason' in limit ? null : limit.bound,
    ...measuredRoof(work, time, workingSet, roofs),
  };
}

/** Divides a figure of one second by `time`. */
function overTime(perSecond: Figure, time: Figure, peak: Figure): Figure {
  if (perSecond.value === null) return perSecond;
  const { value, source } = perSecond;
  const peakSource = peak.value === null ? '' : `; ${peak.source}`;
  return mapFigure(time, 'ratio', `${source}${peakSource}`, (ms) => value / (ms / 1e3));
}

/** FLOPs / Σ F/P: the peak of one dtype, or the joint peak of several. */
function joinedPeak(work: StageWork, roofs: UtilizationRoofs): Figure {
  const dtypes = Object.keys(work.flops_by_dtype) as DType[];
  const figures = dtypes.map((dtype) => roofs.peak(dtype));
  const absent = figures.find(({ value }) => value === null);
  if (absent) return absent;
  if (figures.length === 1) return figures[0]!;
  const peaks = neededPeaks(dtypes, roofs.peak);
  const seconds = 'reason' in peaks ? null : computeSeconds(work, peaks);
  if (typeof seconds !== 'number' || seconds === 0) return missing('no_work', 'the stage computes nothing');
  const source = figures[0]!.value === null ? '' : figures[0]!.source;
  return figure(work.flops / seconds, 'FLOP/s', `FLOPs / Σ FLOPs/peak of ${dtypes.join(' and ')}; ${source}`);
}

function measuredRoof(
  work: StageWork,
  time: Figure,
  workingSet: number,
  roofs: UtilizationRoofs,
): Pick<Shares, 'roof_ms' | 'roof_share'> {
  const dtypes = Object.keys(work.flops_by_dtype) as DType[];
  const peaks = neededPeaks(dtypes, roofs.measuredPeak);
  if ('reason' in peaks) return { roof_ms: peaks, roof_share: peaks };
  const bandwidth = roofs.measuredBandwidth(workingSet);
  const limit = bandwidth.value === null ? bandwidth : boundOf(work, peaks, bandwidth.value);
  if ('value' in limit) return { roof_ms: limit, roof_share: limit };
  const ms = limit.roofline_s * 1e3;
  const bandwidthSource = bandwidth.value === null ? '' : bandwidth.source;
  return {
    roof_ms: figure(ms, 'ms', `max(FLOPs / measured peak, bytes / measured bandwidth); ${bandwidthSource}`),
    roof_share: mapFigure(time, 'ratio', 'roof_ms / time', (measured) => ms / measured),
  };
}
