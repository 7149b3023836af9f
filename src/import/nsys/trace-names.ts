import type { Workbench } from '../../model/workbench.js';
import type { NsysTables } from './tables.js';

/**
 * Codes of trace_names. Names that nsys has in StringIds keep its id; other texts get codes in ranges of their own:
 *
 * | from | what |
 * | --- | --- |
 * | 0 | StringIds.id, of kernels |
 * | 2^32 | StringIds.id, of API calls: their text is without the version suffix (cudaLaunchKernel_v7000) |
 * | 2^33 | CUDA graphs, by graphId |
 * | 2^40 | our own words: HtoD, pinned, … |
 * | 2^50 | grids and blocks, by hash |
 * | 2^51 | texts of ranges, by hash |
 *
 * Two of a million different grids have one hash with a probability of 0.04 %; names are made from either then.
 */
const apiCodes = 2 ** 32;
const graphCodes = 2 ** 33;
const wordCodes = 2 ** 40;
const gridCodes = 2 ** 50;
const rangeCodes = 2 ** 51;

/** SQL for codes of names from nsys's columns. */
export const names = {
  kernel: code('coalesce(demangledName, shortName)', 0),
  short: code('coalesce(shortName, demangledName)', 0),
  api: code('nameId', apiCodes),
  graph: code('graphId', graphCodes),
  grid: gridCode('gridX', 'gridY', 'gridZ'),
  block: gridCode('blockX', 'blockY', 'blockZ'),
  range: (text: string) => `CAST(${rangeCodes} + hash(${text}) % ${gridCodes} AS DOUBLE)`,
};

/** Our own words, in no order: the code is made from the word. */
export function fixedCode(word: string): string {
  let hash = 0;
  for (const char of word) hash = (hash * 31 + char.charCodeAt(0)) % 2 ** 31;
  return `${wordCodes + hash}::DOUBLE`;
}

function code(id: string, from: number): string {
  return `CASE WHEN ${id} BETWEEN 0 AND ${2 ** 32 - 1} THEN CAST(${id} + ${from} AS DOUBLE) END`;
}

function gridCode(x: string, y: string, z: string): string {
  return `CASE WHEN ${x} IS NOT NULL THEN CAST(${gridCodes} + hash(${x}, ${y}, ${z}) % ${gridCodes} AS DOUBLE) END`;
}

/**
 * Creates trace_names from the names in use and from `trace_range_texts` (text), which is dropped. Only they are
 * read: StringIds also holds what nobody should see.
 */
export async function createNames(
  workbench: Workbench,
  { shapes, strings }: NsysTables,
  words: readonly string[],
): Promise<void> {
  // A name holds no NUL; the program's environment, one value of StringIds, does.
  const string = `(SELECT id, value FROM ${strings} WHERE NOT contains(value, chr(0)))`;
  const parts = words.map((word) => `SELECT ${fixedCode(word)} AS code, '${word}' AS text`);
  if (shapes.kernel) {
    parts.push(
      `SELECT id, value FROM ${string} WHERE id IN (SELECT demangledName FROM ${shapes.kernel}
       UNION SELECT shortName FROM ${shapes.kernel})`,
    );
    for (const [dims, x, y, z] of [
      [names.grid, 'gridX', 'gridY', 'gridZ'],
      [names.block, 'blockX', 'blockY', 'blockZ'],
    ] as const) {
      const part = (column: string) => `CAST(CAST(${column} AS BIGINT) AS VARCHAR)`;
      parts.push(
        `SELECT ${dims} AS code, concat_ws(',', ${part(x)}, ${part(y)}, ${part(z)}) FROM
         (SELECT DISTINCT ${x}, ${y}, ${z} FROM ${shapes.kernel}) WHERE code IS NOT NULL`,
      );
    }
  }
  if (shapes.graph)
    parts.push(
      `SELECT DISTINCT ${names.graph} AS code, 'CUDA graph ' || CAST(graphId AS BIGINT) FROM ${shapes.graph} WHERE code IS NOT NULL`,
    );
  if (shapes.api)
    parts.push(
      `SELECT id + ${apiCodes}, regexp_replace(value, '_v[0-9]+$', '') FROM ${string}
       WHERE id IN (SELECT nameId FROM ${shapes.api})`,
    );
  parts.push(`SELECT DISTINCT ${names.range('text')}, text FROM trace_range_texts`);
  await workbench.run(
    `CREATE TABLE trace_names AS SELECT CAST(code AS BIGINT) AS code, any_value(text) AS text
     FROM (${parts.join(' UNION ALL ')}) GROUP BY 1`,
  );
  await workbench.run('DROP TABLE trace_range_texts');
}
