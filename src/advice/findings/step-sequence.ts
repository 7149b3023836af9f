import type { PhaseKind } from '../../model/documents/trace.js';
import { copyRoleSql, type CopyRole } from './kernel-roles.js';
import type { FindingContext } from './rule.js';
import { stageShapes } from './stage-shape.js';

export interface SequenceKernel {
  name: string;
  class: string;
  role: CopyRole | null;
  start_ns: number;
  dur_ns: number;
  stream: number;
  /** Framework operator that launched it, if a framework profiler ran. */
  op_id: number | null;
  blocks: number | null;
  /** Threads per block. */
  threads: number | null;
}

const volume = (column: string) =>
  `try_cast(split_part(${column}, ',', 1) AS BIGINT) * try_cast(split_part(${column}, ',', 2) AS BIGINT) * try_cast(split_part(${column}, ',', 3) AS BIGINT)`;
/** SQL of the blocks of a launch. */
export const blocksSql = volume('grid');

/** Maximum kernels to read; more of one step add no information about the sequence. */
const maxKernels = 6000;

const cachedSequences = new WeakMap<FindingContext, Map<string, Promise<SequenceKernel[]>>>();

/**
 * Kernels of the typical step of a kind (of median duration), in execution order; for a capture without stages, from its middle on. Results
 * are scaled to the mean step by kernel time.
 * @param ofSizes the steps to choose from; omitted: those of the most common sizes, which stageShape has, or all of the kind
 */
export async function stepSequence(
  context: FindingContext,
  kind: PhaseKind,
  ofSizes?: readonly number[],
): Promise<SequenceKernel[]> {
  const stageIds = ofSizes ?? (await stageShapes(context, kind))[0]?.stage_ids;
  const sequences = cachedSequences.get(context) ?? new Map<string, Promise<SequenceKernel[]>>();
  cachedSequences.set(context, sequences);
  const chosen = `kind = '${kind}'${stageIds ? ` AND stage_id IN (${stageIds.join(', ')})` : ''}`;
  const sequence = sequences.get(chosen) ?? readSequence(context, kind, chosen);
  sequences.set(chosen, sequence);
  return sequence;
}

async function readSequence(
  { scope }: FindingContext,
  kind: PhaseKind,
  chosen: string,
): Promise<SequenceKernel[]> {
  if (!scope) return [];
  const { database } = scope;
  const [window] = await database.query<{ start_ns: number; end_ns: number }>(
    `SELECT start_ns, end_ns FROM windows WHERE ${chosen} AND end_ns > start_ns
     ORDER BY abs(end_ns - start_ns - (SELECT median(end_ns - start_ns) FROM windows WHERE ${chosen})), start_ns LIMIT 1`,
  );
  if (!window) return [];
  const from = Math.floor(kind === 'outside' ? (window.start_ns + window.end_ns) / 2 : window.start_ns);
  const rows = await database.query<Omit<SequenceKernel, 'name' | 'class' | 'role'> & { code: number }>(
    `SELECT hash(name) % 4503599627370496 AS code, start_ns, dur_ns, coalesce(stream, 0) AS stream, op_id, ${blocksSql} AS blocks, ${volume('"block"')} AS threads
     FROM rank_kernels WHERE start_ns >= ${from} AND start_ns < ${window.end_ns} ORDER BY start_ns LIMIT ${maxKernels}`,
  );
  const names = await database.query<{ code: number; name: string; class: string; role: CopyRole | null }>(
    `SELECT DISTINCT hash(name) % 4503599627370496 AS code, coalesce(name, '?') AS name, class, CASE WHEN class = 'copy' THEN ${copyRoleSql} END AS role
     FROM finding_kernels WHERE kind = '${kind}'`,
  );
  const byCode = new Map(names.map((name) => [name.code, name]));
  return rows.flatMap(({ code, ...row }) => {
    const label = byCode.get(code);
    return label ? [{ ...row, name: label.name, class: label.class, role: label.role }] : [];
  });
}

/** Factor from the sequence's times to the kernel time of a mean instance. */
export function instanceFactor(sequence: readonly SequenceKernel[], computeMs: number): number {
  const sequenceMs = sequence.reduce((sum, { dur_ns }) => sum + dur_ns, 0) / 1e6;
  return sequenceMs > 0 ? computeMs / sequenceMs : 0;
}
