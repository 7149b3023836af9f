import type { Figure } from '../../../model/figure.js';
import { missingReasons } from '../../words.js';
import { causesOf } from '../../notices.js';
import { Absent, ChartBox, DataTable, FigureText, MissingNotes } from '../parts.js';
import { SamplesTable } from '../samples-table.js';
import type { Section } from '../section.js';

export const telemetrySection: Section = {
  id: 'telemetry',
  title: 'Host telemetry',
  render: ({ data: result, issues }) => {
    const { telemetry } = result;
    if (!telemetry) {
      return (
        <Absent
          what="The host was not sampled."
          why="The session holds no telemetry rows."
          issues={causesOf('telemetry', issues)}
        />
      );
    }
    const figures: [string, Figure][] = [
      ['CPU of the host, all cores together', telemetry.cpu_percent],
      ['other processes, 100 % is one core', telemetry.other_processes_cpu_percent],
      ['core clock', telemetry.clock_mhz],
      ['sampling rate', telemetry.sample_hz],
    ];
    return (
      <>
        <DataTable
          caption="Mean while the timed repeats ran"
          columns={[{ head: '' }, { head: 'value', numeric: true }]}
          rows={figures.map(([name, figure]) => [name, <FigureText figure={figure} />])}
        />
        <MissingNotes reasons={missingReasons(figures)} />
        {telemetry.series.length > 0 && (
          <ChartBox
            name="telemetry"
            result={result}
            label="Utilisation, clock and memory of the host over time"
          >
            <SamplesTable series={telemetry.series} />
          </ChartBox>
        )}
      </>
    );
  },
};
