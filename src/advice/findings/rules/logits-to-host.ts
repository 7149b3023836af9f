import { gainOf } from '../gain.js';
import { idleCauses } from '../idle-causes.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { stageShape } from '../stage-shape.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part } from '../words.js';
import { formatBytes, formatQuantity, plural } from '../../../vocabulary/format.js';

/** Token ids take 8 bytes per sequence; larger copies are logits, probabilities or hidden states. */
const minLogitCopyBytes = 32 * 1024;
/** Host work on the copied data starts within this time. */
const maxDelayNs = 200_000;
/** Share of copies with distinct sizes above which they are not logits, which have as many sizes as there are batches. */
const minDistinctShare = 0.5;
/** Time of argmax on the device (H200, 64 × 128 256: two short kernels). */
const onDeviceMs = 0.03;

interface Back {
  bytes: number;
  ms: number;
  /** Whether they are most of what is copied to the device. */
  isMost: boolean;
}

/** Per mean instance. */
interface LogitCopies {
  n: number;
  bytes: number;
  ms: number;
  /** Host work right after the copies, ms. */
  after: number;
  back: Back | null;
  stake: number;
}

/** Logits or states are copied to the host in every step, for sampling, logging or checks there. */
export const logitsToHost = stageRule(
  {
    id: 'logits_to_host',
    title: 'Logits copied to the host',
    docs: {
      finds: 'Logits, probabilities or hidden states are copied to the host in every step.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler",
      gain: 'The exposed copy, the host work right after it and copies of as many bytes back to the GPU, minus the time to sample on the GPU.',
      change: 'Sample on the GPU and copy only token ids.',
      withheld:
        'less than 5 % of the stage is affected, copies of less than 32 KiB, or steps that generate no tokens',
    },
    references: [
      {
        title: 'PyTorch Performance Tuning Guide: avoid unnecessary CPU-GPU synchronization',
        url: 'https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html',
      },
    ],
  },
  async (context, stage) => {
    if (stage.kind !== 'decode' && stage.kind !== 'mixed')
      return 'only steps that generate tokens are judged';
    const [copies] = await context.database.query<{
      n: number;
      bytes: number;
      ms: number;
      all: number;
      sizes: number;
    }>(
      `SELECT count(*) / ${stage.instances} AS n, count(*) AS all, count(DISTINCT bytes) AS sizes, coalesce(sum(bytes), 0)::DOUBLE / ${stage.instances} AS bytes, coalesce(sum(exclusive_ns), 0) / 1e6 / ${stage.instances} AS ms
       FROM (${largeCopiesSql(stage)})`,
    );
    if (!copies || copies.n < 0.5) return 'few or no steps copy more than token ids to the host';
    if (copies.sizes > minDistinctShare * copies.all)
      return 'what is copied to the host has another size in most steps: token ids or text, not logits';
    const minBytes = await minLogitBytes(context, stage.kind);
    if (minBytes !== null && copies.bytes < minBytes)
      return `${formatBytes(copies.bytes)} per step are copied to the host; logits and hidden states of its batch are larger`;
    const [host] = await context.database.query<{ ms: number }>(
      `SELECT coalesce(sum(l.ns), 0) / 1e6 / ${stage.instances} AS ms FROM finding_long_hosts l
       WHERE l.kind = '${stage.kind}' AND EXISTS (SELECT 1 FROM (${largeCopiesSql(stage)}) c
         WHERE l.start_ns >= c.start_ns AND l.start_ns <= c.start_ns + c.dur_ns + ${maxDelayNs})`,
    );
    const idle = idleCauses(stage);
    // Gaps as recorded, limited to the long host gaps without the profiler.
    const after = Math.min(host?.ms ?? 0, stage.long_host_ms + stage.compile_ms + stage.first_use_ms);
    const back = await copiedBack(context, stage);
    const stake = delayMs(copies.ms, idle.wait.read, stage.waits.read.ms) + after + (back?.ms ?? 0);
    if (stake < minShare * stage.wall_ms) {
      return `${formatBytes(copies.bytes)} per step are copied to the host and cost ${part(stake, stage.wall_ms)}`;
    }
    return finding(context, stage, { ...copies, after, back, stake });
  },
);

/**
 * What copies and the waits for them cost a step, ms: their own time, and the idle time after them as far as the host waits longer than they
 * take. Its own work takes the rest of the step, and a step without these waits is not shorter than that.
 */
const delayMs = (exposed: number, idle: number, waited: number): number =>
  Math.max(exposed, Math.min(exposed + idle, waited));

/**
 * Copies to the device of as many bytes as were copied from it: logits that the host changed. Null where none go back.
 * @returns per mean instance: bytes, and ms that they and the waits for them delay it
 */
