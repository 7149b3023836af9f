import { gainOf } from '../gain.js';
import { slowerAttention } from '../graph-attention.js';
import { launchesOfBench } from '../bench-launches.js';
import {
  graphNode,
  overlappedAheadMs,
  idleCauses,
  isLaunchBound,
  slowNodeGapNs,
  stretchesOfDispatch,
} from '../idle-causes.js';
import { innerWaits, minInnerWaits } from '../inner-waits.js';
import { launchBoundChange } from '../launch-changes.js';
import { longStretches } from '../long-stretches.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { waitCauses, type StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { instancesOf, instanceWord, count, everyInstance, ms, part, plural, times } from '../words.js';
import { formatNs } from '../../../vocabulary/format.js';

/** Part of the idle time that the cause states, so that its parts sum to the share in the title. */
const minShownShare = 0.02;

const idleBars = ['launch_overhead', 'launch_latency', 'host', 'synchronization'];

const timelineRule: Rule = stageRule(
  {
    id: 'launch_bound',
    title: 'Launch-bound stage',
    docs: {
      finds:
        'The host launches kernels more slowly than the GPU runs them, so the GPU is idle before each launch.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler, or a benchmark with device samples",
      gain: 'The idle time before launches minus the gaps between CUDA graph nodes on this GPU; never more than that idle time.',
      change: 'Replay the step as a CUDA graph, compile the model, or fuse kernels.',
      withheld: 'fewer than 20 launches per stage, or less than 5 % of the stage is affected',
    },
    references: [
      {
        title: 'Accelerating PyTorch with CUDA Graphs',
        url: 'https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/',
      },
      {
        title: 'CUDA C++ Programming Guide: CUDA Graphs',
        url: 'https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-graphs',
      },
      {
        title: 'torch.compile, mode reduce-overhead',
        url: 'https://docs.pytorch.org/docs/stable/generated/torch.compile.html',
      },
    ],
  },
  async (context, stage) => {
    const causes = idleCauses(stage);
    const { launch } = causes;
    if (!isLaunchBound(stage, causes, minShare)) {
      const waited = waitCauses.reduce((sum, cause) => sum + causes.wait[cause], 0);
      const afterWaits =
        waited >= 0.005 * stage.wall_ms
          ? `, and another ${part(waited, stage.wall_ms)} after waits of the host`
          : '';
      return `the device waits ${part(launch, stage.wall_ms)} of the time for ${plural(stage.launches, 'launch', 'launches')}${afterWaits}`;
    }
    const stretches = stretchesOfDispatch(stage, causes);
    return finding(context, stage, {
      launches_ms: launch,
      stretches,
      aheadMs: overlappedAheadMs(stage),
    });
  },
);

