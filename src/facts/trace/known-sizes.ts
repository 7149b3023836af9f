import { kindsSql, stepKinds } from '../../model/record.js';
import type { SessionDatabase } from '../../session/query.js';
import { literal, scopeKey, type TraceScope } from './scope.js';

const kinds = kindsSql([...stepKinds, 'sampling']);

const sizes = ['batch_size', 'new_tokens', 'context_tokens_sum'] as const;
type Sizes = Record<(typeof sizes)[number], number | null>;
const lacksSize = sizes.map((size) => `${size} IS NULL`).join(' OR ');
const anySize = sizes.map((size) => `${size} IS NOT NULL`).join(' OR ');

/** Sources of a size, in order of preference, with their names in tables. */
const sources = [
  { alias: 'o', from: 'the stages' },
  { alias: 'r', from: 'the stages' },
  { alias: 'p', from: "operators' shapes" },
  { alias: 'e', from: 'the stages of another capture' },
  { alias: 'x', from: 'the stages of another execution' },
] as const;

/** Columns of `stage_sizes` and `known_sizes`, joined as k. */
export const sizeColumns =
  'k.batch_size, k.new_tokens, k.context_tokens_sum, k.source_tokens, k.sizes_from, k.steps_here, k.steps_elsewhere';

/**
 * Makes `stage_sizes` (execution_id, capture_id, stage_id and `sizeColumns`): the known sizes of each step. A size
 * comes from the step's range, else from the workload's record of the same step in the same execution and process, else
 * from shapes of its operators, else from the n-th step of this kind in another capture of the execution, else in
 * another execution. The n-th step is used only if both have the same number of steps of the kind, and all such sources
 * agree. `steps_elsewhere` is the number of steps in a capture with sizes that could not be matched, because it differs
 * from `steps_here`; null if there is none. `source_tokens` are the tokens per sequence that the first
 * prefill of the step's iteration encoded, if the model has an encoder: those that are not in the decoder's context.
 */
export async function makeStageSizes(database: SessionDatabase): Promise<void> {
  const shapes = valuesSql(await readOperatorSizes(database));
  const agreed = sizes.map(
    (size) => `CASE WHEN min(t.${size}) = max(t.${size}) THEN min(t.${size}) END AS ${size}`,
  );
  const stage = 'o.execution_id, o.capture_id, o.stage_id';
  const sameKind = 't.rank = o.rank AND t.kind = o.kind';
  const nth = `${sameKind} AND t.warm = o.warm AND t.nth = o.nth AND t.step_count = o.step_count`;
  const stepsWithoutSize = `(SELECT * FROM steps WHERE ${lacksSize})`;
  const sizesOf = (on: string) =>
    `SELECT ${stage}, ${agreed.join(', ')} FROM ${stepsWithoutSize} o JOIN sized t ON ${on} GROUP BY ALL`;
  const firstKnown = (size: string) =>
    `coalesce(${sources.map(({ alias }) => `${alias}.${size}`).join(', ')}) AS ${size}`;
  const sourceName = (size: string) =>
    `CASE ${sources.map(({ alias, from: words }) => `WHEN ${alias}.${size} IS NOT NULL THEN ${literal(words)}`).join(' ')} END`;
  const join = (name: string, alias: string) =>
    `LEFT JOIN ${name} ${alias} USING (execution_id, capture_id, stage_id)`;
  await database.once(
    'stage_sizes',
    shapes,
    `WITH steps AS (
       SELECT execution_id, capture_id, stage_id, pid, iteration, step_index, ${sizes.join(', ')}, kind, coalesce(rank, 0) AS rank,
              coalesce(warmup, false) AS warm, row_number() OVER (same_kind ORDER BY start_ns, stage_id) AS nth, count(*) OVER same_kind AS step_count
       FROM stages WHERE kind IN ${kinds}
       WINDOW same_kind AS (PARTITION BY execution_id, capture_id, coalesce(rank, 0), kind, coalesce(warmup, false))),
     shape (execution_id, capture_id, stage_id, ${sizes.join(', ')}) AS (${shapes}),
     sized AS (
       SELECT o.* EXCLUDE (${sizes.join(', ')}), ${sizes.map((size) => `coalesce(o.${size}, p.${size}) AS ${size}`).join(', ')}
       FROM steps o ${join('shape', 'p')}),
     record AS (${sizesOf(`t.execution_id = o.execution_id AND t.capture_id <> o.capture_id AND ${sameKind}
       AND t.pid = o.pid AND t.iteration = o.iteration AND t.step_index = o.step_index`)}),
     same_execution AS (${sizesOf(`t.execution_id = o.execution_id AND t.capture_id <> o.capture_id AND ${nth}`)}),
     other_execution AS (${sizesOf(`t.execution_id <> o.execution_id AND ${nth}`)}),
     different_count AS (
       SELECT ${stage}, min(t.step_count) AS steps_elsewhere FROM ${stepsWithoutSize} o
       JOIN (SELECT DISTINCT execution_id, capture_id, rank, kind, warm, step_count FROM sized WHERE ${anySize}) t
         ON (t.execution_id, t.capture_id) <> (o.execution_id, o.capture_id) AND ${sameKind} AND t.warm = o.warm AND t.step_count <> o.step_count
       GROUP BY ALL),
     known AS (SELECT execution_id, capture_id, stage_id, ${sizes.map(firstKnown).join(', ')},
            o.kind, o.pid, o.rank, o.iteration, o.step_index,
            nullif(array_to_string(list_distinct([${sizes.map(sourceName).join(', ')}]), ', '), '') AS sizes_from,
            o.step_count AS steps_here, steps_elsewhere
     FROM steps o ${join('record', 'r')} ${join('shape', 'p')} ${join('same_execution', 'e')} ${join('other_execution', 'x')} ${join('different_count', 'u')})
     SELECT * EXCLUDE (kind, pid, rank, iteration, step_index), CASE WHEN iteration IS NOT NULL THEN
       any_value(CASE WHEN kind = 'prefill' AND step_index = 0
         THEN (new_tokens - CASE WHEN context_tokens_sum < new_tokens THEN context_tokens_sum ELSE 0 END) / batch_size END)
         OVER (PARTITION BY execution_id, capture_id, pid, rank, iteration) END AS source_tokens
     FROM known`,
  );
}

