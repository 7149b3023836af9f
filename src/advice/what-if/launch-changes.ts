import { gpuHostLink } from '../../hardware/gpu-peaks.js';
import { type BarHead, isBarOf, isCopyBar, isEdgeBar } from '../../model/bars.js';
import {
  type IdleCauses,
  copyWaitMs,
  overlappedAheadMs,
  idleCauses,
  nodeGapNs,
  slowNodeGapNs,
  nodeSource,
  staticCacheShare,
  stretchesOfDispatch,
} from '../findings/idle-causes.js';
import { slowerAttention } from '../findings/graph-attention.js';
import { waitCauses, withHostParts } from '../findings/stage-facts.js';
import { type Effect, idleMsOf, type StageState, sumOf, unchanged } from './stage-state.js';
import { formatMs, plural, formatQuantity, formatNs } from '../../vocabulary/format.js';

/** Sum of bars, without the time before the first activity of the capture and after the last one, which no change of a stage removes. */
const innerBarsMs = ({ bars }: StageState, ...heads: BarHead[]): number =>
  [...bars].reduce(
    (sum, [id, ms]) => sum + (isBarOf(id, ...heads) && !isEdgeBar(id) ? Math.max(0, ms) : 0),
    0,
  );

/** Idle bars of the state by the change that would remove them, without profiler overhead. */
function causesOf(state: StageState): IdleCauses | null {
  const { facts, kernels, waterfall } = state;
  const barsMs = (...heads: BarHead[]) => innerBarsMs(state, ...heads);
  if (facts) {
    return idleCauses(
      withHostParts(facts, {
        host_ms: barsMs('host'),
        launch_overhead_ms: barsMs('launch_overhead'),
        launch_latency_ms: barsMs('launch_latency'),
        synchronization_ms: barsMs('synchronization'),
      }),
    );
  }
  if (waterfall.source !== 'bench' || kernels === null) return null;
  // A benchmark measures idle time without causes: all of it is assumed to be launching.
  const idle = idleMsOf(state);
  const floor = Math.min(idle, (kernels * nodeGapNs) / 1e6);
  const none = { synchronize: 0, read: 0, copy: 0, allocator: 0 };
  return {
    floor,
    launch: idle - floor,
    wait: none,
    host: 0,
    compile: 0,
    firstUse: 0,
  };
}

/** The part of the idle time caused by launches. */
export const launchIdleMs = (state: StageState): number => causesOf(state)?.launch ?? 0;

/** Replaces the idle bars with `remaining`. */
function withIdleBars(state: StageState, remaining: Record<string, number>): Map<string, number> {
  const bars = new Map([...state.bars].filter(([id]) => !state.idleBars.has(id)));
  for (const [id, ms] of Object.entries(remaining)) if (ms > 1e-9) bars.set(id, ms);
  return bars;
}

const attentionBar = 'inefficiency.attention';

/**
 * Removes launches and the host work between them; kernels follow each other like graph nodes. Host waits (a graph cannot contain
 * them), long host gaps outside dispatch as far as the device does not hide them, and queueing behind other streams stay.
 */
export function withCudaGraph(state: StageState): Effect {
  if (state.onCpu) return unchanged(state, 'a CPU has no kernel launches, so there is no graph to capture');
  const causes = causesOf(state);
  const { kernels, launches } = state;
  if (!causes || kernels === null)
    return unchanged(
      state,
      'without a timeline the launches of the stage are not known (--evaluator nsys records one)',
    );
  if (launches !== null && launches < 2) return unchanged(state, 'the stage is already one launch');
  const between = causes.floor + causes.launch;
  const nodeNs = state.nodeNs ?? nodeGapNs;
  const nodes = Math.min(between, (kernels * nodeNs) / 1e6);
  const waits = waitCauses.reduce((sum, cause) => sum + causes.wait[cause], 0);
  // Long gaps at the edges of the capture have bars of their own, which stay.
  const stretches = Math.min(
    causes.host + causes.compile + causes.firstUse,
    innerBarsMs(state, 'host', 'launch_overhead'),
  );
  const dispatch = state.facts ? stretchesOfDispatch(state.facts, causes) : 0;
  const overlappedMs = state.facts ? overlappedAheadMs(state.facts) : 0;
  const remainingHostMs = Math.max(0, stretches - dispatch - overlappedMs);
  const bars = withIdleBars(state, {
    launch_latency: nodes,
    synchronization: waits,
    'host.program': remainingHostMs,
  });
  const slowerMs = state.facts?.graph_attention_ms ?? 0;
  if (slowerMs > 0) bars.set(attentionBar, (bars.get(attentionBar) ?? 0) + slowerMs);
  const slow = Math.min(between, (kernels * Math.max(slowNodeGapNs, nodeNs)) / 1e6);
  const removed = between - nodes + stretches - remainingHostMs;
  // Measured graphs were within the predicted interval without this time, except those of benchmarks from batch 16 on.
  const staticCacheMs =
    state.waterfall.source === 'bench' ? staticCacheShare * (sumOf(state.bars) - idleMsOf(state)) : 0;
  return {
    state: {
      ...state,
      bars,
      idleBars: new Set(['launch_latency', 'synchronization', 'host.program']),
      launches: 1,
      launchIdleMs: 0,
      hostMs: remainingHostMs,
    },
    explanations: new Map([
      ...[...state.idleBars].map((id): [string, string] => [id, 'the stage is one launch']),
      [
        'launch_latency',
        `${plural(kernels, 'node')} × ${formatNs(nodeNs)}${state.nodeNs === null ? ` (${nodeSource})` : ', measured'}`,
      ],
      ['synchronization', 'waits of the host for the device stay; parts of them were in other idle bars'],
      ['host.program', 'only long gaps outside the step remain'],
      ...(slowerMs > 0 ? [[attentionBar, slowerAttention] satisfies [string, string]] : []),
    ]),
    // Overlapping graph kernels have no gap.
    lessMs: nodes,
    moreMs: slow - nodes + 0.05 * removed + staticCacheMs,
    assumptions: [
      `every kernel of the stage is captured, follows the one before it after ${formatNs(nodeNs)}, and takes as long as now${slowerMs > 0 ? `, except attention (${formatMs(slowerMs)} longer)` : ''}; the static KV cache that a graph needs may make attention process unused positions`,
      ...(state.waterfall.kind === 'prefill' ? ['one graph per prompt length'] : []),
    ],
  };
}

