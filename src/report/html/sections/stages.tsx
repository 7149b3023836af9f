import type { StageResult } from '../../../model/documents/profile.js';
import type { Figure } from '../../../model/figure.js';
import { formatCount, noValue } from '../../format.js';
import { missingReasons } from '../../words.js';
import { DataTable, FigureText, MissingNotes } from '../parts.js';
import type { Section } from '../section.js';

const rows: [name: string, of: (stage: StageResult) => Figure, utilization?: true][] = [
  ['duration', (stage) => stage.duration_ms],
  ['tokens per second', (stage) => stage.tokens_per_s],
  ['roofline time', (stage) => stage.roofline_ms],
  ['MFU', (stage) => stage.mfu, true],
  ['MBU', (stage) => stage.mbu, true],
  ['necessary FLOPs', (stage) => stage.flops],
  ['necessary bytes', (stage) => stage.bytes],
  ['arithmetic intensity', (stage) => stage.intensity_flop_per_byte],
  ['working set', (stage) => stage.working_set_bytes],
  ['bandwidth at that working set', (stage) => stage.bandwidth_bytes_per_s],
  ['time under the profiler', (stage) => stage.profiled_ms],
  ['profiler overhead', (stage) => stage.profiler_overhead_ms],
];

export const stagesSection: Section = {
  id: 'stages',
  title: 'Stages',
  render: ({ data: { stages } }) => {
    const missing = missingReasons(
      stages.flatMap((stage) =>
        rows.map(([name, of]): [string, Figure] => [`${stage.kind} ${name}`, of(stage)]),
      ),
    );
    return (
      <>
        <p>
          Times are of the clean execution, without a profiler; a decode stage is one step. Intervals are over
          repeats.
        </p>
        <DataTable
          caption="Figures by stage"
          columns={[{ head: '' }, ...stages.map((stage) => ({ head: stage.kind, numeric: true }))]}
          rows={[
            ...rows.map(([name, of, utilization]) => [
              name,
              ...stages.map((stage) => <FigureText figure={of(stage)} utilization={utilization ?? false} />),
            ]),
            ['bound', ...stages.map((stage) => stage.bound ?? noValue)],
            ['bandwidth level', ...stages.map((stage) => stage.bandwidth_level ?? noValue)],
            ['instances timed', ...stages.map((stage) => formatCount(stage.instances))],
          ]}
        />
        <MissingNotes reasons={missing} />
      </>
    );
  },
};
