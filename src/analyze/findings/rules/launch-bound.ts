import { idleCauses, nodeGapNs, slowNodeGapNs } from '../idle-causes.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { leastShare, stageRule } from '../stage-rule.js';
import { aStage, count, everyStage, ms, part } from '../words.js';

/**
 * A graph takes the host out of the whole step, long stretches between two launches too. They are claimed where the launches
 * alone cost a third of them; else the stretches are what is to be found.
 */
const stretchesClaimed = 3;
/** A launch that costs more does something else first: it loads code, or waits for memory. */
const slowestLaunchMs = 0.5;
/** With fewer launches it is not launching that takes the time. */
const leastLaunches = 20;

const idleBars = ['launch_overhead', 'launch_latency', 'host', 'synchronization'];

/** The host hands kernels over more slowly than the device runs them. */
export const launchBound: Rule = stageRule(
  {
    id: 'launch_bound',
    title: 'Launch-bound stage',
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
    const { launch } = idleCauses(stage);
    const bound =
      launch >= leastShare * stage.wall_ms &&
      stage.launches >= leastLaunches &&
      launch <= slowestLaunchMs * stage.launches;
    if (!bound)
      return `the device waits ${part(launch, stage.wall_ms)} of the time for ${count(stage.launches)} launches`;
    const claimed = stage.inside_ms <= stretchesClaimed * launch ? stage.inside_ms : 0;
    return finding(context, stage, launch, claimed);
  },
);

async function finding(
  context: FindingContext,
  stage: StageFacts,
  launches_ms: number,
  stretches: number,
): Promise<FoundDraft> {
  const launch = launches_ms + stretches;
  const { kind, wall_ms: wall, busy_ms: busy, kernels, launches } = stage;
  const where = kind === 'outside' ? 'true' : `phase = '${kind}'`;
  const { evidence } = await context.evidence<{ gaps: number; mean_us: number }>(
    `SELECT coalesce(cause, 'unattributed') AS cause, count(*) AS gaps, round(avg(dur_ns) / 1e3, 2) AS mean_us, round(sum(dur_ns) / 1e6, 3) AS idle_ms,
            round(sum(host_ns) / 1e6, 3) AS host_ms, round(sum(launch_overhead_ns) / 1e6, 3) AS launch_overhead_ms,
            round(sum(launch_latency_ns) / 1e6, 3) AS launch_latency_ms
     FROM focus_gaps WHERE ${where} GROUP BY 1 ORDER BY idle_ms DESC`,
    (rows) =>
      `${rows.reduce((sum, { gaps }) => sum + gaps, 0)} gaps between kernels over ${stage.instances} instances, of the commonest cause on average ${rows[0]?.mean_us ?? '–'} µs: ${count(launches)} launches of ${ms((wall - busy) / Math.max(1, launches))} idle time each.`,
  );
  const slow = Math.max(0, ((slowNodeGapNs - nodeGapNs) * kernels) / 1e6);
  const low = Math.max(0, launches_ms - slow);
  const eager = stage.graph_launches < 0.5;
  return {
    stage: kind,
    title: `Launch-bound: the device idles ${part(wall - busy, wall)} of ${everyStage(kind)}, while the host launches ${count(launches)} times`,
    at_stake_ms: launch,
    cause: `${aStage(kind)} takes ${ms(wall)}, its kernels ${ms(busy)}. ${count(launches)} launches with ${ms(launches_ms / Math.max(1, launches))} of idle time each: the host dispatches more slowly than the device computes, so the device runs dry after every kernel.${stretches > leastShare * wall ? ` ${ms(stretches)} of it are single long stretches of the host between two kernels, which a graph leaves out as well.` : ''}`,
    change: {
      kind: 'code',
      text: eager
        ? 'Launch the whole step at once: capture it into a CUDA graph (a static KV cache is needed), or compile it; then the host launches once a step. A larger batch hides the launches as well.'
        : 'Put the whole step into one CUDA graph: what is launched outside of it is what the device waits for.',
      example:
        kind === 'prefill'
          ? 'model = torch.compile(model)'
          : 'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
    },
    gain: {
      expected_ms: launch,
      low_ms: low,
      high_ms: launch + Math.min((kernels * nodeGapNs) / 1e6, 0.05 * launch),
      after_ms: wall - launch,
      assumption: `Kernels stay as they are and follow each other ${nodeGapNs} ns apart, as nodes of a graph do on an H200 (low: ${slowNodeGapNs} ns); what the host does between steps and waits stay.`,
      what_if: 'cudagraph',
    },
    confidence: 'high',
    removes: 'idle',
    covers: stretches > 0 ? ['recompilation', 'host_bound'] : [],
    bars:
      context.waterfalls
        .find((one) => one.kind === kind)
        ?.bars.map(({ id }) => id)
        .filter((id) => idleBars.includes(id.split('.')[0]!)) ?? idleBars,
    evidence: [evidence],
    check: 'inferscope run --evaluator none,nsys -- <the changed command>, then inferscope explain --verify',
  };
}
