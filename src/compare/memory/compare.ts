import { document, type Document, type Issue } from '../../model/document.js';
import {
  memoryCompareVersion,
  type MemoryChange,
  type MemoryCompareResult,
  type MemorySide,
} from '../../model/documents/memory-compare.js';
import { InferscopeError } from '../../model/errors.js';
import { memoryComponents } from '../../model/memory-components.js';
import { bytesOf } from '../../facts/validate/profile-fields.js';
import { configurationOf } from './configuration.js';
import type { ComparedProfile, ReadProfile } from './read-profile.js';
import { formatPercent, formatQuantity, formatSigned, plural } from '../../vocabulary/format.js';
import { issuesAt } from '../../vocabulary/sentence-template.js';
import { componentLabels } from '../../vocabulary/memory-components.js';

export interface ComparedSide extends ReadProfile {
  selector: string;
  kind: 'session' | 'file';
  label: string;
}

type Pair<T> = readonly [base: T, now: T];

/**
 * Compares the second profile with the first: points, components, GPUs, latency, and other differences.
 * @throws E_USAGE for a profile against itself
 */
export function compareMemory(base: ComparedSide, now: ComparedSide): Document<MemoryCompareResult> {
  refuseSame([base, now]);
  const pair: Pair<ComparedProfile> = [base.profile, now.profile];
  const points = pointsOf(pair);
  const components = componentsOf(pair);
  const data: MemoryCompareResult = {
    base: sideOf(base),
    now: sideOf(now),
    headlines: headlinesOf(points, components),
    points,
    components,
    gpus: gpusOf(pair),
    latency: latencyOf(pair),
    differences: differencesOf(pair),
  };
  return document(
    'memory-compare',
    memoryCompareVersion,
    data,
    issuesAt([...issuesOf(base), ...issuesOf(now)]),
  );
}

function refuseSame([base, now]: Pair<ComparedSide>): void {
  const id = base.profile.metadata?.['session_id'];
  const isSameProfile =
    base.selector === now.selector || (typeof id === 'string' && id === now.profile.metadata?.['session_id']);
  if (!isSameProfile) return;
  throw new InferscopeError('E_USAGE', {
    what: `${base.selector} and ${now.selector} are the same profile`,
    why: 'Both are the same run.',
    fix: 'inferscope memory compare @last~1 @last',
  });
}

function sideOf({ selector, kind, label, profile, absent }: ComparedSide): MemorySide {
  const { status, timestamp } = profile.metadata ?? {};
  const { engine_type: engine, engine_version: version } = profile.engine_metadata ?? {};
  return {
    selector,
    kind,
    label,
    model: profile.model_info.name,
    engine: engine ? [engine, version].filter(Boolean).join(' ') : null,
    status: status === 'measured' || status === 'partial' ? status : 'unknown',
    timestamp: timestamp ?? null,
    absent,
  };
}

/** GB from bytes if present, because the _gb fields of other tools may be rounded. */
const gbOf = (bytes: number | null | undefined, gb: number | null | undefined): number | null => {
  const exactBytes = bytesOf(bytes, gb);
  return exactBytes === null ? null : exactBytes / 1e9;
};

function change(name: string, [base, now]: Pair<number | null>): MemoryChange {
  const missing =
    base === null && now === null
      ? 'neither profile has it'
      : base === null
        ? 'the first profile does not have it'
        : now === null
          ? 'the second profile does not have it'
          : null;
  const difference = base === null || now === null ? null : now - base;
  return {
    name,
    base_gb: base,
    now_gb: now,
    change_gb: difference,
    change_share: difference === null || !base ? null : difference / Math.abs(base),
    missing,
  };
}

function pointsOf(pair: Pair<ComparedProfile>): MemoryChange[] {
  const totals = (name: 'baseline' | 'post_warmup' | 'peak') =>
    change(
      name,
      both(pair, ({ memory_measurements: m }) => gbOf(m[name]?.total_bytes, m[name]?.total_gb)),
    );
  const [baseline, warm, peak] = [totals('baseline'), totals('post_warmup'), totals('peak')];
  const between = (
    name: 'memory_increase_gb' | 'warmup_increase_gb' | 'growth_gb',
    to: MemoryChange,
    from: MemoryChange,
  ) =>
    change(
      name.replace(/_gb$/, ''),
      both(pair, ({ memory_measurements: m }, side) => {
        const [a, b] = [side === 0 ? to.base_gb : to.now_gb, side === 0 ? from.base_gb : from.now_gb];
        return m[name] ?? (a === null || b === null ? null : a - b);
      }),
    );
  return [
    baseline,
    warm,
    peak,
    between('memory_increase_gb', peak, baseline),
    between('warmup_increase_gb', warm, baseline),
    between('growth_gb', peak, warm),
  ].filter(({ base_gb, now_gb }) => base_gb !== null || now_gb !== null);
}

