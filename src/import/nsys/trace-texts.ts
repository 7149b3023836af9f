import { noName } from '../trace-tables.js';
import type { NsysTables } from './tables.js';

/** cudaMemcpyKind as in CUPTI (ENUM_CUDA_MEMCPY_OPER); arrays count as device memory, 11 to 13 are unified memory. */
const copyKinds: Record<number, string> = {
  1: 'HtoD',
  2: 'DtoH',
  3: 'HtoD',
  4: 'DtoH',
  5: 'DtoD',
  6: 'DtoD',
  7: 'DtoD',
  8: 'DtoD',
  9: 'HtoH',
  10: 'PtoP',
  11: 'HtoD',
  12: 'DtoH',
  13: 'DtoD',
};

/** ENUM_CUDA_MEM_KIND; 7 is unknown. */
const memoryKinds: Record<number, string> = {
  0: 'pageable',
  1: 'pinned',
  2: 'device',
  3: 'device',
  4: 'managed',
  5: 'device',
  6: 'managed',
};

/** eventClass of an API row. */
const apiKinds: Record<number, string> = { 0: 'runtime', 1: 'driver' };

/** SQL for the texts of a shape's rows. */
export interface TextsSql {
  kind: string;
  from: string;
  columns: Partial<Record<string, string>>;
}

/**
 * The texts of each kind of event, by shape. Only the strings of kernels and API calls are read from StringIds, and no
 * value with a NUL: the program's whole environment is one value, with NUL between its lines.
 */
export function eventTexts({ shapes, strings }: NsysTables): TextsSql[] {
  const nameStrings = `(SELECT id, value FROM ${strings} WHERE NOT contains(value, chr(0)))`;
  const texts: TextsSql[] = [];
  if (shapes.kernel)
    texts.push({
      kind: 'kernel',
      from: `${shapes.kernel} u LEFT JOIN ${nameStrings} full_name ON full_name.id = coalesce(u.demangledName, u.shortName)
        LEFT JOIN ${nameStrings} short ON short.id = coalesce(u.shortName, u.demangledName)`,
      columns: {
        name: `coalesce(full_name.value, short.value, '${noName}')`,
        short_name: `coalesce(short.value, full_name.value, '${noName}')`,
        grid: dims('gridX', 'gridY', 'gridZ'),
        block: dims('blockX', 'blockY', 'blockZ'),
      },
    });
  const graph = "'CUDA graph ' || CAST(graphId AS BIGINT)";
  if (shapes.graph)
    texts.push({ kind: 'graph', from: shapes.graph, columns: { name: graph, short_name: graph } });
  if (shapes.memcpy)
    texts.push({
      kind: 'memcpy',
      from: shapes.memcpy,
      columns: {
        kind_text: textByCode('copyKind', copyKinds),
        src_kind: textByCode('srcKind', memoryKinds),
        dst_kind: textByCode('dstKind', memoryKinds),
      },
    });
  if (shapes.memset)
    texts.push({
      kind: 'memset',
      from: shapes.memset,
      columns: { kind_text: "'memset'", dst_kind: textByCode('memKind', memoryKinds) },
    });
  if (shapes.api)
    texts.push({
      kind: 'api',
      from: `${shapes.api} u LEFT JOIN ${nameStrings} call ON call.id = u.nameId`,
      // cudaLaunchKernel_v7000 and cudaGraphLaunch_v10000
      columns: {
        name: `regexp_replace(coalesce(call.value, '${noName}'), '_v[0-9]+$', '')`,
        api: textByCode('eventClass', apiKinds),
      },
    });
  return texts;
}

function dims(...columns: string[]): string {
  const parts = columns.map((column) => `CAST(CAST(${column} AS BIGINT) AS VARCHAR)`);
  return `CASE WHEN ${columns[0]} IS NOT NULL THEN concat_ws(',', ${parts.join(', ')}) END`;
}

function textByCode(column: string, words: Record<number, string>): string {
  const cases = Object.entries(words).map(([value, word]) => `WHEN ${value} THEN '${word}'`);
  return `CASE CAST(${column} AS BIGINT) ${cases.join(' ')} END`;
}
