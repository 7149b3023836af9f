import { changeFor } from '../framework.js';
import { gainOf } from '../gain.js';
import { stepKindsSql } from '../../../model/record.js';
import { copyWaitMs, idleCauses } from '../idle-causes.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { type StageFacts, stageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, type StageOutcome, minShare, noTimeline, outcomeOf } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part, plural } from '../words.js';
import { formatBytes, formatQuantity } from '../../../vocabulary/format.js';

/** Pinned-memory rate, B/s, if the link is not known: PCIe 5 ×16 has 63 GB/s minus protocol overhead, PCIe 4 half of it. */
const pinnedBytesPerS = 50e9;
/** Share of the link's rate that large copies from pinned memory reach. */
const linkShare = 0.85;

interface Copies {
  memory: string | null;
  n: number;
  bytes: number;
  largest_bytes: number;
  dur_ms: number;
  ms: number;
}

/** Inputs are copied to the device while it is idle. */
export const hostCopies: Rule = {
  id: 'host_copies',
  title: 'Copies from the host in every step',
  docs: {
    finds: 'Inputs are copied to the GPU while it is idle, in a step or before it.',
    needs: "a GPU timeline: nsys, or PyTorch's profiler",
    gain: 'The exposed copy time minus the time for the same bytes from pinned memory overlapped with kernels; low end at half that rate, without overlap.',
    change: 'Copy from pinned memory, asynchronously, before the step needs the data.',
    withheld: 'less than 5 % of the stage is affected',
  },
  references: [
    {
      title: 'CUDA C++ Best Practices Guide: pinned memory, asynchronous transfers',
      url: 'https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#data-transfer-between-host-and-device',
    },
    {
      title: 'PyTorch: pin_memory and non_blocking',
      url: 'https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html',
    },
  ],
  async find(context) {
    const stages = await stageFacts(context);
    const outcomes: StageOutcome[] = [];
    for (const stage of stages) outcomes.push([stage.kind, await judge(context, stage)]);
    if (stages.some(({ kind }) => kind !== 'outside'))
      outcomes.push(['between stages', await judgeBetween(context)]);
    return outcomeOf(outcomes, noTimeline);
  },
};

async function judge(context: FindingContext, stage: StageFacts): Promise<FoundDraft | string> {
  const rows = await context.database.query<Copies>(
    `SELECT coalesce(memory, 'unknown') AS memory, n / ${stage.instances} AS n, bytes / ${stage.instances} AS bytes, largest_bytes,
              dur_ns / 1e6 / ${stage.instances} AS dur_ms, ns / 1e6 / ${stage.instances} AS ms
       FROM finding_copies WHERE kind = '${stage.kind}' AND direction = 'HtoD' ORDER BY ns DESC`,
  );
  const exposed = rows.reduce((sum, row) => sum + row.ms, 0);
  const stake = exposed + copyWaitMs(idleCauses(stage), stage, stage);
  if (stake < minShare * stage.wall_ms) {
    return `exposed copies to the device take ${part(exposed, stage.wall_ms)}`;
  }
  return finding(context, stage, { rows, exposed, stake });
}

/** Copies after one stage and before the next, that belong to neither. */
const betweenSql = `SELECT c.bytes, c.dur_ns, c.exclusive_ns, coalesce(c.src_kind, 'unknown') AS memory
  FROM phase_copies c, (SELECT min(start_ns) AS from_ns, max(end_ns) AS until_ns, count(*) AS n FROM windows WHERE kind IN ${stepKindsSql}) run
  WHERE c.step_kind IS NULL AND c.kind = 'HtoD' AND c.start_ns >= run.from_ns AND c.start_ns < run.until_ns`;

