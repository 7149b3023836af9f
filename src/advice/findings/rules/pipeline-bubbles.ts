import { type Pipeline, pipelineSql, type StageWaits } from '../../../facts/collectives/job.js';
import { type Framework, programOf } from '../framework.js';
import { gainOf } from '../gain.js';
import { jobCauses } from '../job-causes.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import type { StageFacts } from '../stage-facts.js';
import { count, everyInstance, instanceWord, ms, part } from '../words.js';

/** Every stage of a pipeline waits while others fill and drain it. */
export const pipelineBubbles = stageRule(
  {
    id: 'pipeline_bubbles',
    title: 'Pipeline bubbles',
    docs: {
      finds: 'The stages of a pipeline wait for each other, even the busiest one.',
      needs:
        "the timelines of all ranks of a job (import --ranks) that name the other rank of sends and receives: PyTorch traces, or nsys reports with NCCL's payloads",
      gain: 'Half of what the busiest stage waits: twice as many micro-batches, half as long each, halve the bubble (low: a fifth, where smaller batches take hardly less time; high: all of it).',
      change: 'Split a step into more micro-batches, keep more requests in flight, or use fewer stages.',
      withheld:
        'a rank that sends and receives nothing within the stage, or less than 5 % of the stage; what other stages wait beyond that is rank_stragglers',
    },
    references: [
      { title: 'GPipe: bubbles and micro-batches', url: 'https://arxiv.org/abs/1811.06965' },
      {
        title: 'vLLM: parallelism and scaling',
        url: 'https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html',
      },
    ],
  },
  async (context, stage) => {
    const causes = await jobCauses(context, stage);
    if (!causes) return 'the calls of several ranks are not recorded';
    const { pipeline, captures } = causes;
    if (!pipeline) return 'not every rank sends to or receives from another rank within the stage';
    if (pipeline.bubble_ms < minShare * stage.wall_ms)
      return `the busiest of ${pipeline.ranks} ranks waits ${part(pipeline.bubble_ms, stage.wall_ms)}`;
    return finding(context, stage, pipeline, captures);
  },
);

const fewerStages: Readonly<Record<Framework, string>> = {
  vllm: '--pipeline-parallel-size <fewer> --tensor-parallel-size <more>',
  sglang: '--pp-size <fewer> --tp-size <more>',
  tensorrt_llm: 'pipeline_parallel_size: <fewer>, tensor_parallel_size: <more>',
};

async function finding(
  context: FindingContext,
  { kind, instances, wall_ms: wall }: StageFacts,
  { ranks, micro_batches, bubble_ms: bubble }: Pipeline,
  captures: readonly string[],
): Promise<FoundDraft> {
  const { framework } = await programOf(context);
  const { evidence } = await context.evidence<StageWaits>(pipelineSql(captures, kind, instances), (rows) =>
    rows
      .slice(0, 8)
      .map((row) => `rank ${row.rank}: ${ms(row.waiting_ms)} waiting`)
      .join('; '),
  );
  return {
    stage: kind,
    title: (share) =>
      `Pipeline bubbles: even the busiest of ${ranks} ranks waits ${share} of ${everyInstance(kind)} for other stages`,
    at_stake_ms: bubble,
    cause: `In ${instanceWord(kind)} every rank waits ${ms(bubble)} or longer in its sends and receives.${
      micro_batches > 1
        ? ` ${ranks} stages and ${count(micro_batches)} micro-batches, all as long, wait ${part(ranks - 1, micro_batches + ranks - 1)}.`
        : ''
    }`,
    change: {
      kind: 'config',
      text: 'Split a step into more and smaller micro-batches, keep more requests in flight so that each stage has one to compute, or use fewer stages with more tensor parallelism.',
      example: framework && fewerStages[framework],
    },
    gain: gainOf(
      wall,
      0.5 * bubble,
      'Twice as many micro-batches, each half as long (low: smaller batches take hardly less time; high: no stage waits).',
      { low_ms: 0.2 * bubble, high_ms: bubble },
    ),
    confidence: 'low',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence],
    check: checkAgain,
  };
}
