import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';

/** Takes secrets out of the names of ranges, which are the program's own words; those of kernels and calls are not. */
export async function redactNames(
  workbench: Workbench,
  { redact }: Pick<ImportContext, 'redact'>,
): Promise<void> {
  if (!redact) return;
  const names = await workbench.query<{ code: number; text: string }>(
    'SELECT code, text::VARCHAR AS text FROM trace_names SEMI JOIN trace_ranges r ON r.name = code WHERE text IS NOT NULL',
  );
  for (const { code, text } of names) {
    const clean = redact(text);
    if (clean === text) continue;
    const quoted = clean.replaceAll("'", "''");
    await workbench.run(`UPDATE trace_names SET text = '${quoted}' WHERE code = ${code}`);
  }
}
