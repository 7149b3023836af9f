import type { Workbench } from '../../model/workbench.js';
import type { NsysTables } from './tables.js';

/** eventType of NVTX_EVENTS (ENUM_NSYS_EVENT_TYPE); NVTXT is the same read from a text file. */
export const pushPop = [59, 70];
export const startEnd = [60, 71];
export const domainCreate = 75;

/** NVTX_EVENTS of a capture without events. */
export const noEvents = `(SELECT NULL::DOUBLE AS start, NULL::DOUBLE AS "end", NULL::DOUBLE AS pid, NULL::DOUBLE AS tid,
  NULL::DOUBLE AS "endTid", NULL::DOUBLE AS "eventType", NULL::DOUBLE AS "textId", NULL::DOUBLE AS "domainId",
  NULL AS text WHERE false)`;

/**
 * SQL for the ranges among `events`, rows of NVTX_EVENTS, with `text` and `process_wide` after `columns`. Marks and
 * registrations are not ranges. A range of a domain other than the default one is named `domain:name`, as nsys stats
 * names it.
 */
export function rangeNames(events: string, strings: string, columns: string, where = 'true'): string {
  // textId is nsys's own, text is inline: a row has one of the two.
  return `WITH events AS (SELECT e.* EXCLUDE (text), coalesce(s.value, e.text) AS text
      FROM ${events} e LEFT JOIN (SELECT id, value FROM ${strings} WHERE NOT contains(value, chr(0))) s ON s.id = e."textId"),
    domains AS (SELECT pid, "domainId", any_value(text) AS domain FROM events
      WHERE "eventType" = ${domainCreate} AND "domainId" <> 0 AND text <> '' GROUP BY ALL)
    SELECT ${columns},
      CASE WHEN domain IS NULL THEN text ELSE concat(domain, ':', text) END AS text,
      CASE WHEN "eventType" IN (${startEnd.join(', ')}) THEN 1 ELSE 0 END::DOUBLE AS process_wide
    FROM events LEFT JOIN domains USING (pid, "domainId")
    WHERE "eventType" IN (${[...pushPop, ...startEnd].join(', ')}) AND ${where}`;
}

/** Creates trace_ranges_text: trace_ranges with names as `text` and without ranks. */
export async function createRanges(
  workbench: Workbench,
  { rows, strings }: NsysTables,
  offset_ns: number,
): Promise<void> {
  const columns = `CAST(row_number() OVER () - 1 AS DOUBLE) AS range_id,
    CAST(start + ${offset_ns} AS DOUBLE) AS start_ns, CAST("end" + ${offset_ns} AS DOUBLE) AS end_ns,
    CAST(pid AS DOUBLE) AS pid, CAST(tid AS DOUBLE) AS tid,
    CASE WHEN "endTid" <> tid THEN CAST("endTid" AS DOUBLE) END AS end_tid`;
  const hasPossibleTimes = `abs(start) < ${2 ** 53} AND ("end" IS NULL OR "end" >= start AND "end" < ${2 ** 53})`;
  await workbench.run(
    `CREATE TABLE trace_ranges_text AS ${rangeNames(rows.nvtx ?? noEvents, strings, columns, hasPossibleTimes)}`,
  );
}
