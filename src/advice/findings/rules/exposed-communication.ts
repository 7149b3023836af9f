import { formatBytes } from '../../../vocabulary/format.js';
import { gainOf } from '../gain.js';
import { gatheredWeights, type GatheredWeights } from '../gathered-weights.js';
import { type CollectiveWaits, collectiveWaits } from '../collective-waits.js';
import { isMember, type JobCauses, jobCauses, kvExposedMs } from '../job-causes.js';
import { programOf } from '../framework.js';
import type { RankTime } from '../rank-times.js';
import { rankName } from '../../../vocabulary/ranks.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { type RankCollectives, waitingOfRanks } from '../../../facts/trace/collectives.js';
import { callsOf, instanceWord, everyInstance, ms, part, plural } from '../words.js';

/**
 * Expected share removed by overlap or a faster all-reduce, and the minimum for weights that need not be gathered. Overlap removed
 * 0.91 in the one planted pair (test/fixtures/diagnosis).
 */
const overlapShare = 0.5;

/** Devices exchange data while no kernel computes. */
export const exposedCommunication = stageRule(
  {
    id: 'exposed_communication',
    title: 'Exposed communication',
    docs: {
      finds: 'GPUs exchange data while no kernel computes.',
      needs:
        "a GPU timeline: nsys, or PyTorch's profiler; with several ranks, waiting is separated from transfer",
      gain: 'Half of the exposed transfer (range 20 % to all of it), all of it for weights that need not be gathered; if one rank keeps the others waiting, that waiting time.',
      change:
        'Keep gathered weights (FSDP), overlap communication with compute, use fewer GPUs per replica, or a faster all-reduce for small messages.',
      withheld: 'less than 5 % of the stage is exposed, or less than that without waiting for other ranks',
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
      {
        title: 'PyTorch: fully_shard, reshard_after_forward',
        url: 'https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html',
      },
      {
        title: 'Weights gathered once instead of per forward pass: 14 % faster',
        url: 'https://github.com/Robbyant/lingbot-world/pull/52',
      },
    ],
  },
  async (context, stage) => {
    if (stage.compute_ms === 0) return 'no kernel computes during the communication';
    if (stage.comm_ms < minShare * stage.wall_ms) {
      return stage.comm_ms === 0
        ? 'no communication kernels'
        : `exposed communication takes ${part(stage.comm_ms, stage.wall_ms)}`;
    }
    const waits = await collectiveWaits(context, stage);
    const causes = await jobCauses(context, stage);
    if (waits && causes && (causes.link || causes.expert || causes.pipeline || kvExposedMs(causes) > 0))
      return findRemainingExchange(context, stage, waits, causes);
    if (!waits || !isWaitingForOneRank(stage, waits)) return findExchange(context, stage, waits);
    if (!computesLonger(waits)) return findWaiting(context, stage, waits);
    const { transfer_ms: transfer } = waits.focusWaits;
    return transfer < minShare * stage.wall_ms
      ? `the exchange takes ${part(transfer, stage.wall_ms)}; the other ${ms(stage.comm_ms - transfer)} is waiting for ${rankName(waits.awaited)}, which computes longer (rank_stragglers)`
      : findExchange(context, stage, waits);
  },
);

/**
 * Whether most of the time is repeated waiting for one rank. If ranks take turns in arriving last, or one is late once (a staggered start),
 * no single rank has a problem to fix.
 */
const isWaitingForOneRank = (
  { comm_ms: time, instances }: StageFacts,
  { focusWaits, awaited }: CollectiveWaits,
): boolean =>
  focusWaits.exposed_waiting_ms >= 0.5 * time &&
  awaited.waiting_ms <= 0.5 * focusWaits.waiting_ms &&
  focusWaits.waiting_instances >= instances / 2;

/** Whether the late rank computes longer, by at least half of the waiting. */
function computesLonger({ focusWaits, awaited, focusTime, awaitedTime }: CollectiveWaits): boolean {
  if (focusWaits === awaited) return false;
  const longer = (awaitedTime?.compute_ms ?? 0) - (focusTime?.compute_ms ?? 0);
  return longer >= 0.5 * (focusWaits.waiting_ms - awaited.waiting_ms);
}

