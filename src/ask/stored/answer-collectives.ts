import { analyzeCollectives } from '../../facts/collectives/collectives.js';
import { groupsSql } from '../../facts/collectives/queries.js';
import type { CollectiveGroup } from '../../model/documents/collectives.js';
import { findingText } from './finding-parts.js';
import { hasTable, type StoredFacts, type StoredPart, known, type TopicAnswer } from './stored-facts.js';
import { formatBytes, formatMs, formatPercent, formatQuantity, plural } from '../../vocabulary/format.js';

/** "Which rank is late?", "what is the bus bandwidth of the all-reduce?"; null if no operations were recorded. */
export async function answerCollectives(facts: StoredFacts): Promise<TopicAnswer | null> {
  if (!hasTable(facts, 'collectives')) return null;
  const { groups } = (await analyzeCollectives(facts.session)).data;
  const named = groups.filter(({ operation }) =>
    facts.question.text.toLowerCase().replaceAll(/[- _]/g, '').includes(operation.toLowerCase()),
  );
  const chosen = named.length > 0 ? named : groups;
  const late = facts.explained.findings.find(({ rule }) => rule === 'collective_late_rank');
  const [first, ...rest] = chosen.slice(0, 6).map((group): StoredPart => ({
    text: groupText(group),
    sql: groupsSql,
    from: 'sql',
    rows: groups.length,
  }));
  if (!first) return null;
  if (late && /\branks?\b|\bstraggl|\bwait/i.test(facts.question.text))
    return known(findingText(late), [first]);
  return known(first, [...rest, ...(late ? [findingText(late)] : [])]);
}

/** "AllReduce of 64.0 MiB on 4 ranks: p50 0.51 ms, bus bandwidth 197 GB/s, …" */
function groupText(group: CollectiveGroup): string {
  const { operation, bytes, ranks, recorded, time_p50_ns: p50, time_p99_ns: p99, bus_bandwidth: bus } = group;
  const { waiting_p50_ns: waiting, last, recorded_share: share } = group;
  const parts = [
    ...(p50.value === null ? ['no time'] : [`p50 ${formatMs(p50.value / 1e6)}`]),
    ...(p99.value === null ? [] : [`p99 ${formatMs(p99.value / 1e6)}`]),
    ...(bus.value === null ? [] : [`bus bandwidth ${formatQuantity(bus.value, 'B/s')}`]),
    ...(waiting.value === null ? [] : [`ranks wait up to ${formatMs(waiting.value / 1e6)} (median)`]),
    ...(last === null ? [] : [`rank ${last.rank} is last in ${last.operations} of ${last.total_operations}`]),
    `${plural(recorded, 'record')}${share.value === null ? '' : `, ${formatPercent(share.value)} of the calls`}`,
  ];
  return `${operation}${bytes === null ? '' : ` of ${formatBytes(bytes)}`} on ${ranks} ranks: ${parts.join(', ')}.`;
}
