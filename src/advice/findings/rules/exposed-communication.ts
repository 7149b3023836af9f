import { type CollectiveWaits, collectiveWaits } from '../collective-waits.js';
import { programOf } from '../framework.js';
import { nameOf, type RankTime } from '../rank-times.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, leastShare, stageRule } from '../stage-rule.js';
import { type RankCollectives, waitingOfRanks } from '../../../facts/trace/collectives.js';
import { aStage, everyStage, ms, part, plural } from '../words.js';

/** What overlap or a faster all-reduce usually takes off; the rest is latency of each call. */
const hideable = 0.5;

/** Devices exchange data while none of them computes. */
export const exposedCommunication = stageRule(
  {
    id: 'exposed_communication',
    title: 'Exposed communication',
    docs: {
      finds: 'GPUs exchange data while none of them computes.',
      needs:
        "a GPU timeline: nsys, or PyTorch's profiler; with several ranks, waiting is separated from transfer",
      gain: 'Half of the exposed transfer (range 20 % to all of it); where one rank keeps the others waiting, that waiting time.',
      change:
        'Overlap communication with compute, use fewer GPUs per replica, or a faster all-reduce for small messages.',
      withheld: 'less than 5 % of the stage is exposed, or exposed without waiting for others',
    },
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
    if (stage.compute_ms === 0) return 'no kernel computes during the communication';
    if (stage.comm_ms < leastShare * stage.wall_ms) {
      return stage.comm_ms === 0
        ? 'no communication kernels'
        : `exposed communication takes ${part(stage.comm_ms, stage.wall_ms)}`;
    }
    const waits = await collectiveWaits(context, stage);
    if (!waits || !prevails(stage, waits)) return exchange(context, stage, waits);
    if (!computesLonger(waits)) return waiting(context, stage, waits);
    const { transfer_ms: transfer } = waits.own;
    return transfer < leastShare * stage.wall_ms
      ? `the exchange takes ${part(transfer, stage.wall_ms)}; the other ${ms(stage.comm_ms - transfer)} wait for ${nameOf(waits.awaited)}, which computes longer (rank_stragglers)`
      : exchange(context, stage, waits);
  },
);

/**
 * Most of the time is waiting for one rank, again and again: ranks that come last in turns, or once, as when they do not
 * begin at the same time, have nothing that one of them could mend.
 */
const prevails = ({ comm_ms: time, instances }: StageFacts, { own, awaited }: CollectiveWaits): boolean =>
  own.exposed_waiting_ms >= 0.5 * time &&
  awaited.waiting_ms <= 0.5 * own.waiting_ms &&
  own.waiting_instances >= instances / 2;

/** The rank that the others wait for has more to compute, rather than a host that is late. */
function computesLonger({ own, awaited, ownTime, awaitedTime }: CollectiveWaits): boolean {
  if (own === awaited) return false;
  const longer = (awaitedTime?.compute_ms ?? 0) - (ownTime?.compute_ms ?? 0);
  return longer >= 0.5 * (own.waiting_ms - awaited.waiting_ms);
}

