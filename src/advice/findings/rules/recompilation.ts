import { gainOf } from '../gain.js';
import { compileRanges, longHostNs, moduleLoads } from '../finding-tables.js';
import { findRecompilation } from '../operators/compilation.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part, plural, times } from '../words.js';

/** Code is compiled or loaded in steps after the first ones. */
export const recompilation = stageRule(
  {
    id: 'recompilation',
    title: 'Recompilation in the loop',
    docs: {
      finds: 'Code is compiled or loaded in steps after the first ones.',
      needs: "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators of a program without a GPU",
      gain: 'The idle time while code is compiled or loaded; low end 90 % of it.',
      change: 'Mark varying sizes as dynamic, pad them to a few lengths, or warm up every shape first.',
      withheld:
        'less than 5 % of the stage is affected, or only the first step compiles, or there are no steps',
    },
    references: [
      {
        title: 'torch.compile: recompilation',
        url: 'https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html',
      },
      {
        title: 'torch.compile: dynamic shapes',
        url: 'https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html',
      },
    ],
  },
  async (context, stage) => {
    const { compile_ms: all, compiles, kind } = stage;
    const again = await readCompiledAgain(context, stage);
    const stake = again.recurs ? all : all * again.later;
    if (stake === 0 && compiles > 0)
      return kind === 'outside'
        ? 'without steps, it is unknown what is compiled again'
        : 'code is compiled or loaded in the first one only';
    if (stake < minShare * stage.wall_ms) {
      return `the device waits ${part(stake, stage.wall_ms)} of the time for code to be compiled or loaded (${times(compiles, kind)})`;
    }
    return finding(context, stage, stake);
  },
  findRecompilation,
);

/**
 * What is compiled in the first step may be compiled once.
 * @returns the share of the time that is in later steps, and whether at least half of these have any
 */
async function readCompiledAgain(
  { database }: FindingContext,
  { kind, instances }: StageFacts,
): Promise<{ later: number; recurs: boolean }> {
  const [row] = await database.query<{ later: number | null; steps: number }>(
    `SELECT sum(ns) FILTER (nth > 1) / sum(ns) AS later, count(DISTINCT stage_id) FILTER (nth > 1) AS steps FROM finding_long_hosts l
     JOIN (SELECT stage_id, row_number() OVER (ORDER BY start_ns) AS nth FROM windows WHERE kind = '${kind}') USING (stage_id)
     WHERE l.kind = '${kind}' AND cause = 'compile'`,
  );
  const steps = row?.steps ?? 0;
  return { later: row?.later ?? 0, recurs: steps > 0 && 2 * steps >= instances - 1 };
}

async function finding(context: FindingContext, stage: StageFacts, stake: number): Promise<FoundDraft> {
  const { kind, wall_ms: wall, compiles, instances } = stage;
  const inside =
    kind === 'outside'
      ? 'true'
      : `EXISTS (SELECT 1 FROM instances i WHERE i.kind = '${kind}' AND a.start_ns >= i.start_ns AND a.start_ns < i.host_end_ns)`;
  const { evidence } = await context.evidence<{ name: string; calls: number }>(
    `SELECT name, count(*) AS calls, round(count(*) / ${instances}, 2) AS per_instance, round(sum(dur_ns) / 1e6, 3) AS ms FROM (
       SELECT name, start_ns, dur_ns FROM rank_api WHERE regexp_matches(name, '${moduleLoads}')
       UNION ALL SELECT name, start_ns, dur_ns FROM rank_ops WHERE dur_ns > ${longHostNs} AND regexp_matches(name, '${compileRanges}', 'i')) a
     WHERE ${inside} GROUP BY name ORDER BY ms DESC`,
    (rows) =>
      rows
        .slice(0, 3)
        .map((row) => `${row.name}: ${plural(row.calls, 'call')}`)
        .join('; '),
  );
  const loadEvidence = await context.evidence<{ kernel: string; loads: number }>(
    `SELECT coalesce(k.name, k.short_name) AS kernel, count(*) AS loads FROM (
       SELECT start_ns FROM rank_api a WHERE regexp_matches(name, '${moduleLoads}') AND ${inside}) l
     ASOF JOIN (SELECT api_start_ns, short_name, name FROM rank_kernels WHERE api_start_ns IS NOT NULL) k ON l.start_ns <= k.api_start_ns
     GROUP BY ALL ORDER BY loads DESC, kernel`,
    (rows) =>
      `launched first after a code load: ${rows
        .slice(0, 3)
        .map((row) => `${row.kernel} (${plural(row.loads, 'load')})`)
        .join(', ')}`,
  );
  return {
    stage: kind,
    title: (share) =>
      `Recompilation: the device waits ${share} of ${everyInstance(kind)} for code to be compiled or loaded`,
    at_stake_ms: stake,
    cause: `${instanceWord(kind)} takes ${ms(wall)}; for ${ms(stake)} of it (${times(compiles, kind)}) the host compiles code and loads it onto the device. Inputs with a new shape, type or value make torch.compile, Triton, cuDNN's planner or a JIT specialize again.`,
    change: {
      kind: 'code',
      text: 'Mark the sizes that vary as dynamic, pad them to a few lengths, or warm up every shape before serving; TORCH_LOGS=recompiles names the guard that failed; if a library plans again for each size (cuDNN attention), choose another backend.',
      example: /cudnn.*(sdpa|fprop|attention)/i.test(loadEvidence.rows[0]?.kernel ?? '')
        ? 'with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): …  # cuDNN plans attention again for every length'
        : 'torch.compile(model, dynamic=True); torch._dynamo.mark_dynamic(x, 0)',
    },
    gain: gainOf(
      wall,
      stake,
      'Nothing is compiled in the loop; kernels for dynamic sizes are as fast as specialized ones.',
      { low_ms: 0.9 * stake },
    ),
    confidence: 'high',
    removes: 'idle',
    bars: barsOf(context, kind, ['host', 'launch_overhead']),
    evidence: loadEvidence.rows.length > 0 ? [evidence, loadEvidence.evidence] : [evidence],
    check: checkAgain,
  };
}