/** Removes host waits inside the stage: it takes as long as the slower of host and device. */
export function withoutSync(state: StageState): Effect {
  const causes = causesOf(state);
  if (!causes || !state.facts) return unchanged(state, 'without a timeline host waits are not known');
  const removed = causes.wait.synchronize + causes.wait.read;
  if (removed <= 0.001 * sumOf(state.bars))
    return unchanged(state, 'the host does not wait for the device inside the stage');
  const total = idleMsOf(state);
  const { synchronize, read } = state.facts.waits;
  const reads = Math.max(1, read.calls, synchronize.calls);
  const isRead = (id: string) => isCopyBar(id, 'dtoh') && reads > 1;
  const remainingShare = (id: string): number =>
    state.idleBars.has(id) ? 1 - removed / total : isRead(id) ? 1 / reads : 1;
  const bars = new Map([...state.bars].map(([id, ms]) => [id, ms * remainingShare(id)]));
  return {
    state: { ...state, bars },
    explanations: new Map([
      ...[...state.idleBars].map((id): [string, string] => [id, 'idle time after a host wait is removed']),
      ...[...state.bars.keys()].filter(isRead).map((id): [string, string] => [id, 'one read per stage']),
    ]),
    lessMs: removed / 2,
    moreMs: removed / 2,
    assumptions: [
      'without waits the stage takes as long as the slower of the device and the host minus its waits',
    ],
  };
}

/** Share of the data sheet's link that large pinned copies reach. */
const linkShare = 0.85;

/**
 * Copies to the device from pinned memory on a separate stream, overlapped with kernels as far as possible. Results that a stage
 * copies back cannot be copied earlier.
 */
export function withPinnedCopies(state: StageState): Effect {
  const copies = [...state.bars].filter(([id, ms]) => isCopyBar(id, 'htod') && ms > 0);
  const exposed = copies.reduce((sum, [, ms]) => sum + ms, 0);
  const causes = causesOf(state);
  const waits =
    causes && state.facts
      ? copyWaitMs(causes, state.facts, {
          launch_overhead_ms: innerBarsMs(state, 'launch_overhead'),
          synchronization_ms: innerBarsMs(state, 'synchronization'),
          launch_latency_ms: innerBarsMs(state, 'launch_latency'),
        })
      : 0;
  if (exposed + waits <= 0.001 * sumOf(state.bars))
    return unchanged(
      state,
      state.facts || state.onCpu
        ? 'no copy to the device is exposed in the stage'
        : 'without a timeline copies to the device are not known',
    );
  const busy = sumOf(state.bars) - exposed - waits;
  const link = state.gpuName === null ? null : gpuHostLink(state.gpuName).value;
  const pinned =
    link === null || state.copiedBytes === null ? exposed : (state.copiedBytes / (linkShare * link)) * 1e3;
  const exposedAfter = Math.max(0, Math.min(exposed, pinned) - busy);
  const bars = new Map(state.bars);
  for (const [id, ms] of copies) bars.set(id, (ms * exposedAfter) / exposed);
  const total = idleMsOf(state);
  if (waits > 0 && total > 0)
    for (const [id, ms] of state.bars) if (state.idleBars.has(id)) bars.set(id, ms * (1 - waits / total));
  const about = link === null ? '' : ` at up to ${formatQuantity(linkShare * link, 'B/s')}`;
  return {
    state: { ...state, bars },
    explanations: new Map([
      ...copies.map(([id]): [string, string] => [id, `behind kernels${about}`]),
      ...(waits > 0
        ? [...state.idleBars].map((id): [string, string] => [id, 'the host does not wait for copies'])
        : []),
    ]),
    lessMs: 0,
    // Copies that the next kernel waits for stay exposed, but run at the link's rate.
    moreMs: Math.max(0, Math.min(exposed, pinned) - exposedAfter) + waits / 2,
    assumptions: [
      'copies are issued one stage earlier from pinned memory and no kernel waits for them; at worst they stay exposed, at the link rate',
    ],
  };
}
