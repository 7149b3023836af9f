import { msOf, overlap, percentOf, type StoredFacts, type StoredPart } from './stored-part.js';

/** One recording of one execution: the one with most rows, so that nothing is counted twice. */
const ofOneCapture = (table: string) =>
  `(execution_id, capture_id) = (SELECT (execution_id, capture_id) FROM ${table} GROUP BY execution_id, capture_id ORDER BY count(*) DESC, execution_id, capture_id LIMIT 1)`;

const has = ({ session }: StoredFacts, table: string): boolean =>
  (session.manifest.tables[table] ?? []).some(({ rows }) => rows > 0);

interface NamedRow extends Record<string, unknown> {
  name: string;
  class: string;
  calls: number;
  total_ms: number;
  share: number;
}

/** The kernels (or operators of a CPU) that took longest, or those whose names the question holds. */
export async function longestKernels(facts: StoredFacts): Promise<StoredPart[]> {
  const table = has(facts, 'kernels') ? 'kernels' : has(facts, 'ops') ? 'ops' : null;
  if (table === null) return [];
  const name = table === 'kernels' ? 'coalesce(short_name, name)' : 'name';
  const sql = `SELECT ${name} AS name, class, count(*) AS calls, sum(dur_ns) / 1e6 AS total_ms,
  sum(dur_ns) / sum(sum(dur_ns)) OVER () AS share
FROM ${table} WHERE ${ofOneCapture(table)}
GROUP BY ALL ORDER BY total_ms DESC, name`;
  const rows = await facts.database.query<NamedRow>(sql);
  const named = rows.filter((row) => overlap(facts.question.tokens, `${row.name} ${row.class}`) > 0);
  const shown = (named.length > 0 ? named : rows).slice(0, 5);
  if (shown.length === 0) return [];
  const what = table === 'kernels' ? 'kernels' : 'operators';
  const list = shown.map(
    (row) =>
      `${shortened(row.name)} (${row.class}): ${msOf(row.total_ms)}, ${percentOf(row.share)}, ${row.calls} calls`,
  );
  return [
    {
      text: `${named.length > 0 ? `The ${what} that this names` : `The ${what} that took longest`}, over the whole capture:\n${list.map((line) => `- ${line}`).join('\n')}`,
      sql,
      from: 'sql',
      rows: rows.length,
    },
  ];
}

const shortened = (name: string): string => (name.length > 70 ? `${name.slice(0, 69)}…` : name);

interface CopyRow extends Record<string, unknown> {
  kind: string;
  copies: number;
  total_bytes: number;
  total_ms: number;
}

/** Copies by kind. */
export async function copiesByKind(facts: StoredFacts): Promise<StoredPart[]> {
  if (!has(facts, 'copies'))
    return has(facts, 'kernels')
      ? [{ text: 'The capture holds no copies.', sql: null, from: 'sql', rows: 0 }]
      : [];
  const sql = `SELECT kind, count(*) AS copies, sum(bytes) AS total_bytes, sum(dur_ns) / 1e6 AS total_ms
FROM copies WHERE ${ofOneCapture('copies')}
GROUP BY kind ORDER BY total_ms DESC`;
  const rows = await facts.database.query<CopyRow>(sql);
  const list = rows.map(
    ({ kind, copies, total_bytes: bytes, total_ms: ms }) =>
      `- ${kind}: ${copies} copies, ${(Number(bytes) / 1e6).toPrecision(3)} MB, ${msOf(ms)}`,
  );
  return [
    { text: `Copies of the whole capture by kind:\n${list.join('\n')}`, sql, from: 'sql', rows: rows.length },
  ];
}

interface LaunchRow extends Record<string, unknown> {
  name: string;
  calls: number;
  mean_us: number;
  total_ms: number;
}

/** Calls that launch kernels. */
export async function launchCalls(facts: StoredFacts): Promise<StoredPart[]> {
  if (!has(facts, 'api_calls')) return [];
  const sql = `SELECT name, count(*) AS calls, avg(dur_ns) / 1e3 AS mean_us, sum(dur_ns) / 1e6 AS total_ms
FROM api_calls WHERE ${ofOneCapture('api_calls')} AND name ILIKE '%launch%'
GROUP BY name ORDER BY calls DESC`;
  const rows = await facts.database.query<LaunchRow>(sql);
  if (rows.length === 0) return [];
  const list = rows
    .slice(0, 4)
    .map(
      ({ name, calls, mean_us: mean, total_ms: ms }) =>
        `- ${name}: ${calls} calls, ${mean.toFixed(1)} µs each, ${msOf(ms)}`,
    );
  return [
    { text: `Launches of the whole capture:\n${list.join('\n')}`, sql, from: 'sql', rows: rows.length },
  ];
}

interface PeakRow extends Record<string, unknown> {
  kind: string;
  peak_bytes: number;
}

/** The most that samples and allocators said, where the session is no memory profile. */
export async function largestMemory(facts: StoredFacts): Promise<StoredPart[]> {
  if (!has(facts, 'memory')) return [];
  const { tables } = await import('../../model/tables.js');
  const columns = Object.keys(tables.memory.columns);
  if (!columns.includes('kind') || !columns.includes('bytes')) return [];
  const sql = `SELECT kind, max(bytes) AS peak_bytes FROM memory GROUP BY kind ORDER BY peak_bytes DESC NULLS LAST`;
  const rows = await facts.database.query<PeakRow>(sql);
  const list = rows
    .filter((row) => row.peak_bytes !== null)
    .slice(0, 6)
    .map(({ kind, peak_bytes: bytes }) => `- ${kind}: ${(Number(bytes) / 2 ** 20).toFixed(1)} MiB at most`);
  if (list.length === 0) return [];
  return [{ text: `Memory as recorded:\n${list.join('\n')}`, sql, from: 'sql', rows: rows.length }];
}