/** Ranks arrive at different times: at least half of the communication is waiting. */
async function findWaiting(
  context: FindingContext,
  { kind, wall_ms: wall, comm_ms: time }: StageFacts,
  { focusWaits, awaited, focusTime, awaitedTime, sql }: CollectiveWaits,
): Promise<FoundDraft> {
  const stake = focusWaits.exposed_waiting_ms;
  const late = rankName(awaited);
  const { evidence } = await context.evidence<RankCollectives>(sql.collectives, waitingText);
  const { evidence: ranks } = await context.evidence<RankTime>(sql.ranks, (rows) =>
    rows
      .map((row) => `${rankName(row)}: computes ${ms(row.compute_ms)}, waits ${ms(row.host_ms)} for its host`)
      .join('; '),
  );
  const [here, awaitedHostMs] = [focusTime?.host_ms ?? 0, awaitedTime?.host_ms ?? 0];
  const host = awaitedHostMs - here >= 0.5 * (focusWaits.waiting_ms - awaited.waiting_ms);
  const focus = [
    ...(awaited.rank === null ? [] : [`--rank ${awaited.rank}`]),
    ...(awaited.device === null ? [] : [`--device ${awaited.device}`]),
  ].join(' ');
  return {
    stage: kind,
    title: (share) =>
      `Waiting for another rank: ${share} of ${everyInstance(kind)} inside collectives, until ${late} arrives`,
    at_stake_ms: stake,
    cause: `In ${instanceWord(kind)} ${ms(time)} of communication kernels run while nothing computes. ${ms(stake)} of it is waiting: the same collectives take ${ms(awaited.transfer_ms)} on the rank that arrives last, ${late}${
      host
        ? `: its device waits ${ms(awaitedHostMs)} for its host, this rank's ${ms(here)}`
        : '; neither its kernels nor its host alone explain it'
    }.`,
    change: {
      kind: 'config',
      text: `Fix the cause of the delay on ${late}; faster links would not shorten the wait.`,
      details: host
        ? 'See its own findings about the host: CUDA graphs, and dedicated CPU cores on the NUMA node of the GPU.'
        : 'See its own findings for its work before it arrives.',
      example: `inferscope explain ${context.manifest.id} ${focus}`.trim(),
    },
    gain: gainOf(
      wall,
      stake,
      'That rank arrives as early as this one, and this rank is not host-bound then (low: half of the waiting remains).',
      { low_ms: 0.5 * stake },
    ),
    confidence: 'medium',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence, ranks],
    check: checkAgain,
  };
}

/** Maximum ranks named in evidence: those that wait least. */
const maxNamed = 8;

function waitingText(rows: RankCollectives[]): string {
  const ranks = waitingOfRanks(rows);
  const texts = ranks
    .slice(0, maxNamed)
    .map((row) =>
      row.unpaired_ms > 0
        ? `${rankName(row)}: ${ms(row.comm_ms)}, of which ${ms(row.unpaired_ms)} cannot be paired (${row.unpaired})`
        : `${rankName(row)}: ${ms(row.waiting_ms)} waiting, ${ms(row.transfer_ms)} exchange`,
    );
  const which = ranks.length > maxNamed ? ` of the ${maxNamed} ranks that wait least` : '';
  return `times${which}, exposed or overlapped: ${texts.join('; ')}`;
}

/** Exchange time minus what slow_link, expert_imbalance, pipeline_bubbles and kv_transfer claim with a cause. */
function findRemainingExchange(
  context: FindingContext,
  stage: StageFacts,
  waits: CollectiveWaits,
  causes: JobCauses,
): Promise<FoundDraft> | string {
  const { focusWaits } = waits;
  const { link, expert, pipeline, kvTransfers } = causes;
  const kvWireMs = kvExposedMs(causes) - kvTransfers.reduce((sum, { waiting_ms }) => sum + waiting_ms, 0);
  const lost =
    (link && isMember(link, focusWaits.rank) ? link.lost_ms : 0) + (expert?.wire_ms ?? 0) + kvWireMs;
  const exchangeMs = Math.max(
    0,
    Math.min(stage.comm_ms, focusWaits.exposed_ms - focusWaits.exposed_waiting_ms - lost),
  );
  const others = [
    link && 'a slow link',
    expert && 'uneven experts',
    pipeline && 'pipeline bubbles',
    kvTransfers.length > 0 && 'transfers of KV caches',
  ]
    .filter(Boolean)
    .join(' and ');
  return exchangeMs < minShare * stage.wall_ms
    ? `apart from ${others}, ${part(exchangeMs, stage.wall_ms)} is exposed`
    : findExchange(context, stage, waits, { ms: exchangeMs, others });
}

/** @param beyond the part of the exposed time that counts here, and what explains the rest; null: all of it */
async function findExchange(
  context: FindingContext,
  stage: StageFacts,
  waits: CollectiveWaits | null,
  beyond: { ms: number; others: string } | null = null,
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, comm_ms, instances } = stage;
  const all = beyond?.ms ?? comm_ms;
  // A faster exchange does not shorten waiting; waiting for a rank with more to compute belongs to rank_stragglers.
  const movable = waits
    ? Math.min(all, waits.focusWaits.exposed_ms - waits.focusWaits.exposed_waiting_ms)
    : all;
  const time = waits && computesLonger(waits) ? movable : all;
  const { rows, evidence } = await context.evidence<{ kernel: string; per_instance: number; us: number }>(
    `SELECT coalesce(name, short_name) AS kernel, round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(dur_ns) / 1e6 / ${instances}, 4) AS ms, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS exposed_ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND class = 'communication' GROUP BY 1 ORDER BY exposed_ms DESC`,
    (evidenceRows) =>
      evidenceRows
        .slice(0, 2)
        .map((row) => `${row.kernel}: ${callsOf(row)}`)
        .join('; '),
  );
  // Kernels launched outside a step are placed by time.
  const [placed] = await context.database.query<{ n: number }>(
    `SELECT coalesce(sum(n), 0) / ${instances} AS n FROM finding_kernels WHERE kind = '${kind}' AND class = 'communication'`,
  );
  const split = waits
    ? [(await context.evidence<RankCollectives>(waits.sql.collectives, waitingText)).evidence]
    : [];
  const gathered = await gatheredWeights(context, kind);
  return {
    stage: kind,
    title: (share) =>
      `Exposed communication: ${share} of ${everyInstance(kind)} in ${plural(placed?.n ?? 0, 'collective')}`,
    at_stake_ms: time,
    cause: `In ${instanceWord(kind)} ${ms(comm_ms)} of communication kernels run while nothing computes.${beyond ? ` ${ms(all)} of it is exchange, apart from ${beyond.others}.` : ''} ${
      gathered
        ? `They gather ${formatBytes(gathered.bytes)} of weights from the other ranks, which are sharded again after each use.`
        : 'The next layer needs their result.'
    } ${waitingWords(waits, instances)}`,
    change: gathered ? keepWeights(gathered) : await changeFor(context, rows[0]?.kernel ?? ''),
    gain: gathered
      ? gainOf(
          wall,
          movable,
          `Gathered weights stay on the GPU${movable < 0.99 * all ? '; waiting for other ranks remains' : ''}.`,
          { low_ms: overlapShare * movable, high_ms: time },
        )
      : gainOf(
          wall,
          overlapShare * movable,
          `Half of the exposed time${movable < 0.99 * all ? ' beyond waiting' : ''} can be hidden or saved; all of it where one GPU holds the model.`,
          { low_ms: 0.2 * movable, high_ms: time },
        ),
    confidence: 'low',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence, ...(gathered ? [gathered.evidence] : []), ...split],
    check: checkAgain,
  };
}

const keepWeights = ({ weights }: GatheredWeights): FoundDraft['change'] => ({
  kind: 'code',
  text: `Keep the weights after the first gather (reshard_after_forward=False; SHARD_GRAD_OP with FSDP 1): they take ${formatBytes(weights)} on every GPU. If they do not fit, shard the computation instead (tensor parallelism).`,
  example: 'fully_shard(layer, reshard_after_forward=False)',
});

/** The part spent waiting for a slower rank, or why it is unknown. */
function waitingWords(waits: CollectiveWaits | null, instances: number): string {
  if (!waits)
    return 'This includes waiting for a slower rank; how much is not known: the capture has no other rank with such kernels.';
  const { focusWaits, awaited } = waits;
  if (focusWaits.unpaired_ms > 0.5 * focusWaits.comm_ms)
    return `This includes waiting for a slower rank; how much is not known: ${focusWaits.unpaired}.`;
  const here = awaited === focusWaits;
  return here
    ? `${ms(focusWaits.exposed_waiting_ms)} of it is waiting: the other ranks wait longer, because this one arrives last.`
    : `${ms(focusWaits.exposed_waiting_ms)} of it is waiting for ${rankName(awaited)}${focusWaits.waiting_instances > 0 ? `, at least half of the communication in ${focusWaits.waiting_instances} of ${instances} instances` : ''}.`;
}

const fewerGpus = {
  vllm: '--tensor-parallel-size <fewer> --data-parallel-size <more>',
  sglang: '--tp <fewer> --dp <more>',
  tensorrt_llm: 'tensor_parallel_size: <fewer>',
};

/** Changes by what is exchanged: sums of activations, gradients, or values sent from one rank to another. */
async function changeFor(context: FindingContext, largest: string): Promise<FoundDraft['change']> {
  const { framework, training } = await programOf(context);
  const pairs = /send|recv|all_?to_?all/i.test(largest);
  if (pairs)
    return {
      kind: 'code',
      text: 'Overlap sends with compute: more and smaller micro-batches between pipeline stages, the next block of keys and values during attention to this one (context parallelism), tokens of one half of the batch while the experts compute the other; or place ranks that exchange most on one host.',
      example: 'requests = dist.batch_isend_irecv(ops); …; [request.wait() for request in requests]',
    };
  if (training)
    return {
      kind: 'code',
      text: 'Overlap the exchange with the backward pass: smaller gradient buckets, prefetched shards (FSDP), gradients accumulated over several micro-batches before the reduction.',
      example:
        'DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=25); with model.no_sync(): …',
    };
  return {
    kind: 'config',
    text: 'Use fewer GPUs per replica (tensor parallelism costs two all-reduces per layer), fuse the all-reduce with the norm after it, use the custom all-reduce for small messages, or overlap halves of the batch.',
    example: framework
      ? fewerGpus[framework]
      : 'work = dist.all_reduce(half, async_op=True); …  # the other half is computed; work.wait()',
  };
}
