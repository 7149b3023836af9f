import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import { attributions } from './host-threads.js';
import { kernelClassSql } from './names.js';

type SaveRows = (table: Parameters<Workbench['save']>[0], select: string) => Promise<number>;

export function rowSaver(workbench: Workbench, context: ImportContext): SaveRows {
  const constants = { execution_id: context.execution_id, host: context.host };
  return (table, select) => workbench.save(table, context.capture_id, select, constants);
}

/** SQL from code to text. The texts are constants of an ENUM, so that the database handles numbers instead of strings. */
function codeToText(column: string, texts: readonly string[]): string {
  const type = `ENUM(${texts.map((text) => `'${text}'`).join(', ')})`;
  const cases = texts.map((text, code) => `WHEN ${code} THEN '${text}'::${type}`);
  return `CASE ${column} ${cases.join(' ')} END`;
}

const attributedBy = `${codeToText('k.attributed_by', attributions)} AS attributed_by`;

/** Columns that kernels and copies share: times, launch, and the stage that launched them. */
const launchedColumns = `k.start_ns, k.dur_ns, k.pid, k.tid, k.rank, k.device, k.context, k.stream, k.correlation,
  k.api_start_ns, k.api_dur_ns, k.stage_id, ${attributedBy}, k.op_id, k.graph_node`;

/** Exclusive time of an activity: attr_exclusive has only activities that overlap others; for the others it is their duration. */
function exclusiveSql(hasOverlaps: boolean, activity: string): { column: string; join: string } {
  if (!hasOverlaps) return { column: 'k.dur_ns AS exclusive_ns', join: '' };
  return {
    column: 'coalesce(e.exclusive_ns::BIGINT, k.dur_ns) AS exclusive_ns',
    join: `LEFT JOIN attr_exclusive e ON e.activity = ${activity}`,
  };
}

/**
 * @param hasOverlaps whether attr_exclusive has rows
 * @param hasShortNames whether a name can have several short names, which needs a separate lookup
 */
export function kernelsSql(hasOverlaps: boolean, hasShortNames: boolean): string {
  const exclusive = exclusiveSql(hasOverlaps, 'k.activity');
  return `
  SELECT ${launchedColumns}, ${exclusive.column}, n.text AS name, ${hasShortNames ? 's.text' : 'n.short_name'} AS short_name,
    ${kernelClassSql} AS class, n.tile, n.dtype,
    g.text AS grid, b.text AS block, k.registers, k.shared_mem_bytes, k.graph_id
  FROM attr_kernels k ${exclusive.join}
  LEFT JOIN attr_kernel_names n ON n.code = k.name
  ${hasShortNames ? 'LEFT JOIN attr_short_names s ON s.code = k.short_name' : ''}
  LEFT JOIN attr_dims g ON g.code = k.grid
  LEFT JOIN attr_dims b ON b.code = k.block`;
}

/** @param hasOverlaps as in kernelsSql */
export function copiesSql(hasOverlaps: boolean): string {
  const exclusive = exclusiveSql(hasOverlaps, '-1 - k.activity');
  return `
  SELECT ${launchedColumns}, ${exclusive.column}, n.text AS kind, s.text AS src_kind, d.text AS dst_kind, k.bytes
  FROM attr_copies k ${exclusive.join}
  LEFT JOIN attr_copy_texts n ON n.code = k.kind
  LEFT JOIN attr_copy_texts s ON s.code = k.src_kind
  LEFT JOIN attr_copy_texts d ON d.code = k.dst_kind`;
}

/** @param apis the few codes of runtime, driver, …: a CASE is cheaper than a join */
export function callsSql(apis: readonly { code: number; text: string }[]): string {
  const type = `ENUM(${apis.map(({ text }) => `'${text.replaceAll("'", "''")}'`).join(', ')})`;
  const cases = apis.map(({ code, text }) => `WHEN ${code} THEN '${text.replaceAll("'", "''")}'::${type}`);
  return `
  SELECT a.start_ns, a.dur_ns, a.pid, a.tid, a.rank, a.correlation, a.stage_id, a.op_id, n.text AS name,
    ${cases.length > 0 ? `CASE a.api ${cases.join(' ')} END` : 'NULL'} AS api
  FROM attr_api a LEFT JOIN attr_call_names n ON n.code = a.name`;
}
