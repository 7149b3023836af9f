import type { Figure } from '../../../model/figure.js';
import { formatBytes, formatCount, formatMs } from '../../format.js';
import { pointLabels } from '../../../vocabulary/memory-points.js';
import { componentNames } from '../../names.js';
import { memoryParts, missingReasons } from '../../words.js';
import { causesOf } from '../../notices.js';
import { Absent, ChartBox, DataTable, FigureText, MissingNotes } from '../parts.js';
import type { Section } from '../section.js';
import { thinned } from '../../../model/thinned.js';

export const memorySection: Section = {
  id: 'memory',
  title: 'Memory',
  render: ({ data: result, issues }) => {
    const { memory } = result;
    if (!memory) {
      return (
        <Absent
          what="Memory was not sampled."
          why="The session holds no memory rows."
          issues={causesOf('memory', issues)}
        />
      );
    }
    const points: [string, Figure][] = [
      [pointLabels.baseline, memory.baseline_bytes],
      [pointLabels.post_warmup, memory.post_warmup_bytes],
      [pointLabels.peak, memory.peak_bytes],
    ];
    const rows = thinned(memory.series, 100);
    return (
      <>
        {result.latency.launches > 1 && (
          <p>
            Of the first of {formatCount(result.latency.launches)} process launches; the others ran the same
            workload again.
          </p>
        )}
        <ChartBox
          name="memory"
          result={result}
          label={`Resident memory over time with ${points.map(([name]) => name).join(', ')} marked`}
        >
          <DataTable
            caption={`${formatCount(rows.length)} of ${formatCount(memory.series.length)} samples`}
            columns={[
              { head: 'time', numeric: true },
              { head: 'resident', numeric: true },
            ]}
            rows={rows.map((sample) => [formatMs(sample.t_ms), formatBytes(sample.bytes)])}
          />
          <DataTable
            caption="What ran when"
            columns={[{ head: 'phase' }, { head: 'from', numeric: true }, { head: 'to', numeric: true }]}
            rows={memory.phases.map((phase) => [
              phase.label,
              formatMs(phase.start_ms),
              formatMs(phase.end_ms),
            ])}
          />
        </ChartBox>
        <DataTable
          caption="The three points"
          columns={[{ head: 'point' }, { head: 'memory', numeric: true }, { head: 'source', wraps: true }]}
          rows={points.map(([name, figure]) => [
            name,
            <FigureText figure={figure} />,
            figure.value === null ? '' : figure.source,
          ])}
        />
        <MissingNotes reasons={missingReasons(points)} />
        <h3>What the peak is made of</h3>
        {memory.breakdown.length === 0 ? (
          <Absent
            what="The peak could not be broken down."
            why="The model's dimensions or the peak are missing."
          />
        ) : (
          <DataTable
            caption="Parts of the peak; what no evidence explains is not itemised, and shown as it is"
            columns={[
              { head: 'part' },
              { head: 'memory', numeric: true },
              { head: 'confidence' },
              { head: 'evidence', wraps: true },
            ]}
            rows={memoryParts(memory).map((part) => [
              componentNames[part.component],
              formatBytes(part.bytes),
              part.confidence,
              part.evidence,
            ])}
          />
        )}
      </>
    );
  },
};
