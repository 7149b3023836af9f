import type { Workbench } from '../../model/workbench.js';
import { opClasses } from '../../model/classes.js';
import { labelNames } from './kernel-labels.js';
import { openRowWriter } from './row-writer.js';
import { convertToEnum, createTextTable } from './texts.js';

const classType = `CREATE TYPE attr_class_type AS ENUM (${opClasses.map((name) => `'${name}'`).join(', ')})`;

/**
 * Table attr_kernel_names: code, text, short_name, class, tile, dtype. Each distinct name is classified once.
 * @returns whether each name has one short name, which is then in the column short_name
 */
export async function createKernelNames(workbench: Workbench): Promise<boolean> {
  await workbench.run(classType);
  await createTextTable(workbench, 'attr_kernel_names', 'SELECT DISTINCT name AS code FROM attr_kernels');
  const names = await workbench.query<{ code: number; text: string }>(
    'SELECT code, text::VARCHAR AS text FROM attr_kernel_names',
  );
  const labels = labelNames(names.map(({ text }) => text));
  const rows = await openRowWriter(workbench, 'attr_kernel_labels', ['code', 'class', 'tile', 'dtype']);
  for (const [i, { code }] of names.entries())
    rows.add(code, labels.class[i]!, labels.tile[i]!, labels.dtype[i]!);
  rows.close();
  await workbench.createNames('attr_labels', labels.texts);
  if (labels.texts.length > 0) await convertToEnum(workbench, 'attr_labels');
  await workbench.run(
    `CREATE TABLE attr_short AS SELECT name AS code, min(short_name) AS short FROM
       (SELECT DISTINCT name, short_name FROM attr_kernels) GROUP BY name`,
  );
  await createTextTable(
    workbench,
    'attr_short_names',
    'SELECT DISTINCT short_name AS code FROM attr_kernels',
  );
  await workbench.run(
    `CREATE OR REPLACE TABLE attr_kernel_names AS
     SELECT n.code, n.text, s.text AS short_name, ${classSql('l.class')} AS class,
       t.text AS tile, d.text AS dtype
     FROM attr_kernel_names n JOIN attr_kernel_labels l USING (code)
     LEFT JOIN attr_short o ON o.code = n.code LEFT JOIN attr_short_names s ON s.code = o.short
     LEFT JOIN attr_labels t ON t.code = l.tile LEFT JOIN attr_labels d ON d.code = l.dtype`,
  );
  const [max] = await workbench.query<{ n: number }>(
    'SELECT count(*) AS n FROM (SELECT DISTINCT name, short_name FROM attr_kernels) GROUP BY name ORDER BY n DESC LIMIT 1',
  );
  return (max?.n ?? 0) <= 1;
}

/** SQL: index in opClasses as a text. */
function classSql(index: string): string {
  return `([${opClasses.map((name) => `'${name}'`).join(', ')}])[${index}::INTEGER + 1]::attr_class_type`;
}

/** SQL: the class of row `k` of attr_kernels, using its name's row `n` of attr_kernel_names. */
export const kernelClassSql = `CASE WHEN k.opaque_graph THEN 'graph'::attr_class_type
  WHEN coalesce(n.class, 'other') = 'other' AND k.op_class IS NOT NULL THEN ${classSql('k.op_class')} ELSE n.class END`;
