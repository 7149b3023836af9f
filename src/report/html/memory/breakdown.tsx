import type { MemoryPoint, MemoryProfile } from '../../../model/documents/memory-profile.js';
import { shortPlace } from '../../charts/memory/allocations.js';
import { componentColor } from '../../charts/memory/colors.js';
import { formatCount, formatPercent, noValue } from '../../format.js';
import { componentLabels } from '../../../vocabulary/memory-components.js';
import { gbText, signedPercent } from '../../memory-words.js';
import { pointLabels } from '../../../vocabulary/memory-points.js';
import { themes } from '../../palette.js';
import { Absent, DataTable, MissingNotes } from '../parts.js';
import { MemoryChart, type MemorySection, secondsWords } from './memory-parts.js';

const pointNames = ['baseline', 'post_warmup', 'peak'] as const;
const numeric = (head: string) => ({ head, numeric: true });

/** Why figures below a path of the profile are null, each reason once. */
const reasonsBelow = ({ missing }: MemoryProfile, path: string): string[] => [
  ...new Set(
    Object.entries(missing)
      .filter(([name]) => name.startsWith(path))
      .map(([name, why]) => `${name.slice(path.length + 1).replaceAll('_', ' ')}: ${why}`),
  ),
];

export const pointsSection: MemorySection = {
  id: 'points',
  title: 'The three points',
  render: ({ data: { profile } }) => {
    const { memory_measurements: measured } = profile;
    const increases = [
      ['came up to warm-up (after warm-up − baseline)', measured.warmup_increase_gb],
      ['grew after it (peak − after warm-up)', measured.growth_gb],
      ['in all (peak − baseline)', measured.memory_increase_gb],
    ] as const;
    return (
      <>
        <DataTable
          caption="Sum over the GPUs of the run, and how evenly they are filled"
          columns={[
            { head: '' },
            ...['sum', 'max', 'mean', 'sd', 'at'].map(numeric),
            { head: 'measured by', wraps: true },
          ]}
          rows={pointNames.map((name) => {
            const point = measured[name];
            return [
              pointLabels[name],
              gbText(point.total_gb),
              gbText(point.max_gb),
              gbText(point.mean_gb),
              gbText(point.stddev_gb),
              secondsWords(point.t_s),
              point.source ?? noValue,
            ];
          })}
        />
        <DataTable
          caption="Increases"
          columns={[{ head: '' }, numeric('memory')]}
          rows={increases.map(([name, gb]) => [name, gbText(gb)])}
        />
        <MissingNotes reasons={reasonsBelow(profile, 'memory_measurements')} />
      </>
    );
  },
};

/** Details of a GPU at a point. */
const gpuAt = (point: MemoryPoint, gpu: number) => point.per_gpu_details.find((one) => one.gpu === gpu);

export const gpusSection: MemorySection = {
  id: 'gpus',
  title: 'By GPU',
  applies: ({ data }) => data.profile.memory_measurements.peak.per_gpu_details.length > 0,
  render: ({ data: { profile } }) => {
    const { memory_measurements: measured } = profile;
    return (
      <DataTable
        caption="In use on each GPU"
        columns={[
          { head: 'GPU' },
          ...pointNames.map((name) => numeric(pointLabels[name])),
          numeric('of'),
          numeric('filled'),
        ]}
        rows={measured.peak.per_gpu_details.map(
          ({ gpu, name, used_bytes: used, total_bytes: total, total_gb }) => [
            name === null ? `gpu${gpu}` : `gpu${gpu} · ${name}`,
            ...pointNames.map((point) => gbText(gpuAt(measured[point], gpu)?.used_gb ?? null)),
            gbText(total_gb),
            used === null || !total ? noValue : formatPercent(used / total),
          ],
        )}
      />
    );
  },
};

const swatch = (component: string) => (
  <span class="class-name">
    <span
      class="swatch"
      style={`background:light-dark(${componentColor(component, themes.light)},${componentColor(component, themes.dark)})`}
      aria-hidden="true"
    />
    {componentLabels[component as keyof typeof componentLabels]}
  </span>
);

