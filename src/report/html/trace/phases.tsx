import { phaseTime } from '../../../model/headline-time.js';
import { phaseSegments, shownPhases } from '../../charts/trace/phases.js';
import { causeName, causes, formatNs, phaseName } from '../../charts/trace/words.js';
import { formatCount, formatMs, formatNumber, formatPercent, noValue } from '../../format.js';
import { themes } from '../../palette.js';
import { missingReasons } from '../../words.js';
import { Absent, Behind, DataTable, FigureText, MissingNotes } from '../parts.js';
import type { TraceSection } from './inputs.js';
import { ColorKey, TraceChart } from './trace-parts.js';

export const phasesSection: TraceSection = {
  id: 'phases',
  title: 'Phases: busy and idle',
  render: ({ data }) => {
    const phases = shownPhases(data);
    const [first] = phases;
    if (!first) {
      return (
        <Absent
          what="No phase was found."
          why="The capture has no range whose name says prefill, decode or another phase: NVTX ranges or record_function marks make them."
        />
      );
    }
    // The notes below say why there is none.
    const clean = phases.some((phase) => !phaseTime(phase).profiled);
    return (
      <>
        <p>
          A mean instance of each phase: what the device did, and why it was idle when it did nothing. 100 %
          is its time {clean ? 'without the profiler where that is known' : 'under the profiler'}; the parts
          sum to it.
        </p>
        <ColorKey label="What the device did" entries={(theme) => phaseSegments(first, theme)} />
        <TraceChart
          name="phases"
          result={data}
          label={`Busy and idle shares of ${phases.map(({ kind }) => phaseName(kind)).join(', ')}`}
        >
          <DataTable
            caption="Time of a mean instance"
            columns={[
              { head: 'phase' },
              ...phaseSegments(first, themes.light).map(({ name }) => ({ head: name, numeric: true })),
            ]}
            rows={phases.map((phase) => [
              phaseName(phase.kind),
              ...phaseSegments(phase, themes.light).map(({ ms }) => formatNs(ms * 1e6)),
            ])}
          />
        </TraceChart>
        <DataTable
          caption="Phases; launches are API calls that launched kernels, fewer than kernels with CUDA graphs"
          columns={[
            { head: 'phase' },
            { head: 'n', numeric: true },
            { head: 'mean', numeric: true },
            { head: 'busy', numeric: true },
            { head: 'idle', numeric: true },
            { head: 'idle share', numeric: true },
            { head: 'main cause' },
            { head: 'kernels', numeric: true },
            { head: 'launches', numeric: true },
            { head: 'under the profiler', numeric: true },
            { head: 'sd', numeric: true },
            { head: 'median', numeric: true },
          ]}
          rows={phases.map((phase) => [
            phaseName(phase.kind),
            formatCount(phase.instances),
            phaseTime(phase).profiled ? (
              formatMs(phaseTime(phase).ms)
            ) : (
              <FigureText figure={phase.clean_ms} />
            ),
            formatNs(phase.busy_ns),
            formatNs(phase.idle_ns),
            formatPercent(phase.idle_share),
            phase.main_cause === null ? noValue : causeName(phase.main_cause),
            formatNumber(phase.kernels),
            formatNumber(phase.launches),
            formatNs(phase.wall.mean_ns),
            phase.wall.sd_ns === null ? noValue : formatNs(phase.wall.sd_ns),
            formatNs(phase.wall.median_ns),
          ])}
        />
        {phases.some(({ by_batch }) => by_batch.length > 0) && (
          <DataTable
            caption="By batch size: the means above are over all sizes"
            columns={[
              { head: 'phase' },
              { head: 'batch', numeric: true },
              { head: 'n', numeric: true },
              { head: 'mean', numeric: true },
              { head: 'busy', numeric: true },
              { head: 'idle', numeric: true },
              { head: 'idle share', numeric: true },
              { head: 'kernels', numeric: true },
              { head: 'launches', numeric: true },
            ]}
            rows={phases.flatMap(({ kind, by_batch }) =>
              by_batch.map((size) => [
                phaseName(kind),
                formatCount(size.batch_size),
                formatCount(size.wall.count),
                formatMs(phaseTime(size).ms),
                formatNs(size.busy_ns),
                formatNs(size.idle_ns),
                formatPercent(size.idle_share),
                formatNumber(size.kernels),
                formatNumber(size.launches),
              ]),
            )}
          />
        )}
        <MissingNotes
          reasons={missingReasons(
            phases.map((phase): [string, typeof phase.clean_ms] => [
              `${phaseName(phase.kind)} without profiler`,
              phase.clean_ms,
            ]),
          )}
        />
        <ul class="notes">
          {phases.map(({ kind, clock, clock_why }) => (
            <li>
              {phaseName(kind)}: timed by the {clock}: {clock_why}
            </li>
          ))}
        </ul>
        <Behind title="What the causes mean">
          <dl class="definitions">
            {Object.values(causes).map(({ name, meaning }) => (
              <>
                <dt>{name}</dt>
                <dd>{meaning}</dd>
              </>
            ))}
          </dl>
        </Behind>
        {phases
          .filter(({ rows }) => rows.length > 1)
          .map((phase) => (
            <Behind
              title={`${formatCount(phase.rows.length)} instances of ${phaseName(phase.kind)}${
                phase.rows.length < phase.instances ? ` of ${formatCount(phase.instances)}` : ''
              }`}
            >
              <DataTable
                caption={`Instances of ${phaseName(phase.kind)} under the profiler, in time`}
                columns={[
                  { head: 'instance' },
                  { head: 'start', numeric: true },
                  { head: 'wall', numeric: true },
                  { head: 'busy', numeric: true },
                  { head: 'idle', numeric: true },
                  { head: 'idle share', numeric: true },
                  { head: 'kernels', numeric: true },
                  { head: 'copies', numeric: true },
                ]}
                rows={phase.rows.map((row) => [
                  row.label,
                  formatNs(row.start_ns),
                  formatNs(row.wall_ns),
                  formatNs(row.busy_ns),
                  formatNs(row.idle_ns),
                  formatPercent(row.idle_share),
                  formatCount(row.kernels),
                  formatCount(row.copies),
                ])}
                sortKeys={phase.rows.map((row, index) => [
                  index,
                  row.start_ns,
                  row.wall_ns,
                  row.busy_ns,
                  row.idle_ns,
                  row.idle_share,
                  row.kernels,
                  row.copies,
                ])}
              />
            </Behind>
          ))}
      </>
    );
  },
};