/** Ranks that meet late: their exchange itself is short. */
async function waiting(
  context: FindingContext,
  { kind, wall_ms: wall, comm_ms: time }: StageFacts,
  { own, awaited, ownTime, awaitedTime, sql }: CollectiveWaits,
): Promise<FoundDraft> {
  const stake = own.exposed_waiting_ms;
  const late = nameOf(awaited);
  const { evidence } = await context.evidence<RankCollectives>(sql.collectives, waitingText);
  const { evidence: ranks } = await context.evidence<RankTime>(sql.ranks, (rows) =>
    rows
      .map((row) => `${nameOf(row)}: computes ${ms(row.compute_ms)}, idles ${ms(row.host_ms)} for its host`)
      .join('; '),
  );
  const [here, there] = [ownTime?.host_ms ?? 0, awaitedTime?.host_ms ?? 0];
  const host = there - here >= 0.5 * (own.waiting_ms - awaited.waiting_ms);
  const focus = [
    ...(awaited.rank === null ? [] : [`--rank ${awaited.rank}`]),
    ...(awaited.device === null ? [] : [`--device ${awaited.device}`]),
  ].join(' ');
  return {
    stage: kind,
    title: `Waiting for another rank: ${part(stake, wall)} of ${everyStage(kind)} inside collectives, until ${late} arrives`,
    at_stake_ms: stake,
    cause: `In ${aStage(kind)} ${ms(time)} of communication kernels run while nothing computes. ${ms(stake)} of it is waiting: the same collectives take ${ms(awaited.transfer_ms)} on the rank that comes last. That is ${late}${
      host
        ? `: its device idles ${ms(there)} for its host, this rank's ${ms(here)}`
        : '; neither its kernels nor its host alone explain why'
    }.`,
    change: {
      kind: 'config',
      text: `Fix what holds up ${late}; the exchange is not what takes the time.`,
      more: host
        ? 'Its own findings say what its host does: CUDA graphs, CPU cores of its own on the side of the machine where the GPU is, nothing else on them.'
        : 'Its own findings say what it does before it arrives.',
      example: `inferscope explain ${context.manifest.id} ${focus}`.trim(),
    },
    gain: {
      expected_ms: stake,
      low_ms: 0.5 * stake,
      high_ms: stake,
      after_ms: wall - stake,
      assumption:
        'That rank arrives as early as this one does, whose own host is not what binds then (low: half of the waiting is left).',
      what_if: null,
    },
    confidence: 'medium',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence, ranks],
    check: checkAgain,
  };
}

const waitingText = (rows: RankCollectives[]): string =>
  waitingOfRanks(rows)
    .map((row) =>
      row.unpaired_ms > 0
        ? `${nameOf(row)}: ${ms(row.comm_ms)}, of which ${ms(row.unpaired_ms)} cannot be paired`
        : `${nameOf(row)}: ${ms(row.waiting_ms)} waiting, ${ms(row.transfer_ms)} exchange`,
    )
    .join('; ');

async function exchange(
  context: FindingContext,
  stage: StageFacts,
  waits: CollectiveWaits | null,
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, comm_ms: all, instances } = stage;
  // Waiting is not shortened by a faster exchange; that for a rank with more to compute is counted in rank_stragglers.
  const movable = waits ? Math.min(all, waits.own.exposed_ms - waits.own.exposed_waiting_ms) : all;
  const time = waits && computesLonger(waits) ? movable : all;
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
  const split = waits
    ? [(await context.evidence<RankCollectives>(waits.sql.collectives, waitingText)).evidence]
    : [];
  return {
    stage: kind,
    title: `Exposed communication: ${part(time, wall)} of ${everyStage(kind)} in ${plural(n, 'collective')}`,
    at_stake_ms: time,
    cause: `In ${aStage(kind)} ${ms(all)} of communication kernels run while nothing computes. The next layer needs their result. ${waitingWords(waits, instances)}`,
    change: await changeFor(context, rows[0]?.kernel ?? ''),
    gain: {
      expected_ms: hideable * movable,
      low_ms: 0.2 * movable,
      high_ms: time,
      after_ms: wall - hideable * movable,
      assumption: `Half of the exposed time${movable < 0.99 * all ? ' beyond waiting' : ''} can be hidden or saved; all of it where one GPU holds the model.`,
      what_if: null,
    },
    confidence: 'low',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence, ...split],
    check: checkAgain,
  };
}

/** What of it is waiting for a slower rank, or why nobody can tell. */
function waitingWords(waits: CollectiveWaits | null, instances: number): string {
  if (!waits)
    return 'Waiting for a slower rank counts in them too; how much is not known: the capture holds no other rank with such kernels.';
  const { own, awaited } = waits;
  if (own.unpaired_ms > 0.5 * own.comm_ms)
    return 'Waiting for a slower rank counts in them too; how much is not known: the ranks have unlike numbers of them, or pairs that do not meet.';
  const here = awaited === own;
  return here
    ? `${ms(own.exposed_waiting_ms)} of it is waiting; the other ranks wait longer, for this one.`
    : `${ms(own.exposed_waiting_ms)} of it is waiting for ${nameOf(awaited)}${own.waiting_instances > 0 ? `; in ${own.waiting_instances} of ${instances} instances it is at least half` : ''}.`;
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