async function judgeBetween(context: FindingContext): Promise<FoundDraft | string> {
  const [between] = await context.database.query<{
    n: number;
    bytes: number;
    pageable: number;
    pinned: number;
    dur_ms: number;
    ms: number;
    run_ms: number;
    pauses: number;
  }>(
    `SELECT count(*) AS n, coalesce(sum(bytes), 0)::DOUBLE AS bytes, coalesce(sum(bytes) FILTER (memory = 'pageable'), 0)::DOUBLE AS pageable,
       coalesce(sum(bytes) FILTER (memory = 'pinned'), 0)::DOUBLE AS pinned,
       coalesce(sum(dur_ns), 0) / 1e6 AS dur_ms, coalesce(sum(exclusive_ns), 0) / 1e6 AS ms,
       (SELECT (max(end_ns) - min(start_ns)) / 1e6 FROM windows WHERE kind IN ${stepKindsSql}) AS run_ms,
       (SELECT count(*) - 1 FROM windows WHERE kind IN ${stepKindsSql}) AS pauses
     FROM (${betweenSql})`,
  );
  if (!between || between.n === 0 || between.pauses < 1)
    return 'nothing is copied to the device between stages';
  if (between.ms < minShare * between.run_ms)
    return `exposed copies to the device take ${part(between.ms, between.run_ms)} of the run`;
  const { evidence } = await context.evidence<{ memory: string; copies: number; mib: number; ms: number }>(
    `SELECT memory, count(*) AS copies, round(sum(bytes) / 1048576, 3) AS mib, round(sum(dur_ns) / 1e6, 4) AS ms, round(sum(exclusive_ns) / 1e6, 4) AS exposed_ms
     FROM (${betweenSql}) GROUP BY memory ORDER BY exposed_ms DESC`,
    (rows) =>
      rows
        .map((row) => `${row.memory} memory: ${plural(row.copies, 'copy', 'copies')}, ${ms(row.ms)}`)
        .join('; '),
  );
  const pageable = between.pageable > between.bytes / 2;
  const each = between.ms / between.pauses;
  const from = pageable ? 'pageable' : between.pinned > between.bytes / 2 ? 'pinned' : null;
  const rate = pinnedRate(context);
  const after = ((between.bytes / between.pauses) * 1e3) / rate;
  return {
    stage: null,
    title: (share) =>
      `Exposed H2D copies between stages: ${formatBytes(between.bytes / between.pauses)}${fromWords(from)} before each, ${share} of the run`,
    share: between.ms / between.run_ms,
    at_stake_ms: each,
    run_ms: between.ms,
    cause: `Before a stage starts, ${formatBytes(between.bytes / between.pauses)} are copied to the device in ${ms(each)}, at ${formatQuantity((between.bytes * 1e3) / Math.max(between.dur_ms, 1e-9), 'B/s')}, while no kernel runs. ${pageable ? fromPageable : 'The stage waits for them.'}`,
    change: await changeOf(context, pageable),
    gain: {
      per: 'pause',
      expected_ms: each,
      low_ms: Math.max(0, each - after),
      high_ms: each,
      after_ms: 0,
      assumption: `Pinned memory at ${formatQuantity(rate, 'B/s')}, copied while the stage before is computed (low: not overlapped); per pause between two stages.`,
      what_if: null,
    },
    confidence: 'high',
    removes: 'idle',
    bars: [],
    evidence: [evidence],
    check: checkAgain,
  };
}

function pinnedRate({ roofs }: FindingContext): number {
  const link = roofs?.hostLink.value ?? null;
  return link === null ? pinnedBytesPerS : linkShare * link;
}

/** Words for the memory that most of the bytes come from; none if it is not known. */
const fromWords = (memory: string | null): string => (memory === null ? '' : ` from ${memory} memory`);

const fromPageable =
  'From pageable memory the driver copies through its own buffer, and the call blocks until the copy is done.';

