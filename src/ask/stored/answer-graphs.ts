import { withoutGpu } from './answer-idle.js';
import { ruleAnswer, ruleTopics, withoutYesNo } from './answer-rules.js';
import { shownRows } from './shown-rows.js';
import {
  capture,
  hasTable,
  known,
  notKnown,
  type StoredFacts,
  type StoredPart,
  type TopicAnswer,
} from './stored-facts.js';
import { formatPercent, plural } from '../../vocabulary/format.js';

interface GraphRow extends Record<string, unknown> {
  kernels: number;
  in_graphs: number;
  replays: number;
}

/** "Are CUDA graphs used?": how many kernels ran in replays of them; then whether launches are a limit. */
export async function graphsUsed(facts: StoredFacts): Promise<TopicAnswer> {
  if (!hasTable(facts, 'kernels'))
    return (
      withoutGpu(facts, []) ??
      notKnown(
        'The session has no GPU timeline: it does not show whether CUDA graphs are replayed.',
        capture.timeline,
      )
    );
  const shown = await shownRows(facts, 'kernels');
  // All nodes of a replay have the correlation id of its launch.
  const sql = `SELECT count(*) AS kernels, count(graph_node) AS in_graphs,
  count(DISTINCT correlation) FILTER (graph_node IS NOT NULL) AS replays
FROM kernels WHERE ${shown.where}`;
  const [row] = await facts.database.query<GraphRow>(sql);
  const { direct, evidence } = ruleAnswer(withoutYesNo(facts), ruleTopics.launch_bound);
  const part: StoredPart = { text: usedText(row!), sql, from: 'kernels', rows: 1 };
  return known(part, [...(direct ? [direct] : []), ...evidence]);
}

function usedText({ kernels, in_graphs: inGraphs, replays }: GraphRow): string {
  if (inGraphs === 0) return `No: none of ${plural(kernels, 'kernel')} ran in a CUDA graph.`;
  const share = formatPercent(inGraphs / kernels);
  return `Yes: ${share} of ${plural(kernels, 'kernel')} ran in ${plural(replays, 'replay')} of CUDA graphs.`;
}
