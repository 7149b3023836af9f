import { isBarOf, isIdleBar } from '../../../model/bars.js';
import { idleCauses } from '../idle-causes.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { minShare, stageRule } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part, plural, times } from '../words.js';

/** The host waits for the device inside a step, then the device waits for the host. */
export const synchronizationEveryStep: Rule = stageRule(
  {
    id: 'synchronization_every_step',
    title: 'Synchronization inside the step',
    docs: {
      finds: 'The host waits for the GPU inside a step, and the GPU then waits for the host.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler",
      gain: 'The idle time after those waits, plus at most the kernels that only compute the value that is read.',
      change:
        'Keep results on the GPU, read them once per step at most, and remove `.item()`, `.cpu()` and synchronize calls from the loop.',
      withheld: 'less than 5 % of the stage at stake',
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
    const { wait } = idleCauses(stage);
    const stake = wait.synchronize + wait.copy + (await valuesRead(context, stage));
    const calls = stage.waits.synchronize.calls + stage.waits.copy.calls;
    return stake >= minShare * stage.wall_ms
      ? finding(context, stage, stake, calls)
      : `${plural(calls, 'host wait')} idle the device for ${part(stake, stage.wall_ms)} of the time`;
  },
);

/** Waiting for a value copies it: a few bytes, while nothing else runs. */
const valueBytes = 4096;

async function valuesRead({ database }: FindingContext, { kind, instances }: StageFacts): Promise<number> {
  const [row] = await database.query<{ ms: number }>(
    `SELECT coalesce(sum(ns), 0) / 1e6 / ${instances} AS ms FROM finding_copies
     WHERE kind = '${kind}' AND direction = 'DtoH' AND largest_bytes <= ${valueBytes}`,
  );
  return row?.ms ?? 0;
}

interface Place {
  name: string;
  place: string | null;
  per_instance: number;
  wait_ms: number;
}

async function finding(
  context: FindingContext,
  stage: StageFacts,
  stake: number,
  calls: number,
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, busy_ms: busy, instances } = stage;
  const { rows, evidence } = await context.evidence<Place & Record<string, string | number | null>>(
    waitsSql(kind, instances),
    (found) =>
      found
        .slice(0, 3)
        .map(
          (row) =>
            `${row.name}${row.place ? ` in ${row.place}` : ''}: ${times(row.per_instance)}, ${ms(row.wait_ms)}`,
        )
        .join('; '),
  );
  const [first] = rows;
  return {
    stage: kind,
    title: `Synchronization: the host waits for the device ${times(calls)} in ${everyInstance(kind)}; the device is then idle for ${part(stake, wall)} of it`,
    at_stake_ms: stake,
    cause: `${instanceWord(kind)} takes ${ms(wall)}; the device is busy for ${ms(busy)}. ${first ? `${first.name}${first.place ? ` in ${first.place}` : ''}` : 'A wait'} blocks the host until the device is done; only then does it launch the next kernels, so the device starts from an empty queue every time.`,
    change: /(Device|Ctx|Context|Thread)Synchronize$/.test(first?.name ?? '') ? changeExplicit : changeValues,
    gain: {
      expected_ms: stake,
      low_ms: stake / 2,
      high_ms: stake,
      after_ms: wall - stake,
      assumption:
        'Without waits the step takes as long as the slower of the host (its time minus the waits) and the device (its work, back to back).',
      what_if: 'no-sync',
    },
    confidence: 'high',
    removes: 'idle',
    bars: context.waterfalls
      .find((one) => one.kind === kind)
      ?.bars.map(({ id }) => id)
      .filter((id) => isIdleBar(id) || isBarOf(id, 'exposed_copy')) ?? ['synchronization'],
    evidence: [evidence],
    check:
      'inferscope run --evaluator none,nsys -- <the changed command>, then inferscope explain @last~1 --verify @last',
  };
}

/** Waits by call and by the innermost operator or range around them. */
function waitsSql(kind: string, instances: number): string {
  const inside =
    kind === 'outside'
      ? 'true'
      : `EXISTS (SELECT 1 FROM instances i WHERE i.kind = '${kind}' AND a.start_ns >= i.start_ns AND a.start_ns < i.host_end_ns)`;
  return `SELECT a.name, coalesce(o.name, s.raw_name) AS place, count(*) / ${instances} AS per_instance,
            round(sum(a.dur_ns) / 1e6 / ${instances}, 4) AS wait_ms, round(max(a.dur_ns) / 1e6, 4) AS longest_ms
     FROM own_api a LEFT JOIN (SELECT op_id, name FROM own_ops) o ON o.op_id = a.op_id
     LEFT JOIN (SELECT stage_id, raw_name FROM focus_stages) s ON s.stage_id = a.stage_id
     WHERE regexp_matches(a.name, 'Synchronize|^(cuda|hip)Memcpy|^(cu|hip)Memcpy[HD]') AND ${inside}
     GROUP BY ALL ORDER BY wait_ms DESC, name, place`;
}

/** Frameworks do not wait for the whole device themselves: the program calls it. */
const changeExplicit: FoundDraft['change'] = {
  kind: 'code',
  text: 'Take torch.cuda.synchronize() (cudaDeviceSynchronize) out of the loop: one after the last step is enough, and events time the steps without waiting.',
  example:
    'start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2)); start.record(); step(); end.record()',
};

const changeValues: FoundDraft['change'] = {
  kind: 'code',
  text: 'Keep results on the device (torch.where, index with tensors, argmax on the GPU), read them at most once per step and asynchronously, and remove .item(), .cpu(), print and assertions on tensors from the loop.',
  example:
    'token = logits.argmax(-1)  # stays on the GPU; ids.to("cpu", non_blocking=True) into pinned memory once per step',
};