async function changeOf(context: FindingContext, pageable: boolean): Promise<FoundDraft['change']> {
  const text = pageable
    ? 'Keep host tensors in pinned memory, copy asynchronously on a separate stream during the previous step, and keep unchanged data on the device.'
    : 'Copy on a separate stream during the previous step, and keep unchanged data on the device.';
  const example =
    'x = x.pin_memory(); with torch.cuda.stream(copies): x_gpu = x.to("cuda", non_blocking=True)';
  return changeFor(
    context,
    { kind: 'code', text, example },
    {
      text: text.replace('host tensors', 'host buffers'),
      example: 'cudaMallocHost(&x, bytes); cudaMemcpyAsync(x_gpu, x, bytes, cudaMemcpyHostToDevice, copies)',
    },
  );
}

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { rows, exposed, stake }: { rows: Copies[]; exposed: number; stake: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, compute_ms: compute, instances } = stage;
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  const n = rows.reduce((sum, row) => sum + row.n, 0);
  const dur = rows.reduce((sum, row) => sum + row.dur_ms, 0);
  const bytesFrom = (memory: string) =>
    rows.filter((row) => row.memory === memory).reduce((sum, row) => sum + row.bytes, 0);
  const pageable = bytesFrom('pageable') > bytes / 2;
  const from = pageable ? 'pageable' : bytesFrom('pinned') > bytes / 2 ? 'pinned' : null;
  const copyMs = (rate: number) => (bytes / rate) * 1e3;
  const pinned = pinnedRate(context);
  const expected = Math.max(0, stake - Math.max(0, copyMs(pinned) - compute));
  const low = Math.max(0, stake - copyMs(pinned / 2));
  const { evidence } = await context.evidence<{
    memory: string;
    copies: number;
    mib: number;
    gb_per_s: number;
  }>(
    `SELECT coalesce(src_kind, 'unknown') AS memory, round(count(*) / ${instances}, 2) AS copies, round(sum(bytes) / 1048576 / ${instances}, 3) AS mib,
            round(sum(dur_ns) / 1e6 / ${instances}, 4) AS ms, round(sum(bytes) / nullif(sum(dur_ns), 0), 2) AS gb_per_s, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS exposed_ms
     FROM phase_copies WHERE step_kind = '${kind}' AND kind = 'HtoD' GROUP BY ALL ORDER BY exposed_ms DESC`,
    (evidenceRows) =>
      evidenceRows
        .map(
          (row) =>
            `${row.memory} memory: ${plural(row.copies, 'copy', 'copies')} of ${formatQuantity(row.mib * 2 ** 20, 'B')} together, ${formatQuantity(row.gb_per_s * 1e9, 'B/s')}`,
        )
        .join('; '),
  );
  return {
    stage: kind,
    title: (share) =>
      `Exposed H2D copies: ${formatBytes(bytes)}${fromWords(from)}${stake > exposed ? ' and waits for them' : ''} take ${share} of ${everyInstance(kind)}`,
    at_stake_ms: stake,
    cause: `${instanceWord(kind)} copies ${formatBytes(bytes)} to the device in ${plural(n, 'copy', 'copies')}, at ${formatQuantity((bytes * 1e3) / Math.max(dur, 1e-9), 'B/s')}, and ${ms(exposed)} of it is exposed. ${pageable ? fromPageable : 'The copy precedes the kernels in the same stream.'}`,
    change: await changeOf(context, pageable),
    gain: gainOf(
      wall,
      expected,
      `Pinned memory at ${formatQuantity(pinned, 'B/s')}${context.roofs?.hostLink.value ? '' : ' (PCIe 5; the link of this GPU is not known)'}, copied while ${ms(compute)} of kernels run (low: half that rate, not overlapped).`,
      { low_ms: low, high_ms: stake, what_if: 'pinned-copies' },
    ),
    confidence: 'high',
    removes: 'idle',
    bars: barsOf(context, kind, [
      'exposed_copy.htod',
      'exposed_copy.htod_pageable',
      'exposed_copy.htod_pinned',
      'synchronization',
      'launch_overhead',
      'launch_latency',
    ]),
    evidence: [evidence],
    check: checkAgain,
  };
}
