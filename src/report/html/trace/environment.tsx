import { formatNs } from '../../charts/trace/words.js';
import { formatCount, formatPercent, noValue } from '../../format.js';
import { missingReasons } from '../../words.js';
import { DataTable, DefinitionList, FigureText, MissingNotes, Notices } from '../parts.js';
import { factWords } from '../sections/environment.js';
import type { TraceSection } from './inputs.js';

export const lossesSection: TraceSection = {
  id: 'losses',
  title: 'What was used, and what was lost',
  render: ({ data }) => {
    const { attribution, source } = data;
    const total = attribution.methods.reduce((sum, { kernel_ns }) => sum + kernel_ns, 0);
    return (
      <>
        <ul class="notes">
          {source.why.map((text) => (
            <li>{text}</li>
          ))}
        </ul>
        <DataTable
          caption="Executions and their captures; nothing is summed over them"
          columns={[
            { head: 'execution' },
            { head: 'purpose' },
            { head: 'captures', wraps: true },
            { head: 'used for', wraps: true },
          ]}
          rows={source.executions.map((execution) => [
            execution.execution_id,
            execution.purpose,
            execution.captures
              .map(
                ({ capture_id, tool, kernels }) => `${capture_id} (${tool}, ${formatCount(kernels)} kernels)`,
              )
              .join(', '),
            execution.used_for ?? 'nothing here',
          ])}
        />
        <DataTable
          caption="How kernels found their phase"
          columns={[
            { head: 'by' },
            { head: 'kernels', numeric: true },
            { head: 'time', numeric: true },
            { head: 'share', numeric: true },
          ]}
          rows={attribution.methods.map(({ how, kernels, kernel_ns }) => [
            how === null ? 'in no range' : (methodNames[how] ?? how),
            formatCount(kernels),
            formatNs(kernel_ns),
            total > 0 ? formatPercent(kernel_ns / total) : noValue,
          ])}
        />
        <p>
          {formatCount(attribution.orphans)} kernels have no launching API call in the capture. Classified by
          name: <FigureText figure={attribution.classified_share} /> of kernel time.
        </p>
        <MissingNotes reasons={missingReasons([['classified', attribution.classified_share]])} />
        <Notices issues={attribution.losses} />
      </>
    );
  },
};

const methodNames: Record<string, string> = {
  api: 'the API call that launched it',
  process_range: 'a range of the whole process around that call',
  thread: 'the thread that launched it',
  time: 'its time alone',
};

export const traceEnvironmentSection: TraceSection = {
  id: 'environment',
  title: 'Environment',
  render: ({ data }) => (
    <>
      <DataTable
        caption="Devices; the one in focus is what this page speaks of"
        columns={[
          { head: 'device' },
          { head: 'rank', numeric: true },
          { head: 'name' },
          { head: 'kernels', numeric: true },
          { head: 'copies', numeric: true },
          { head: 'streams', numeric: true },
          { head: 'busy', numeric: true },
          { head: 'first to last', numeric: true },
          { head: 'bandwidth, data sheet', numeric: true },
          { head: 'peak, data sheet', numeric: true },
        ]}
        rows={data.devices.map((device) => [
          `${device.device ?? noValue}${device.focus ? ' (focus)' : ''}`,
          String(device.rank ?? noValue),
          device.name ?? noValue,
          formatCount(device.kernels),
          formatCount(device.copies),
          formatCount(device.streams),
          formatNs(device.busy_ns),
          formatNs(device.span_ns),
          <FigureText figure={device.peak_bandwidth_bytes_per_s} />,
          <FigureText figure={device.peak_flops_per_s} />,
        ])}
      />
      <DataTable
        caption="Machine and software"
        class="whole"
        columns={[{ head: '' }, { head: '', wraps: true }]}
        rows={data.environment.map(factWords)}
      />
    </>
  ),
};

/** Kept in step with docs/measurement.md. */
const definitions: [term: string, text: string][] = [
  [
    'Wall time of a phase',
    'A decode step runs from its start to the start of the next, so that host work between steps is inside; other phases run from begin to end. By the host’s ranges where the program waits for the device in every step, else from the first device activity of one to that of the next.',
  ],
  ['Busy', 'At least one kernel or copy ran on the device. Time in which several ran is counted once.'],
  [
    'Idle, by cause',
    'Each gap is cut at the begin and return of the API call that launched what ended it. Before the call: synchronisation where its thread was in a waiting call, else host. Inside it: launching. After it: launch latency up to this device’s usual one, the rest is a device dependency.',
  ],
  [
    'Total and counted once',
    'Total is the sum of durations. Counted once (exclusive) leaves out what another kernel of the same moment is counted for.',
  ],
  ['Queue', 'From the return of the launching call to the kernel’s begin, of kernels that began after it.'],
  ['Exposed', 'Copies or communication while no compute kernel ran: what hiding them could save.'],
  [
    'With and without profiler',
    'Kernel times hold under a profiler; host times grow. “Without profiler” is a clean run of the same workload where the session has one.',
  ],
  ['n, sd', 'Number of instances and their sample standard deviation.'],
];

export const traceDefinitionsSection: TraceSection = {
  id: 'definitions',
  title: 'How it was measured',
  render: () => <DefinitionList terms={definitions} />,
};