/** SQL of the rows; without rows, one row that never joins. */
function valuesSql(rows: readonly StageSizes[]): string {
  const tuple = (texts: readonly (string | null)[], numbers: readonly (number | null)[]) =>
    `(${[...texts.map((text) => `${literal(text)}::VARCHAR`), ...numbers.map((number) => `${literal(number)}::BIGINT`)].join(', ')})`;
  const tuples = rows.map((row) =>
    tuple([row.execution_id, row.capture_id], [row.stage_id, ...sizes.map((size) => row[size])]),
  );
  return `VALUES ${tuples.length > 0 ? tuples.join(', ') : tuple([null, null], [null, ...sizes.map(() => null)])}`;
}

/** Makes `known_sizes`: the rows of `stage_sizes` for the analyzed rank, by stage_id. */
export async function makeKnownSizes({ database, source }: TraceScope): Promise<void> {
  await makeStageSizes(database);
  const { execution_id, capture_id, stages_capture_id = capture_id } = source.attribution;
  await database.once(
    'known_sizes',
    scopeKey(source),
    `SELECT * FROM stage_sizes WHERE execution_id = ${literal(execution_id)} AND capture_id = ${literal(stages_capture_id)}`,
  );
}

type StageSizes = Sizes & { execution_id: string; capture_id: string; stage_id: number };

/**
 * Sizes from operator shapes, for steps without one. In PyTorch, token ids of the embedding are (batch, tokens), and
 * attention keys are (batch, heads, context, head dimension).
 */
async function readOperatorSizes(database: SessionDatabase): Promise<StageSizes[]> {
  const lackingSql = `SELECT execution_id, capture_id, stage_id FROM stages WHERE kind IN ${kinds} AND (${lacksSize})`;
  // Operators are most of a session's rows, so they are read only if a step lacks a size.
  if ((await database.query(`${lackingSql} LIMIT 1`)).length === 0) return [];
  const rows = await database.query<StageSizes & { name: string; input_shapes: string }>(
    `SELECT DISTINCT o.execution_id, o.capture_id, s.phase_id AS stage_id, o.name, o.input_shapes
     FROM ops o JOIN stages s ON s.execution_id = o.execution_id AND s.capture_id = o.capture_id AND s.stage_id = o.stage_id
     JOIN (${lackingSql}) w ON w.execution_id = s.execution_id AND w.capture_id = s.capture_id AND w.stage_id = s.phase_id
     WHERE o.input_shapes IS NOT NULL
       AND o.name IN ('aten::embedding', 'aten::scaled_dot_product_attention') ORDER BY ALL`,
  );
  const sizesByStage = new Map<string, StageSizes>();
  for (const { execution_id, capture_id, stage_id, name, input_shapes } of rows) {
    const key = JSON.stringify([execution_id, capture_id, stage_id]);
    const stage = { execution_id, capture_id, stage_id };
    const stageSizes = sizesByStage.get(key) ?? {
      ...stage,
      batch_size: null,
      new_tokens: null,
      context_tokens_sum: null,
    };
    const secondInput = dimensionsOf(input_shapes)[1] ?? [];
    if (name === 'aten::embedding' && secondInput.length === 2) {
      const [batch = 0, tokens = 0] = secondInput;
      // Positions are embedded once for all sequences, so the larger product is that of the tokens.
      if (batch * tokens > (stageSizes.new_tokens ?? 0)) {
        stageSizes.batch_size = batch;
        stageSizes.new_tokens = batch * tokens;
      }
    } else if (name !== 'aten::embedding' && secondInput.length === 4) {
      stageSizes.context_tokens_sum = Math.max(
        stageSizes.context_tokens_sum ?? 0,
        secondInput[0]! * secondInput[2]!,
      );
    }
    sizesByStage.set(key, stageSizes);
  }
  return [...sizesByStage.values()];
}

function dimensionsOf(text: string): number[][] {
  const parsed = JSON.parse(text) as unknown;
  return Array.isArray(parsed)
    ? parsed.map((shape) => (Array.isArray(shape) ? (shape as number[]) : []))
    : [];
}
