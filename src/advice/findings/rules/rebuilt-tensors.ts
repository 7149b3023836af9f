import { gainOf } from '../gain.js';
import { findRepeatedTensors } from '../operators/repeated-tensors.js';
import { copyRoles } from '../kernel-roles.js';
import { tablesOfPositions } from '../position-tables.js';
import { instanceFactor, stepSequence } from '../step-sequence.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { callsOf, count, everyInstance, instanceWord, ms, part, plural } from '../words.js';

/** Masks, weights or buffers that do not change are rebuilt in every step. */
export const rebuiltTensors = stageRule(
  {
    id: 'rebuilt_tensors',
    title: 'Tensors rebuilt in every step',
    docs: {
      finds: 'Masks, weights or buffers that do not change are rebuilt in every step.',
      needs: "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators of a program without a GPU",
      gain: 'The time of the kernels or operators that write them; low end 70 % of it.',
      change: 'Create them once before the loop.',
      withheld: 'less than 5 % of the stage is affected',
    },
    references: [
      {
        title: 'PyTorch Performance Tuning Guide',
        url: 'https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html',
      },
    ],
  },
  findFilledTensors,
  findRepeatedTensors,
);

type Row = { kernel: string; per_instance: number; us: number; ms: number };

/** Kernels that write a tensor without reading one, so that it cannot depend on the step. */
async function findFilledTensors(context: FindingContext, stage: StageFacts): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall, instances } = stage;
  if (kind !== 'decode' && kind !== 'mixed' && kind !== 'prefill')
    return 'judged for steps of inference only';
  const { rows, evidence } = await context.evidence<Row>(
    // The expressions are matched once per name, not once per launch.
    `SELECT name AS kernel, round(n / ${instances}, 2) AS per_instance, round(dur_ns / n / 1e3, 2) AS us, round(ns / 1e6 / ${instances}, 4) AS ms
     FROM (SELECT name, count(*) AS n, sum(dur_ns) AS dur_ns, sum(exclusive_ns) AS ns FROM phase_kernels
       WHERE step_kind = '${kind}' AND class = 'copy' GROUP BY name)
     WHERE ${copyRoles.constant} ORDER BY ms DESC, kernel`,
    (evidenceRows) =>
      evidenceRows
        .slice(0, 3)
        .map((row) => `${row.kernel}: ${callsOf(row)}`)
        .join('; '),
  );
  const sequence = await stepSequence(context, kind);
  const tables = tablesOfPositions(sequence);
  // The numbered and filled tensors of the tables are already in the rows.
  const computed = tables.flat().filter(({ role }) => role !== 'constant');
  const tablesMs =
    (computed.reduce((sum, { dur_ns }) => sum + dur_ns, 0) * instanceFactor(sequence, stage.compute_ms)) /
    1e6;
  const time = rows.reduce((sum, row) => sum + row.ms, tablesMs);
  if (time < minShare * wall) return `tensors filled with constants take ${part(time, wall)}`;
  const n = rows.reduce((sum, row) => sum + row.per_instance, computed.length);
  return {
    stage: kind,
    title: (share) =>
      `Rebuilt tensors: ${plural(n, 'kernel')} that only ${count(n) === '1' ? 'writes' : 'write'} ${tables.length > 0 ? 'constants and functions of positions' : 'constants'} take ${share} of ${everyInstance(kind)}`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} spends ${ms(time)} on filling tensors with values that depend on no input: a mask for the longest context, positions, a cleared buffer${tables.length === 0 ? '' : `, ${plural(tables.length, 'table')} of the sines and cosines of positions (${ms(tablesMs)})`}. They are the same in every step.`,
    change: {
      kind: 'code',
      text: 'Create them once, before the loop: a mask or positions for the longest context, sliced in each step.',
      example:
        'self.register_buffer("mask", mask, persistent=False)  # in a step: self.mask[start:end, :end]',
    },
    launches: n,
    gain: gainOf(wall, time, 'These kernels are removed, and no other gets slower.'),
    confidence: 'medium',
    bars: classBars(context, kind, tables.length > 0 ? ['copy', 'elementwise'] : ['copy']),
    evidence: [evidence],
    check: checkAgain,
  };
}