export const breakdownSection: MemorySection = {
  id: 'breakdown',
  title: 'Where it went',
  render: ({ data }) => {
    const { memory_breakdown: parts } = data.profile;
    const total = parts.total_measured_bytes;
    if (parts.components.length === 0)
      return (
        <Absent
          what="The peak could not be broken down."
          why="Neither the engine nor the arithmetic of the model tells where the memory went."
        />
      );
    return (
      <>
        <p>
          The run’s own memory at its peak, {gbText(parts.total_measured_gb)}, by component. What the
          components do not explain is the residual; negative, they explain more than there was. Confidence
          overall: {parts.confidence_levels.overall}.
        </p>
        <MemoryChart
          name="memory_parts"
          result={data}
          label="Components of the measured memory, one after the other"
        >
          <DataTable
            caption="Components in bytes"
            columns={[{ head: 'component' }, numeric('bytes')]}
            rows={parts.components.map(({ component, bytes }) => [
              componentLabels[component],
              formatCount(bytes),
            ])}
          />
        </MemoryChart>
        <DataTable
          caption="Evidence"
          columns={[
            { head: 'component' },
            numeric('memory'),
            numeric('share'),
            { head: 'confidence' },
            numeric('calculator'),
            numeric('off by'),
            { head: 'what it rests on', wraps: true },
          ]}
          rows={[
            ...parts.components.map(
              ({ component, bytes, gb, confidence, evidence, estimate_bytes: estimate }) => [
                swatch(component),
                gbText(gb),
                total ? formatPercent(bytes / total) : noValue,
                component === 'residual' ? noValue : confidence,
                gbText(estimate === null ? null : estimate / 1e9),
                estimate === null || bytes === 0 ? noValue : signedPercent((estimate - bytes) / bytes),
                evidence.join('; '),
              ],
            ),
            [
              <strong>measured</strong>,
              gbText(parts.total_measured_gb),
              '',
              parts.confidence_levels.overall,
              '',
              '',
              '',
            ],
          ]}
        />
        <MissingNotes reasons={reasonsBelow(data.profile, 'memory_breakdown')} />
      </>
    );
  },
};

/** Rows of the table; a snapshot of a large model has thousands of places. */
const mostAllocations = 300;

export const allocationsSection: MemorySection = {
  id: 'allocations',
  title: 'Allocations by operator',
  applies: ({ data }) => (data.allocations?.length ?? 0) > 0,
  render: ({ data }) => {
    const all = data.allocations ?? [];
    const gpus = [...new Set(all.map(({ gpu }) => gpu))].toSorted((a, b) => a - b);
    return (
      <>
        <p>
          What was alive when the allocator held most, in one repeat of the warm-up with recording on, by the
          place in the program that asked for it.
        </p>
        {gpus.map((gpu) => {
          const own = all.filter((one) => one.gpu === gpu);
          return (
            <>
              {gpus.length > 1 && <h3>gpu{gpu}</h3>}
              <MemoryChart
                name="memory_allocations"
                part={String(gpu)}
                result={data}
                label={`The largest allocations on gpu${gpu} by operator`}
              >
                <DataTable
                  caption={
                    own.length > mostAllocations
                      ? `The ${mostAllocations} largest of ${formatCount(own.length)}`
                      : 'Every place'
                  }
                  filter
                  columns={[
                    { head: 'place', wraps: true },
                    { head: 'stage' },
                    numeric('memory'),
                    numeric('blocks'),
                  ]}
                  rows={own
                    .slice(0, mostAllocations)
                    .map(({ operator, stage, bytes, blocks }) => [
                      <code title={operator}>{shortPlace(operator)}</code>,
                      stage,
                      gbText(bytes / 1e9),
                      blocks === null ? noValue : formatCount(blocks),
                    ])}
                  sortKeys={own
                    .slice(0, mostAllocations)
                    .map(({ operator, stage, bytes, blocks }) => [operator, stage, bytes, blocks])}
                />
              </MemoryChart>
            </>
          );
        })}
      </>
    );
  },
};
