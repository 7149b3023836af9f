import type { Workbench } from '../../model/workbench.js';
import { stageKinds } from '../../model/record.js';
import type { ImportContext } from '../importer.js';
import { attributions } from './host-threads.js';
import type { FoldedStages } from './nested-stages.js';
import { kernelClassSql } from './names.js';
import { openRows } from './row-writer.js';
import { integer } from './texts.js';

type Keep = (table: Parameters<Workbench['keep']>[0], select: string) => Promise<number>;

export function keeper(workbench: Workbench, context: ImportContext): Keep {
  const constants = { execution_id: context.execution_id, host: context.host };
  return (table, select) => workbench.keep(table, context.capture_id, select, constants);
}

/** Code -> constant text of an ENUM, which the database folds to its number. */
function named(column: string, texts: readonly string[]): string {
  const type = `ENUM(${texts.map((text) => `'${text}'`).join(', ')})`;
  const cases = texts.map((text, code) => `WHEN ${code} THEN '${text}'::${type}`);
  return `CASE ${column} ${cases.join(' ')} END`;
}

const attributedBy = `${named('k.attributed_by', attributions)} AS attributed_by`;

const launchKeys = `k.start_ns, k.dur_ns, k.pid, k.tid, k.rank, k.device, k.context, k.stream, k.correlation,
  k.api_start_ns, k.api_dur_ns, k.stage_id, ${attributedBy}, k.op_id, k.graph_node`;

/** Activities that overlap others; of the rest the exclusive time is the duration. */
function exclusiveOf(shared: boolean, activity: string): { column: string; join: string } {
  if (!shared) return { column: 'k.dur_ns AS exclusive_ns', join: '' };
  return {
    column: 'coalesce(e.exclusive_ns::BIGINT, k.dur_ns) AS exclusive_ns',
    join: `LEFT JOIN attr_exclusive e ON e.activity = ${activity}`,
  };
}

/**
 * @param overlapping whether attr_exclusive has rows
 * @param shortNames whether one name may have several short names, so that it must be looked up on its own
 */
export function kernelsSql(overlapping: boolean, shortNames: boolean): string {
  const exclusive = exclusiveOf(overlapping, 'k.activity');
  return `
  SELECT ${launchKeys}, ${exclusive.column}, n.text AS name, ${shortNames ? 's.text' : 'n.short_name'} AS short_name,
    ${kernelClassSql} AS class, n.tile, n.dtype,
    g.text AS grid, b.text AS block, k.registers, k.shared_mem_bytes, k.graph_id
  FROM attr_kernels k ${exclusive.join}
  LEFT JOIN attr_kernel_names n ON n.code = k.name
  ${shortNames ? 'LEFT JOIN attr_short_names s ON s.code = k.short_name' : ''}
  LEFT JOIN attr_dims g ON g.code = k.grid
  LEFT JOIN attr_dims b ON b.code = k.block`;
}

/** @param overlapping as in kernelsSql */
export function copiesSql(overlapping: boolean): string {
  const exclusive = exclusiveOf(overlapping, '-1 - k.activity');
  return `
  SELECT ${launchKeys}, ${exclusive.column}, n.text AS kind, s.text AS src_kind, d.text AS dst_kind, k.bytes
  FROM attr_copies k ${exclusive.join}
  LEFT JOIN attr_copy_texts n ON n.code = k.kind
  LEFT JOIN attr_copy_texts s ON s.code = k.src_kind
  LEFT JOIN attr_copy_texts d ON d.code = k.dst_kind`;
}

/** @param apis the few codes of runtime, driver, …: a CASE over them costs less than a join */
export function callsSql(apis: readonly { code: number; text: string }[]): string {
  const type = `ENUM(${apis.map(({ text }) => `'${text.replaceAll("'", "''")}'`).join(', ')})`;
  const cases = apis.map(({ code, text }) => `WHEN ${code} THEN '${text.replaceAll("'", "''")}'::${type}`);
  return `
  SELECT a.start_ns, a.dur_ns, a.pid, a.tid, a.rank, a.correlation, a.stage_id, a.op_id, n.text AS name,
    ${cases.length > 0 ? `CASE a.api ${cases.join(' ')} END` : 'NULL'} AS api
  FROM attr_api a LEFT JOIN attr_call_names n ON n.code = a.name`;
}

const takenColumns = ['step_index', 'iteration', 'batch_size', 'new_tokens', 'context_tokens_sum'] as const;

/** For stagesSql: attr_folded (stage_id, phase_id) and attr_taken. */
export async function writeFolded(workbench: Workbench, { phases, taken }: FoldedStages): Promise<void> {
  const folded = await openRows(workbench, 'attr_folded', ['stage_id', 'phase_id']);
  for (const [stage, phase] of phases) folded.add(stage, phase ?? Number.NaN);
  folded.close();
  const fields = await openRows(workbench, 'attr_taken', ['stage_id', 'kind', ...takenColumns]);
  for (const [stage, values] of taken)
    fields.add(
      stage,
      stageKinds.indexOf(values.kind),
      ...takenColumns.map((column) => values[column] ?? Number.NaN),
    );
  fields.close();
}

const own = (column: (typeof takenColumns)[number]) =>
  integer(`CASE WHEN t.stage_id IS NULL THEN s.${column} ELSE t.${column} END`);

export const stagesSql = `
  SELECT s.stage_id, ${integer('s.parent_id')} AS parent_id,
    ${integer('CASE WHEN phase.stage_id IS NULL THEN s.phase_id ELSE phase.phase_id END')} AS phase_id,
    ${named(`CASE WHEN f.stage_id IS NULL THEN coalesce(t.kind, s.kind) ELSE ${stageKinds.indexOf('other')} END`, stageKinds)} AS kind, n.text AS raw_name,
    CASE WHEN f.stage_id IS NULL THEN ${own('step_index')} END AS step_index,
    ${own('iteration')} AS iteration, s.start_ns, s.end_ns, ${integer('s.pid')} AS pid,
    ${integer('s.tid')} AS tid, ${integer('s.rank')} AS rank, ${own('batch_size')} AS batch_size,
    ${own('new_tokens')} AS new_tokens, ${own('context_tokens_sum')} AS context_tokens_sum,
    s.warmup = 1 AS warmup, d.device, d.device_start_ns, d.device_end_ns
  FROM attr_stages s
  LEFT JOIN attr_folded f ON f.stage_id = s.stage_id
  LEFT JOIN attr_folded phase ON phase.stage_id = s.phase_id
  LEFT JOIN attr_taken t ON t.stage_id = s.stage_id
  LEFT JOIN attr_stage_device d ON d.stage_id = s.stage_id
  LEFT JOIN trace_names n ON n.code = s.name`;
