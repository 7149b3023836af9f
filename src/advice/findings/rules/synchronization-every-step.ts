import { changeFor } from '../framework.js';
import { gainOf } from '../gain.js';
import { isBarOf, isIdleBar } from '../../../model/bars.js';
import { idleCauses, isLaunchBound, minLaunches, stretchesOfDispatch } from '../idle-causes.js';
import { engineHostChange } from '../launch-changes.js';
import { innerWaits, minInnerWaits } from '../inner-waits.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { minShare, stageRule } from '../stage-rule.js';
import { instanceWord, ms, part, timesPer } from '../words.js';

/** The host waits for the device inside a step, then the device waits for the host. */
export const synchronizationEveryStep: Rule = stageRule(
  {
    id: 'synchronization_every_step',
    title: 'Synchronization inside the step',
    docs: {
      finds: 'The host waits for the GPU inside a step, and the GPU then waits for the host.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler",
      gain: 'The idle time after those waits, the time that the host needs to read the value, and the copies of the value.',
      change:
        'Keep results on the GPU, read them once per step at most, and remove `.item()`, `.cpu()` and synchronize calls from the loop.',
      withheld: 'less than 5 % of the stage is affected',
    },
    references: [
      {
        title: 'PyTorch Performance Tuning Guide: avoid unnecessary CPU-GPU synchronization',
        url: 'https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html',
      },
      {
        title: 'CUDA Runtime API: API synchronization behavior',
        url: 'https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html',
      },
    ],
  },
  async (context, stage) => {
    const causes = idleCauses(stage);
    const { wait } = causes;
    const waits = wait.synchronize + wait.read + (await readValueCopiesMs(context, stage));
    const calls = stage.waits.synchronize.calls + stage.waits.read.calls;
    const inner = isLaunchBound(stage, causes, minShare) ? await innerWaits(context, stage) : 0;
    const launches =
      inner >= minInnerWaits && stage.launches < minLaunches * (inner + 1)
        ? causes.launch + stretchesOfDispatch(stage, causes)
        : 0;
    const stake = waits + launches;
    return stake >= minShare * stage.wall_ms
      ? finding(context, stage, { waits, calls, launches })
      : `host waits leave the device idle for ${part(waits, stage.wall_ms)} of the time`;
  },
);

/** Waiting for a value copies it: a few bytes, while nothing else runs. */
const valueBytes = 4096;

async function readValueCopiesMs(
  { database }: FindingContext,
  { kind, instances }: StageFacts,
): Promise<number> {
  const [row] = await database.query<{ ms: number }>(
    `SELECT coalesce(sum(ns), 0) / 1e6 / ${instances} AS ms FROM finding_copies
     WHERE kind = '${kind}' AND direction = 'DtoH' AND largest_bytes <= ${valueBytes}`,
  );
  return row?.ms ?? 0;
}

interface Place {
  name: string;
  place: string | null;
  /** Kernel that was launched last before the wait. */
  kernel: string | null;
  per_instance: number;
  wait_ms: number;
}

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { waits, calls, launches }: { waits: number; calls: number; launches: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, busy_ms: busy, instances } = stage;
  const stake = waits + launches;
  const { rows, evidence } = await context.evidence<Place & Record<string, string | number | null>>(
    waitsSql(kind, instances),
    (evidenceRows) =>
      evidenceRows
        .slice(0, 3)
        .map((row) => `${callOf(row)}: ${timesPer(row.per_instance, kind)}, ${ms(row.wait_ms)}`)
        .join('; '),
  );
  const [first] = rows;
  return {
    stage: kind,
    title: (share) =>
      `Synchronization: the host waits for the device ${timesPer(calls, kind)}${launches > 0 ? `, which prevents a CUDA graph; waits and launches leave the device idle for ${share} of it` : `; the device is then idle for ${share} of it`}`,
    at_stake_ms: stake,
    cause: `${instanceWord(kind)} takes ${ms(wall)}; the device is busy for ${ms(busy)}. ${first ? callOf(first) : 'A wait'} blocks the host until the device is done; only then does it launch the next kernels, so the device starts from an empty queue every time.${launches > 0 ? ` The launches between the waits cost another ${ms(launches)}, which are not in the gain: a CUDA graph removes them once nothing that is launched depends on values that the host reads.` : ''}`,
    change:
      launches > 0
        ? await changeFor(context, hasNoExperts(context) ? changeBranches : changeInside, inCuda.inside)
        : /(Device|Ctx|Context|Thread)Synchronize$/.test(first?.name ?? '')
          ? await changeFor(context, changeExplicit, inCuda.explicit)
          : ((await engineHostChange(context)) ?? (await changeFor(context, changeValues, inCuda.values))),
    gain: gainOf(
      wall,
      waits,
      'Without waits the step takes as long as the slower of the host (its time minus the waits) and the device (its work, back to back).',
      { low_ms: waits / 2, what_if: 'no-sync' },
    ),
    confidence: 'high',
    removes: 'idle',
    bars: context.waterfalls
      .find((waterfall) => waterfall.kind === kind)
      ?.bars.map(({ id }) => id)
      .filter((id) => isIdleBar(id) || isBarOf(id, 'exposed_copy')) ?? ['synchronization'],
    evidence: [evidence],
    check:
      'inferscope run --evaluator none,nsys -- <the changed command>, then inferscope explain @last~1 --verify @last',
  };
}

