import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import type { InMemoryTrace } from './in-memory/trace.js';

/**
 * Removes secrets from the names of ranges, which come from the program, unlike names of kernels and calls.
 * @param trace has the ranges if they are not in trace_ranges
 */
export async function redactNames(
  workbench: Workbench,
  { redact }: Pick<ImportContext, 'redact'>,
  trace: InMemoryTrace | null,
): Promise<void> {
  if (!redact) return;
  const rangeNames = trace && new Set(trace.ranges.shapes['name']);
  const rangeFilter = trace ? '' : 'SEMI JOIN trace_ranges r ON r.name = code';
  const names = await workbench.query<{ code: number; text: string }>(
    `SELECT code, text::VARCHAR AS text FROM trace_names ${rangeFilter} WHERE text IS NOT NULL`,
  );
  for (const { code, text } of names) {
    if (rangeNames && !rangeNames.has(code)) continue;
    const clean = redact(text);
    if (clean === text) continue;
    const quoted = clean.replaceAll("'", "''");
    await workbench.run(`UPDATE trace_names SET text = '${quoted}' WHERE code = ${code}`);
  }
}