const both = <T>(
  pair: Pair<ComparedProfile>,
  valueOf: (profile: ComparedProfile, side: 0 | 1) => T,
): Pair<T> => [valueOf(pair[0], 0), valueOf(pair[1], 1)];

interface Component {
  gb: number;
  confidence: MemoryCompareResult['components'][number]['base_confidence'];
}

/** In schema order, then the residual and names of other tools. */
const order: readonly string[] = memoryComponents.filter((name) => name !== 'residual');

function partsOf({ memory_breakdown: breakdown }: ComparedProfile): Map<string, Component> {
  const parts = new Map<string, Component>();
  if (!breakdown) return parts;
  const listed = breakdown.components ?? [];
  for (const { component, bytes, confidence } of listed)
    parts.set(component, { gb: bytes / 1e9, confidence: confidence ?? null });
  if (listed.length === 0) {
    const levels = breakdown.confidence_levels ?? {};
    for (const name of ['model_weights', 'kv_cache', 'activations', 'framework_overhead'] as const) {
      const gb = breakdown[`${name}_gb`];
      const level = levels[name === 'model_weights' ? 'weights' : name];
      if (gb !== null && gb !== undefined)
        parts.set(name, { gb, confidence: isConfidence(level) ? level : null });
    }
  }
  const residual = gbOf(breakdown.residual_bytes, breakdown.residual_gb);
  if (residual !== null && !parts.has('residual')) parts.set('residual', { gb: residual, confidence: 'low' });
  const total = gbOf(breakdown.total_measured_bytes, breakdown.total_measured_gb);
  if (total !== null) parts.set('total', { gb: total, confidence: null });
  return parts;
}

const isConfidence = (text: string | undefined): text is NonNullable<Component['confidence']> =>
  text === 'high' || text === 'medium' || text === 'low' || text === 'unknown';

function componentsOf(pair: Pair<ComparedProfile>): MemoryCompareResult['components'] {
  const [base, now] = both(pair, partsOf);
  const names = [...new Set([...base.keys(), ...now.keys()])];
  const rank = (name: string) =>
    name === 'total' ? 99 : name === 'residual' ? 98 : order.includes(name) ? order.indexOf(name) : 97;
  const total = (now.get('total')?.gb ?? Number.NaN) - (base.get('total')?.gb ?? Number.NaN);
  return names
    .toSorted((a, b) => rank(a) - rank(b))
    .map((name) => {
      const row = change(name, [base.get(name)?.gb ?? null, now.get(name)?.gb ?? null]);
      const hasShare = row.change_gb !== null && Number.isFinite(total) && total !== 0;
      return {
        ...row,
        base_confidence: base.get(name)?.confidence ?? null,
        now_confidence: now.get(name)?.confidence ?? null,
        share_of_change: hasShare ? row.change_gb! / total : null,
      };
    });
}

function gpusOf(pair: Pair<ComparedProfile>): MemoryCompareResult['gpus'] {
  const [base, now] = both(pair, ({ memory_measurements: { peak } }) => {
    const details = peak.per_gpu_details ?? [];
    return new Map(
      details.map((gpu, index) => {
        const gpuIndex = gpu['gpu'];
        return [typeof gpuIndex === 'number' ? gpuIndex : index, gbOf(gpu.used_bytes, gpu.used_gb)] as const;
      }),
    );
  });
  const gpus = [...new Set([...base.keys(), ...now.keys()])].toSorted((a, b) => a - b);
  return gpus.map((gpu) => ({ gpu, ...change(`GPU ${gpu}`, [base.get(gpu) ?? null, now.get(gpu) ?? null]) }));
}

const latencies = [
  ['mean_latency_ms', 'ms'],
  ['mean_ttft_ms', 'ms'],
  ['mean_tpot_ms', 'ms'],
  ['tokens_per_second', 'tok/s'],
] as const;

