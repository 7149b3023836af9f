import type { BenchPointResult } from '../../../model/documents/bench.js';
import type { Figure } from '../../../model/figure.js';
import { batchLines } from '../../charts/bench/batch.js';
import { knownMachineValues, machineValues } from '../../charts/bench/machine.js';
import { formatCount } from '../../format.js';
import { missingReasons } from '../../words.js';
import { DataTable, FigureText, MissingNotes } from '../parts.js';
import { BatchKey, BenchChart, type BenchSection, Interval, pointWords } from './bench-parts.js';

const columns: [name: string, of: (point: BenchPointResult) => Figure][] = [
  ['memory', ({ machine }) => machine.memory_bytes],
  ['on the GPU, all processes', ({ machine }) => machine.gpu_memory_used_bytes],
  ['GPU utilisation', ({ machine }) => machine.gpu_utilization_percent],
  ['idle, prefill', ({ device_work }) => device_work.prefill_idle_share],
  ['idle, decode step', ({ device_work }) => device_work.decode_idle_share],
  ['kernels a decode step', ({ device_work }) => device_work.decode_kernels],
  ['CPU cores busy', ({ machine }) => machine.cpu_cores_busy],
  ['power', ({ machine }) => machine.power_w],
  ['SM clock', ({ machine }) => machine.sm_clock_mhz],
  ['per output token', ({ machine }) => machine.joules_per_output_token],
  ['KV cache in use', ({ machine }) => machine.kv_cache_usage],
];

export const machineSection: BenchSection = {
  id: 'machine',
  title: 'What the machine did',
  render: ({ data }) => {
    const lines = batchLines(data);
    const several = data.variants.length > 1;
    const rows = data.variants.flatMap(({ label, points }) =>
      points.filter(({ outcome }) => outcome === 'measured').map((point) => ({ label, point })),
    );
    const known = columns.filter(([, of]) => rows.some(({ point }) => of(point).value !== null));
    const parts = knownMachineValues(data);
    return (
      <>
        {parts.length > 0 && lines.some(({ points }) => points.length > 1) && (
          <>
            <BatchKey lines={lines} />
            <div class="two">
              {parts.map((part) => (
                <div>
                  <h3>{machineValues[part].name}</h3>
                  <BenchChart
                    name="bench_machine"
                    part={part}
                    result={data}
                    label={`${machineValues[part].name} against the batch size`}
                  >
                    <DataTable
                      caption={machineValues[part].name}
                      columns={[
                        ...(lines.length > 1 ? [{ head: '' }] : []),
                        { head: 'batch', numeric: true },
                        { head: machineValues[part].name, numeric: true },
                      ]}
                      rows={lines.flatMap(({ name, points }) =>
                        points.map((point) => [
                          ...(lines.length > 1 ? [name] : []),
                          formatCount(point.batch_size),
                          <FigureText figure={machineValues[part].of(point)} />,
                        ]),
                      )}
                    />
                  </BenchChart>
                </div>
              ))}
            </div>
          </>
        )}
        <DataTable
          caption="While each point was timed"
          columns={[
            ...(several ? [{ head: 'variant' }] : []),
            { head: 'point' },
            ...known.map(([head]) => ({ head, numeric: true })),
          ]}
          rows={rows.map(({ label, point }) => [
            ...(several ? [label] : []),
            pointWords(point),
            ...known.map(([, of]) => <Interval figure={of(point)} />),
          ])}
        />
        <MissingNotes
          reasons={missingReasons(
            columns.flatMap(([name, of]): [string, Figure][] => {
              const gone = rows.map(({ point }) => of(point)).find(({ value }) => value === null);
              return gone ? [[name, gone]] : [];
            }),
          )}
        />
      </>
    );
  },
};