/** The host launches kernels more slowly than the device runs them: from a timeline, else from a benchmark's samples. */
export const launchBound: Rule = {
  ...timelineRule,
  async find(context) {
    const outcome = await timelineRule.find(context);
    return outcome.outcome === 'not_applicable' ? ((await launchesOfBench(context)) ?? outcome) : outcome;
  },
};

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { launches_ms, stretches, aheadMs }: { launches_ms: number; stretches: number; aheadMs: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, busy_ms: busy, kernels, launches, graph_attention_ms: slower } = stage;
  const node = graphNode(context.roofs);
  const nodes = ((node.ns - node.floor_ns) * kernels) / 1e6;
  const stake = launches_ms + stretches + aheadMs;
  const gain = Math.max(0, stake - nodes - slower);
  const meanMs = (parts: string) => `round(avg(${parts}) / 1e6, 3)`;
  const { evidence } = await context.evidence<Idle>(
    `SELECT count(*) AS stages, ${meanMs('host + launch_overhead + launch_latency')} AS idle_ms, ${meanMs('host')} AS host_ms,
            ${meanMs('launch_overhead')} AS launch_overhead_ms, ${meanMs('launch_latency')} AS launch_latency_ms
     FROM window_idle WHERE kind = '${kind}'`,
    ([row]) => idleText(row!, kind),
  );
  const prepared = stretches > 0 ? stage.prepared_ms : 0;
  const compiled = stretches > 0 ? stage.inside_compile_ms : 0;
  const places = prepared + compiled >= minShare * wall ? await longStretches(context, stage) : null;
  const preparing =
    prepared >= minShare * wall
      ? places?.places.find(({ relation }) => relation === 'inside')?.place
      : undefined;
  const loading = compiled >= minShare * wall;
  const furtherWork = preparing
    ? ` and spends time inside ${preparing}`
    : loading
      ? ' and compiles or loads code'
      : '';
  const named = (preparing ? prepared : 0) + (loading ? compiled : 0);
  const isShown = (partMs: number) => partMs >= minShownShare * stake;
  const more = [
    preparing
      ? `For another ${ms(prepared)} operators do preparation before they launch, mostly ${preparing}: for example planning for new sizes. A graph avoids this because it is captured once; recurring sizes avoid it without a graph.`
      : '',
    loading
      ? `For another ${ms(compiled)} the host compiles or loads code before it launches, which a graph avoids; recurring sizes avoid it without a graph.`
      : '',
    isShown(stretches - named)
      ? `Another ${ms(stretches - named)} is longer host gaps between two launches, which a graph also removes.`
      : '',
    isShown(aheadMs)
      ? `For another ${ms(aheadMs)} the host prepares the step: it waits for nothing, so with one launch per step it prepares the next one while the device computes.`
      : '',
  ];
  return {
    stage: kind,
    title: (share) =>
      `Launch-bound: the device waits ${share} of ${everyInstance(kind)} for the host, which launches ${times(launches, kind)}${furtherWork}`,
    at_stake_ms: stake,
    cause: [
      `${instanceWord(kind)} takes ${ms(wall)}, its kernels ${ms(busy)}. ${count(launches >= 10 ? Math.round(launches) : launches)} launches have ${ms(launches_ms / Math.max(1, launches))} of idle time each, ${ms(launches_ms)} in total: the host launches kernels more slowly than the device runs them, so the device waits after every kernel.`,
      ...more.filter((text) => text !== ''),
    ].join(' '),
    change: waitsFirst(await launchBoundChange(context, stage), await innerWaits(context, stage)),
    gain: gainOf(
      wall,
      gain,
      `Kernels take as long as now${slower > 0 ? `, but attention ${ms(slower)} longer: ${slowerAttention}` : ''}, and follow each other ${node.words} (low: ${formatNs(slowNodeGapNs)}${stretches > 0.01 * wall ? ', and only the launches are removed' : ''}); host work between steps and waits stay.${kind === 'prefill' ? ' One graph per padded length.' : ''}`,
      {
        low_ms: Math.max(0, launches_ms - ((slowNodeGapNs - node.floor_ns) * kernels) / 1e6 - 1.5 * slower),
        high_ms: stake + Math.min((kernels * node.floor_ns) / 1e6, 0.05 * stake),
        what_if: 'cudagraph',
      },
    ),
    confidence: 'high',
    removes: 'idle',
    covers: coveredFindings(stage, stretches),
    bars: barsOf(context, kind, idleBars),
    evidence: places ? [evidence, places.evidence] : [evidence],
    check: checkAgain,
  };
}

/** No graph can contain a wait of the host. */
function waitsFirst(change: FoundDraft['change'], inner: number): FoundDraft['change'] {
  if (inner < minInnerWaits) return change;
  const first = `First take the waits for the device out of the step (${count(inner)} between its launches): a graph ends at each.`;
  return { ...change, details: [first, change.details ?? ''].join(' ').trim() };
}

/** Findings with time that is mostly counted here. */
function coveredFindings(facts: StageFacts, claimedMs: number): string[] {
  if (claimedMs <= 0) return [];
  return [
    ...(facts.inside_compile_ms > facts.compile_ms / 2 ? ['recompilation'] : []),
    ...(facts.prepared_ms > facts.long_host_ms / 2 ? ['host_bound'] : []),
  ];
}

interface Idle extends Record<string, number> {
  stages: number;
  idle_ms: number;
  host_ms: number;
  launch_overhead_ms: number;
  launch_latency_ms: number;
}

function idleText(
  { stages, idle_ms: idle, host_ms: host, launch_overhead_ms: calls, launch_latency_ms: latency }: Idle,
  kind: StageFacts['kind'],
): string {
  const place =
    kind === 'outside'
      ? 'the capture'
      : stages === 1
        ? instancesOf(1, kind)
        : `each of ${instancesOf(stages, kind)}`;
  return `under the profiler ${ms(idle)} idle at launches in ${place}: ${ms(host)} before the launch call, ${ms(calls)} in it and ${ms(latency)} from its return to the kernel`;
}