function latencyOf(pair: Pair<ComparedProfile>): MemoryCompareResult['latency'] {
  return latencies.flatMap(([name, unit]) => {
    const [base, now] = both(pair, (profile) => profile.latency_stats?.[name] ?? null);
    if (base === null && now === null) return [];
    const share = base === null || now === null || base === 0 ? null : (now - base) / base;
    return [{ name: name.replace(/_ms$/, ''), unit, base, now, change_share: share }];
  });
}

function differencesOf(pair: Pair<ComparedProfile>): MemoryCompareResult['differences'] {
  const [base, now] = both(pair, configurationOf);
  const labels = [...new Set([...base.keys(), ...now.keys()])];
  return labels
    .map((label) => ({ label, base: base.get(label) ?? null, now: now.get(label) ?? null }))
    .filter((row) => row.base !== row.now);
}

/** Smallest change that a sampler distinguishes from 0. */
const minGb = 0.0005;

const labelOf = (name: string): string => (componentLabels as Record<string, string>)[name] ?? name;

/** "The peak is 4.00 GB (25 %) higher: 16.00 GB → 20.00 GB." */
function changeWords(
  what: string,
  { base_gb: base, now_gb: now, change_gb, change_share }: MemoryChange,
): string {
  const gb = (n: number | null) => formatQuantity(n!, 'GB', 4);
  const size = Math.abs(change_gb!);
  if (size < minGb) return `${what} is the same: ${gb(now)}.`;
  const share = change_share === null ? '' : ` (${formatPercent(Math.abs(change_share))})`;
  return `${what} is ${formatQuantity(size, 'GB')}${share} ${change_gb! > 0 ? 'higher' : 'lower'}: ${gb(base)} → ${gb(now)}.`;
}

function headlinesOf(
  points: readonly MemoryChange[],
  components: MemoryCompareResult['components'],
): string[] {
  const peak = points.find(({ name }) => name === 'peak');
  if (!peak || peak.change_gb === null) return ['The peaks cannot be compared: one of them is missing.'];
  const total = components.find(({ name }) => name === 'total');
  const hasMoreInUse =
    total !== undefined && total.change_gb !== null && Math.abs(total.change_gb - peak.change_gb) >= minGb;
  const first = hasMoreInUse
    ? `${changeWords('The memory of the run', total)} ${changeWords('All memory in use at the peak', peak)}`
    : changeWords('The peak', peak);
  const causes = components
    .filter(({ name, change_gb }) => name !== 'total' && change_gb !== null && Math.abs(change_gb) >= minGb)
    .toSorted((a, b) => Math.abs(b.change_gb!) - Math.abs(a.change_gb!))
    .slice(0, 3)
    .map(({ name, change_gb }) => `${labelOf(name)} ${formatSigned(change_gb!, 'GB')}`);
  return causes.length === 0 ? [first] : [first, `Largest changes: ${causes.join(', ')}.`];
}

/** Facts that limit trust in the comparison. */
function issuesOf({ label, profile, absent }: ComparedSide): { issue: Issue; scope: string | null }[] {
  const issues: { issue: Issue; scope: string | null }[] = [];
  const add = (issue: Issue, scope: string | null = null) => issues.push({ issue, scope });
  const isReported = profile.metadata?.issues?.some(({ code }) => code === 'ended_early') ?? false;
  if (profile.metadata?.status === 'partial' && !isReported)
    add({
      code: 'partial_profile',
      severity: 'warning',
      text: `${label} is of a run that stopped early: later points are missing.`,
    });
  if (!profile.units)
    add({
      code: 'units_unknown',
      severity: 'warning',
      text: `${label} does not say what its GB are; 10^9 bytes were assumed. If they are 2^30, its figures are 6.9 % too low here.`,
    });
  if (absent.length > 0) {
    const names = absent.slice(0, 6).join(', ');
    add({
      code: 'fields_missing',
      severity: 'info',
      text: `${label} lacks ${plural(absent.length, 'field')} of schema 2.0: ${names}${absent.length > 6 ? ', …' : ''}.`,
    });
  }
  for (const { code, text } of profile.metadata?.issues ?? [])
    add({ code, severity: 'warning', text }, label);
  return issues;
}
