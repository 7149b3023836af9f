import type { TraceSource } from '../../model/documents/trace.js';
import { scopeDefinitions } from '../trace/scope.js';
import { instancesSql, type PhaseClock, windowsSql } from '../trace/windows.js';
import { requestPartsSql } from './requests.js';
import { stepWindowsSql } from './stage-groups.js';
import { gapSums, idleOfWindowsSql } from './window-sums.js';

/**
 * The same query for `inferscope sql --session ID`, which has only the session's tables: what it names of phase_of,
 * own_*, focus_*, instances, windows, window_gaps and window_idle is defined in front of it.
 * @param sql one SELECT, with or without WITH, as it runs after traceScope and makeWindows
 * @param more further names and what they stand for, after the others
 */
export function standaloneSql(
  sql: string,
  source: TraceSource,
  clocks: readonly PhaseClock[],
  more: Readonly<Record<string, string>> = {},
): string {
  const known: Record<string, string> = {
    ...scopeDefinitions(source),
    ...windowDefinitions(source, clocks),
    ...more,
  };
  const names = Object.keys(known);
  const mentioned = (text: string) => names.filter((name) => new RegExp(`\\b${name}\\b`).test(text));
  const needed = new Set<string>();
  const add = (text: string): void => {
    for (const name of mentioned(text)) {
      if (needed.has(name)) continue;
      needed.add(name);
      add(known[name]!);
    }
  };
  add(sql);
  // Each refers to those before it only.
  const used = names.filter((name) => needed.has(name));
  if (used.length === 0) return compact(sql);
  const definitions = used.map((name) => `${name} AS (${known[name]})`).join(',\n');
  const own = /^\s*WITH\s+(?!RECURSIVE)/i.exec(sql);
  return compact(
    own ? `WITH ${definitions},\n${sql.slice(own[0].length)}` : `WITH ${definitions}\n${sql.trim()}`,
  );
}

function windowDefinitions(
  { start_ns, end_ns }: TraceSource,
  clocks: readonly PhaseClock[],
): Record<string, string> {
  const unmarked = clocks.some(({ kind }) => kind === 'outside');
  const windows = unmarked
    ? `SELECT 'outside' AS kind, 0 AS stage_id, 'whole capture' AS raw_name, NULL AS iteration, NULL AS step_index, ${start_ns} AS start_ns, ${end_ns} AS end_ns`
    : windowsSql(clocks);
  return {
    instances: instancesSql,
    windows,
    window_gaps: gapSums(unmarked),
    window_idle: idleOfWindowsSql,
    request_parts: requestPartsSql,
    step_windows: stepWindowsSql,
  };
}

/** Indentation of our sources says nothing to a reader of the query. */
const compact = (sql: string): string => sql.replaceAll(/\n\s+/g, '\n').trim();