async function copiedBack(context: FindingContext, stage: StageFacts): Promise<Back | null> {
  const [copied] = await context.database.query<{ bytes: number; others: number; ms: number }>(
    `SELECT coalesce(sum(bytes) FILTER (same), 0)::DOUBLE / ${stage.instances} AS bytes, coalesce(sum(bytes) FILTER (NOT same), 0)::DOUBLE / ${stage.instances} AS others,
            coalesce(sum(exclusive_ns) FILTER (same), 0) / 1e6 / ${stage.instances} AS ms
     FROM (SELECT bytes, exclusive_ns, bytes IN (SELECT bytes FROM (${largeCopiesSql(stage)})) AS same FROM phase_copies WHERE step_kind = '${stage.kind}' AND kind = 'HtoD')`,
  );
  if (!copied || copied.bytes === 0) return null;
  const { bytes, ms: exposed, others } = copied;
  const part = bytes / (bytes + others);
  return {
    bytes,
    ms: delayMs(exposed, idleCauses(stage).wait.copy * part, stage.waits.copy.ms * part),
    isMost: bytes > others,
  };
}

/** Bytes of a batch's hidden states or logits, the smaller of the two, at 16 bits per value; null if unknown. */
async function minLogitBytes(context: FindingContext, kind: 'decode' | 'mixed'): Promise<number | null> {
  const shape = await stageShape(context, kind);
  if (!shape || !('architecture' in context.model)) return null;
  const { hiddenSize, vocabSize } = context.model.architecture;
  return 2 * shape.batchSize * Math.min(hiddenSize, vocabSize);
}

const largeCopiesSql = ({ kind }: StageFacts): string =>
  `SELECT c.start_ns, c.dur_ns, c.bytes, c.dst_kind, c.exclusive_ns FROM (SELECT *, coalesce(api_start_ns, start_ns) AS at_ns FROM rank_copies WHERE kind = 'DtoH' AND bytes >= ${minLogitCopyBytes}) c
   ASOF JOIN (SELECT start_ns AS w_start, host_end_ns AS w_end, kind AS w_kind FROM instances WHERE kind <> 'sampling') w ON c.at_ns >= w.w_start
   WHERE c.at_ns < w.w_end AND w.w_kind = '${kind}'`;

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { n, bytes, ms: exposed, after, back, stake }: LogitCopies,
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const { evidence } = await context.evidence<{
    memory: string;
    copies: number;
    mib: number;
    gb_per_s: number;
  }>(
    `SELECT coalesce(dst_kind, 'unknown') AS memory, round(count(*) / ${instances}, 2) AS copies, round(avg(bytes) / 1048576, 3) AS mib,
            round(sum(dur_ns) / 1e6 / ${instances}, 4) AS ms, round(sum(bytes) / nullif(sum(dur_ns), 0), 2) AS gb_per_s
     FROM (${largeCopiesSql(stage)}) GROUP BY ALL ORDER BY ms DESC`,
    (rows) =>
      rows
        .map(
          (row) =>
            `${plural(row.copies, 'copy', 'copies')} of ${formatBytes(row.mib * 2 ** 20)} into ${row.memory} memory, ${formatQuantity(row.gb_per_s * 1e9, 'B/s')}`,
        )
        .join('; '),
  );
  const gain = Math.max(0, stake - onDeviceMs);
  return {
    stage: kind,
    title: (share) =>
      `Logits copied to the host: ${formatBytes(bytes)} take ${share} of ${everyInstance(kind)}`,
    at_stake_ms: stake,
    cause: `${instanceWord(kind)} copies ${formatBytes(bytes)} to the host in ${plural(n, 'copy', 'copies')} (${ms(exposed)} exposed)${after > 0 ? `; the host then works on them for ${ms(after)} while the device waits` : ''}${back ? `; ${formatBytes(back.bytes)} are copied back (${ms(back.ms)})` : ''}. Token ids would take 8 bytes per sequence.`,
    change: {
      kind: 'code',
      text: 'Sample on the device and copy only token ids, or copy nothing until the text is needed.',
      example: 'next_token = logits.argmax(-1)  # or torch.multinomial on the GPU; no .cpu() in the loop',
    },
    gain: gainOf(
      wall,
      gain,
      `Sampling on the device takes ${ms(onDeviceMs)}; the copy and the host work on it are removed.`,
      { low_ms: Math.max(0, exposed - onDeviceMs), high_ms: stake },
    ),
    confidence: 'high',
    removes: 'idle',
    covers: [
      ...(back?.isMost ? ['host_copies'] : []),
      ...(stage.waits.synchronize.ms < stage.waits.read.ms / 2 ? ['synchronization_every_step'] : []),
    ],
    bars: barsOf(context, kind, [
      'exposed_copy.dtoh',
      'exposed_copy.dtoh_pageable',
      'exposed_copy.dtoh_pinned',
      ...(back ? ['exposed_copy.htod', 'exposed_copy.htod_pageable', 'exposed_copy.htod_pinned'] : []),
      'host',
      'launch_overhead',
      'launch_latency',
      'synchronization',
    ]),
    evidence: [evidence],
    check: checkAgain,
  };
}
