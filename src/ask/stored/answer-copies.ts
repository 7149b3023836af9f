import { barTexts } from './finding-parts.js';
import { shownRows } from './shown-rows.js';
import {
  notKnown,
  capture,
  hasTable,
  partFrom,
  questionStages,
  type StoredFacts,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { formatBytes, formatMs, plural } from '../../vocabulary/format.js';

interface CopyRow extends Record<string, unknown> {
  kind: string;
  memory: string | null;
  copies: number;
  total_bytes: number;
  total_ms: number;
}

/** "How much is copied between host and device?", "is any copy pageable?" */
export async function copies(facts: StoredFacts): Promise<TopicAnswer> {
  if (!hasTable(facts, 'copies')) {
    return hasTable(facts, 'kernels')
      ? known(partFrom('sql', 'No copies: the capture has none.', 0))
      : notKnown('The session has no GPU timeline: copies were not recorded.', capture.timeline);
  }
  const shown = await shownRows(facts, 'copies');
  const sql = `SELECT kind, CASE WHEN kind = 'HtoD' THEN src_kind WHEN kind = 'DtoH' THEN dst_kind END AS memory,
  count(*) AS copies, sum(bytes) AS total_bytes, sum(dur_ns) / 1e6 AS total_ms
FROM copies WHERE kind IS NOT NULL AND ${shown.where}
GROUP BY ALL ORDER BY total_ms DESC`;
  const rows = await facts.database.query<CopyRow>(sql);
  const part = (text: string) => ({ text, sql, from: 'sql', rows: rows.length });
  const isAboutPageable = /\bpageable\b|\bpinned\b/i.test(facts.question.text);
  const matching = rows.filter(({ kind, memory }) =>
    isAboutPageable ? memory === 'pageable' : /HtoD|DtoH/.test(kind),
  );
  const sum = (copyRows: readonly CopyRow[], key: 'copies' | 'total_bytes' | 'total_ms') =>
    copyRows.reduce((total, row) => total + Number(row[key] ?? 0), 0);
  const list = rows.map(
    (row) =>
      `- ${row.kind.replace('to', '2')}${row.memory === null ? '' : ` (${row.memory})`}: ${copiesOf(Number(row.copies))}, ${amountOf(Number(row.total_bytes), row.total_ms)}`,
  );
  const evidence = [
    part(`Copies of ${shown.name} by kind:\n${list.join('\n')}`),
    ...questionStages(facts).flatMap((stage) => barTexts(stage, ['exposed_copy', 'nonessential.copy'], 2)),
  ];
  const word = facts.question.isYesNo ? (matching.length > 0 ? 'Yes: ' : 'No: ') : '';
  const what = isAboutPageable ? 'of pageable memory' : 'between host and device';
  if (matching.length === 0) return known(part(`${word}no copies ${what} were recorded.`), evidence);
  return known(
    part(
      `${word}${copiesOf(sum(matching, 'copies'))} ${what}: ${amountOf(sum(matching, 'total_bytes'), sum(matching, 'total_ms'))}.`,
    ),
    evidence,
  );
}

const copiesOf = (count: number): string => plural(count, 'copy', 'copies');

const amountOf = (bytes: number, ms: number): string => `${formatBytes(bytes)} in ${formatMs(ms)}`;
