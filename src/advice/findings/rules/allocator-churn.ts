import { inList } from '../finding-tables.js';
import { gainOf } from '../gain.js';
import { idleCauses } from '../idle-causes.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part, plural, timesPer } from '../words.js';

/** The loop calls the driver's allocator, which is slow and waits for the device. */
export const allocatorChurn = stageRule(
  {
    id: 'allocator_churn',
    title: 'Memory allocation in the loop',
    docs: {
      finds: 'Memory is allocated and freed through the driver inside the loop.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler with API calls",
      gain: 'The idle time behind those calls; low end 70 % of it.',
      change:
        'Keep memory in the caching allocator: no `empty_cache()` in the loop, buffers allocated before it.',
      withheld:
        'less than 5 % of the stage is affected, or it has a single instance, which allocates but never frees',
    },
    references: [
      {
        title: 'PyTorch: CUDA memory management',
        url: 'https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management',
      },
      {
        title: 'CUDA C++ Programming Guide: implicit synchronization',
        url: 'https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#implicit-synchronization',
      },
    ],
  },
  async (context, stage) => {
    const stake = idleCauses(stage).wait.allocator;
    if (stake < minShare * stage.wall_ms) {
      return `calls of the driver's allocator leave the device idle for ${part(stake, stage.wall_ms)} of the time`;
    }
    if (stage.instances === 1 && !(await freesMemory(context, stage)))
      return 'the only recorded instance allocates memory and frees none, as a pool does that grows once';
    return finding(context, stage, stake);
  },
);

/** Whether the stage gives memory back to the driver. */
async function freesMemory({ database }: FindingContext, { kind }: StageFacts): Promise<boolean> {
  const calls = await database.query(
    `SELECT 1 FROM finding_waits WHERE kind = '${kind}' AND cause = 'allocator' AND regexp_matches(name, '^(cuda|hip)Free|^cuMem(Free|Unmap|Release)') LIMIT 1`,
  );
  return calls.length > 0;
}

async function finding(context: FindingContext, stage: StageFacts, stake: number): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const { calls, ms: total } = stage.waits.allocator;
  const inside =
    kind === 'outside'
      ? ''
      : ` AND EXISTS (SELECT 1 FROM instances i WHERE i.kind = '${kind}' AND a.start_ns >= i.start_ns AND a.start_ns < i.host_end_ns)`;
  const names = await context.database.query<{ name: string }>(
    `SELECT DISTINCT name FROM finding_waits WHERE kind = '${kind}' AND cause = 'allocator' ORDER BY 1`,
  );
  const { rows, evidence } = await context.evidence<Calls>(
    `SELECT name, o.operator, round(count(*) / ${instances}, 4) AS per_instance, round(avg(dur_ns) / 1e3, 1) AS us, round(sum(dur_ns) / 1e6 / ${instances}, 4) AS ms
     FROM rank_api a LEFT JOIN (SELECT op_id, name AS operator FROM rank_ops) o USING (op_id) WHERE ${inList(names.map(({ name }) => name))}${inside} GROUP BY ALL ORDER BY ms DESC, name, operator`,
    (rows) =>
      rows
        .slice(0, 3)
        .map(
          (row) =>
            `${row.name}${row.operator === null ? '' : ` in ${row.operator}`}: ${timesPer(row.per_instance, kind)}, ${ms(row.ms)}`,
        )
        .join('; '),
  );
  return {
    stage: kind,
    title: (share) =>
      `Allocator churn: ${plural(calls, 'call')} of the driver's allocator ${calls > 1 ? 'hold' : 'holds'} up ${share} of ${everyInstance(kind)}`,
    at_stake_ms: stake,
    cause: `${instanceWord(kind)} spends ${ms(total)} of the host's time in ${plural(calls, 'call')} that allocate or free memory through the driver. Freeing waits until the device is idle, so its queue is empty afterwards; allocating maps memory again.`,
    change: algorithmSearch(rows) ?? {
      kind: 'code',
      text: 'Keep memory in the caching allocator: no torch.cuda.empty_cache() in the loop, buffers allocated once before it, and expandable segments if sizes vary.',
      example: 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; drop torch.cuda.empty_cache()',
    },
    gain: gainOf(
      wall,
      stake,
      'The calls are removed; the host then runs ahead of the device as far as its own work allows.',
    ),
    confidence: 'high',
    removes: 'idle',
    bars: barsOf(context, kind, [
      'synchronization',
      'launch_overhead',
      'launch_latency',
      'host',
      'device_dependency',
    ]),
    evidence: [evidence],
    check: checkAgain,
  };
}

type Calls = { name: string; operator: string | null; per_instance: number; ms: number };

/**
 * The change if cuDNN's search for the fastest convolution makes most of the calls (it allocates many workspaces and empties
 * the cache before and after); null otherwise.
 */
function algorithmSearch(rows: readonly Calls[]): FoundDraft['change'] | null {
  const sum = (calls: readonly Calls[]) => calls.reduce((total, row) => total + row.ms, 0);
  const convolutions = rows.filter(({ operator }) => /cudnn_convolution|miopen/i.test(operator ?? ''));
  if (sum(convolutions) <= sum(rows) / 2) return null;
  return {
    kind: 'code',
    text: 'Most of these calls are inside a convolution that benchmarks algorithms for new sizes: run every input size once before measuring or serving, use few sizes, or turn the search off.',
    example: 'torch.backends.cudnn.benchmark = False',
  };
}