const callOf = ({ name, place, kernel }: Place): string =>
  `${name}${place !== null ? ` in ${place}` : kernel !== null ? ` after "${kernel}"` : ''}`;

/** Waits by call and by the innermost operator or range around them, else by the kernel launched before them. */
function waitsSql(kind: string, instances: number): string {
  const inside =
    kind === 'outside'
      ? 'true'
      : `EXISTS (SELECT 1 FROM instances i WHERE i.kind = '${kind}' AND a.start_ns >= i.start_ns AND a.start_ns < i.host_end_ns)`;
  return `SELECT name, place, CASE WHEN place IS NULL THEN mode(kernel) END AS kernel, count(*) / ${instances} AS per_instance,
            round(sum(dur_ns) / 1e6 / ${instances}, 4) AS wait_ms, round(max(dur_ns) / 1e6, 4) AS longest_ms
     FROM (SELECT a.name, a.dur_ns, coalesce(o.name, s.raw_name) AS place, k.kernel
       FROM rank_api a ASOF LEFT JOIN (SELECT tid, api_start_ns, coalesce(name, short_name) AS kernel FROM rank_kernels WHERE api_start_ns IS NOT NULL) k
         ON k.tid = a.tid AND k.api_start_ns <= a.start_ns
       LEFT JOIN (SELECT op_id, name FROM rank_ops) o ON o.op_id = a.op_id
       LEFT JOIN (SELECT stage_id, raw_name FROM phase_stages WHERE kind = 'other') s ON s.stage_id = a.stage_id
       WHERE regexp_matches(a.name, 'Synchronize|^(cuda|hip)Memcpy|^(cu|hip)Memcpy[HD]') AND ${inside})
     GROUP BY name, place ORDER BY wait_ms DESC, name, place`;
}

/** Frameworks do not wait for the whole device themselves: the program calls it. */
const changeExplicit: FoundDraft['change'] = {
  kind: 'code',
  text: 'Take torch.cuda.synchronize() (cudaDeviceSynchronize) out of the loop: one after the last step is enough, and events time the steps without waiting.',
  example:
    'start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2)); start.record(); step(); end.record()',
};

/**
 * The next launch depends on a value from the device: a loop over the experts that have tokens, or a branch on a
 * tensor.
 */
const changeInside: FoundDraft['change'] = {
  kind: 'code',
  text: 'Make the step independent of values that the host reads: compute all experts in one grouped GEMM, replace branches and nonzero() by torch.where and masks. Then launch the whole step as a CUDA graph.',
  example:
    'y = torch._grouped_mm(x_by_expert, weights, offs=ends)  # no loop over experts; then torch.cuda.CUDAGraph or mode="reduce-overhead"',
};

/** The same for a model without experts. */
const changeBranches: FoundDraft['change'] = {
  kind: 'code',
  text: 'Make the step independent of values that the host reads: replace branches and nonzero() by torch.where and masks, and take checks of values out of it. Then launch the whole step as a CUDA graph.',
  example:
    'y = torch.where(condition, a, b)  # no branch on a tensor; then torch.cuda.CUDAGraph or mode="reduce-overhead"',
};

const hasNoExperts = ({ model }: FindingContext): boolean =>
  'architecture' in model && model.architecture.layers.every(({ mlp }) => mlp.kind !== 'moe');

const changeValues: FoundDraft['change'] = {
  kind: 'code',
  text: 'Keep results on the device (torch.where, index with tensors, argmax on the GPU), read them at most once per step and asynchronously, and remove .item(), .cpu(), print and assertions on tensors from the loop.',
  example:
    'token = logits.argmax(-1)  # stays on the GPU; ids.to("cpu", non_blocking=True) into pinned memory once per step',
};

/** The same changes for a program without PyTorch. */
const inCuda = {
  explicit: {
    text: 'Take cudaDeviceSynchronize and cudaStreamSynchronize out of the loop: one after the last step is enough, and events time the steps without waiting.',
    example: 'cudaEventRecord(start, stream); …; cudaEventRecord(end, stream)',
  },
  inside: {
    text: 'Make the step independent of values that the host reads: compute on the device what decides which kernels run. Then launch the whole step as a CUDA graph.',
    example: null,
  },
  values: {
    text: 'Keep results on the device, and read them at most once per step, asynchronously into pinned memory.',
    example:
      'cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream)  # host from cudaMallocHost',
  },
};
