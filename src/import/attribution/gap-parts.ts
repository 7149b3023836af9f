/** Bar ids of the parts of a gap, in the order in which they follow each other (waterfall: splitting idle time). */
export const gapParts = [
  'synchronization',
  'host',
  'launch_overhead',
  'launch_latency',
  'device_dependency',
  'unattributed',
] as const;

/**
 * Parts of the idle interval [idle_ns, start_ns] as SQL. The API call that launched the activity ending it runs
 * from api_start_ns to api_end_ns (null for an orphan); its thread waits for `waiting_ns` of the part before the call;
 * what comes after its return is launch latency up to `latency_ns` and dependency beyond. All are integers, so the
 * parts sum to the gap exactly.
 */
export function gapPartsSql(): string {
  const begin = 'greatest(least(api_start_ns, start_ns), idle_ns)';
  const end = 'greatest(least(api_end_ns, start_ns), idle_ns)';
  const known = (expression: string) => `CASE WHEN api_start_ns IS NULL THEN 0 ELSE ${expression} END`;
  return [
    `${known('waiting_ns')} AS synchronization_ns`,
    `${known(`${begin} - idle_ns - waiting_ns`)} AS host_ns`,
    `${known(`${end} - ${begin}`)} AS launch_overhead_ns`,
    `${known(`least(start_ns - ${end}, latency_ns)`)} AS launch_latency_ns`,
    `${known(`greatest(start_ns - ${end} - latency_ns, 0)`)} AS device_dependency_ns`,
    'CASE WHEN api_start_ns IS NULL THEN start_ns - idle_ns ELSE 0 END AS unattributed_ns',
  ].join(', ');
}

/** The largest part, as an index into gapParts; of equal ones the earlier. */
export function causeSql(): string {
  const columns = gapParts.map((part) => `${part}_ns`);
  const largest = `greatest(${columns.join(', ')})`;
  return `CASE ${gapParts.map((part, index) => `WHEN ${part}_ns = ${largest} THEN ${index}`).join(' ')} END`;
}
