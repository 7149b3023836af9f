import type { AllocatorMoment, MemoryResult } from '../../../model/documents/memory-result.js';
import { componentColor } from '../../charts/memory/colors.js';
import { heldBytes, heldParts, mainSeries, momentsOf, sampledLines } from '../../charts/memory/timeline.js';
import { formatCount, formatPercent, noValue } from '../../format.js';
import { componentLabels } from '../../../vocabulary/memory-components.js';
import { gbText } from '../../memory-words.js';
import { classColors } from '../../palette.js';
import { thinned } from '../../../model/thinned.js';
import { Absent, DataTable } from '../parts.js';
import { ColorKey } from '../trace/trace-parts.js';
import { MemoryChart, type MemorySection, secondsWords } from './memory-parts.js';

const bytesText = (bytes: number | null): string => gbText(bytes === null ? null : bytes / 1e9);
/** Rows of the table behind a chart, over all its series. */
const mostRows = 300;

export const timelineSection: MemorySection = {
  id: 'timeline',
  title: 'Over time',
  render: ({ data }) => {
    const { timeline, profile } = data;
    const series = mainSeries(data);
    if (series.length === 0)
      return (
        <Absent
          what="Memory was not sampled."
          why="Neither a GPU driver nor the processes of the engine could be read."
        />
      );
    const lines = sampledLines(data);
    const each = Math.floor(mostRows / series.length);
    const { sampling } = profile.metadata;
    return (
      <>
        <p>
          {formatCount(sampling.samples)} samples by {sampling.source}
          {sampling.hz !== null && `, ${sampling.hz.toFixed(0)} a second`}, from before the engine began until
          after it ended. Shaded: what ran when.
        </p>
        {lines.length > 1 && (
          <ColorKey label="Devices" entries={() => lines.map(({ name, color }) => ({ name, color }))} />
        )}
        <MemoryChart
          name="memory_timeline"
          result={data}
          label="Memory over the run with the three points marked"
        >
          <DataTable
            caption={`At most ${each} samples a series, evenly spread`}
            columns={[{ head: 'of' }, { head: 'time', numeric: true }, { head: 'memory', numeric: true }]}
            rows={series.flatMap(({ label, points }) =>
              thinned(points, each).map(({ t_s, bytes }) => [label, secondsWords(t_s), bytesText(bytes)]),
            )}
          />
          <DataTable
            caption="What ran when"
            columns={[{ head: 'phase' }, { head: 'from', numeric: true }, { head: 'to', numeric: true }]}
            rows={timeline.phases.map(({ label, start_s, end_s }) => [
              label,
              secondsWords(start_s),
              secondsWords(end_s),
            ])}
          />
        </MemoryChart>
      </>
    );
  },
};

/** Devices whose allocator told what it held, as parts of charts. */
const tellingDevices = ({ allocator }: MemoryResult): (number | null)[] =>
  [...new Set(allocator.map(({ gpu }) => gpu))].toSorted((a, b) => (a ?? -1) - (b ?? -1));

const deviceName = (gpu: number | null): string => (gpu === null ? 'host' : `gpu${gpu}`);

const MomentTable = ({ moments }: { moments: readonly AllocatorMoment[] }) => (
  <DataTable
    caption="What the allocator held, by stage; of repeated stages the fullest"
    columns={[
      { head: 'stage' },
      { head: 'rank', numeric: true },
      { head: 'its end', numeric: true },
      ...heldParts.map((name) => ({ head: componentLabels[name], numeric: true })),
      { head: 'given out at most', numeric: true },
      { head: 'reserved', numeric: true },
    ]}
    rows={moments.map((moment) => [
      moment.stage.replaceAll('_', ' '),
      formatCount(moment.rank),
      secondsWords(moment.t_s),
      ...heldParts.map((name) => bytesText(heldBytes(moment, name))),
      bytesText(moment.max_allocated_bytes),
      bytesText(moment.reserved_bytes),
    ])}
  />
);

export const stackSection: MemorySection = {
  id: 'allocator',
  title: 'What the framework held',
  applies: ({ data }) => data.allocator.length > 0,
  render: ({ data }) => (
    <>
      <p>
        By the framework’s own allocator, stacked: weights, KV cache, what else was alive at most (activations
        and temporaries), and what it had reserved beyond that. The line is what was sampled from outside:
        what lies between them is the context, kernels and libraries.
      </p>
      <ColorKey
        label="Components"
        entries={(theme) => [
          ...heldParts
            .filter((name) => data.allocator.some((moment) => heldBytes(moment, name) > 0))
            .map((name) => ({ name: componentLabels[name], color: componentColor(name, theme) })),
          { name: 'sampled', color: theme.ink },
        ]}
      />
      {tellingDevices(data).map((gpu) => (
        <>
          <h3>{deviceName(gpu)}</h3>
          <MemoryChart
            name="memory_stack"
            part={String(gpu)}
            result={data}
            label={`Memory that the allocator of ${deviceName(gpu)} held over time, by component`}
          >
            <MomentTable moments={momentsOf(data, String(gpu))} />
          </MemoryChart>
        </>
      ))}
    </>
  ),
};

export const fragmentationSection: MemorySection = {
  id: 'fragmentation',
  title: 'Reserved and given out',
  applies: ({ data }) => data.allocator.some(({ reserved_bytes: bytes }) => bytes !== null),
  render: ({ data }) => (
    <>
      <p>
        The allocator keeps what it once reserved. What it never gave out is lost to fragmentation and to its
        own rounding; expandable segments or a smaller spread of sizes bring it back.
      </p>
      <ColorKey
        label="Lines"
        entries={() => [
          { name: 'reserved (dashed)', color: classColors.sampling },
          { name: 'given out at most', color: classColors.gemm },
          { name: 'given out at its end', color: classColors.norm },
        ]}
      />
      {tellingDevices(data)
        .filter((gpu) => momentsOf(data, String(gpu)).some(({ reserved_bytes: bytes }) => bytes !== null))
        .map((gpu) => (
          <>
            <h3>{deviceName(gpu)}</h3>
            <MemoryChart
              name="memory_reserved"
              part={String(gpu)}
              result={data}
              label={`Reserved against given out on ${deviceName(gpu)}`}
            >
              <MomentTable moments={momentsOf(data, String(gpu))} />
            </MemoryChart>
          </>
        ))}
      {data.fragmentation.length > 0 && (
        <DataTable
          caption="At their most"
          columns={[
            { head: 'GPU' },
            ...[
              'reserved',
              'given out',
              'never given out',
              'share',
              'free pieces of split blocks at the end',
            ].map((head) => ({ head, numeric: true })),
          ]}
          rows={data.fragmentation.map((one) => [
            `gpu${one.gpu}`,
            bytesText(one.reserved_bytes),
            bytesText(one.max_allocated_bytes),
            bytesText(one.reserved_bytes - one.max_allocated_bytes),
            formatPercent(one.unused_share),
            one.inactive_split_bytes === null ? noValue : bytesText(one.inactive_split_bytes),
          ])}
        />
      )}
    </>
  ),
};
