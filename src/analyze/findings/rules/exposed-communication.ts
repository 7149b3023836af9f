import { programOf } from '../framework.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, leastShare, stageRule } from '../stage-rule.js';
import { aStage, everyStage, ms, part, plural } from '../words.js';

/** What overlap or a faster all-reduce usually takes off; the rest is latency of each call. */
const hideable = 0.5;

/** Devices exchange data while none of them computes. */
export const exposedCommunication = stageRule(
  {
    id: 'exposed_communication',
    title: 'Exposed communication',
    references: [
      {
        title: 'NCCL documentation',
        url: 'https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/index.html',
      },
      {
        title: 'vLLM: parallelism and scaling',
        url: 'https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html',
      },
    ],
  },
  async (context, stage) => {
    if (stage.compute_ms === 0) return 'nothing computes beside the communication';
    if (stage.comm_ms < leastShare * stage.wall_ms) {
      return stage.comm_ms === 0
        ? 'no communication kernels'
        : `communication that nothing hides takes ${part(stage.comm_ms, stage.wall_ms)}`;
    }
    return finding(context, stage);
  },
);

async function finding(context: FindingContext, stage: StageFacts): Promise<FoundDraft> {
  const { kind, wall_ms: wall, comm_ms: time, instances } = stage;
  const { rows, evidence } = await context.evidence<{ kernel: string; per_instance: number; us: number }>(
    `SELECT coalesce(short_name, name) AS kernel, round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(dur_ns) / 1e6 / ${instances}, 4) AS ms, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS exposed_ms
     FROM focus_kernels WHERE ${kind === 'outside' ? 'true' : `phase = '${kind}'`} AND class = 'communication' GROUP BY 1 ORDER BY exposed_ms DESC`,
    (found) =>
      found
        .slice(0, 2)
        .map((row) => `${row.kernel}: ${row.per_instance} of ${row.us} µs`)
        .join('; '),
  );
  const n = rows.reduce((sum, row) => sum + row.per_instance, 0);
  return {
    stage: kind,
    title: `Exposed communication: ${part(time, wall)} of ${everyStage(kind)} in ${plural(n, 'collective')} that nothing hides`,
    at_stake_ms: time,
    cause: `In ${aStage(kind)} ${ms(time)} of communication kernels run while nothing computes. The next layer needs their result, and waiting for a slower rank counts in them too.`,
    change: await changeFor(context, rows[0]?.kernel ?? ''),
    gain: {
      expected_ms: hideable * time,
      low_ms: 0.2 * time,
      high_ms: time,
      after_ms: wall - hideable * time,
      assumption: 'Half of the exposed time can be hidden or saved; all of it where one GPU holds the model.',
      what_if: null,
    },
    confidence: 'low',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence],
    check: checkAgain,
  };
}

const fewerGpus = {
  vllm: '--tensor-parallel-size <fewer> --data-parallel-size <more>',
  sglang: '--tp <fewer> --dp <more>',
  tensorrt_llm: 'tensor_parallel_size: <fewer>',
};

/** By what is exchanged: sums of activations, gradients, or values that one rank hands to another. */
async function changeFor(context: FindingContext, largest: string): Promise<FoundDraft['change']> {
  const { framework, training } = await programOf(context);
  const pairs = /send|recv|all_?to_?all/i.test(largest);
  if (pairs)
    return {
      kind: 'code',
      text: 'Send while something else is computed: more and smaller micro-batches between stages of a pipeline, the next block of keys and values while this one is attended to (context parallelism), tokens of one half of the batch while the experts compute the other; or put ranks that exchange most onto one host.',
      example: 'requests = dist.batch_isend_irecv(ops); …; [request.wait() for request in requests]',
    };
  if (training)
    return {
      kind: 'code',
      text: 'Overlap the exchange with the backward pass: buckets that are ready early, prefetched shards (FSDP), gradients accumulated over several micro-batches before they are summed.',
      example:
        'DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=25); with model.no_sync(): …',
    };
  return {
    kind: 'config',
    text: 'Use fewer GPUs a replica (tensor parallelism costs two all-reduces a layer), fuse the all-reduce with the norm behind it, use the custom all-reduce for small messages, or overlap halves of the batch.',
    example: framework
      ? fewerGpus[framework]
      : 'work = dist.all_reduce(half, async_op=True); …  # the other half is computed; work.wait()',
  };
}
