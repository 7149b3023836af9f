import type { ProfileResult } from '../../../model/documents/profile.js';
import type { Figure } from '../../../model/figure.js';
import { Behind, DataTable, DefinitionList, FigureText } from '../parts.js';
import type { Section } from '../section.js';

/** Kept in step with docs/measurement.md. */
const definitions: [term: string, text: string][] = [
  [
    'TTFT',
    'Time to first token: from the start of a request to its first generated token, prefill and sampling included.',
  ],
  [
    'TPOT',
    'Time per output token after the first: (last token − first token) / (output tokens − 1). Null for one token.',
  ],
  [
    'Decode tokens/s',
    'Batch size / TPOT. Output tokens/s divides all output tokens by the end-to-end time instead.',
  ],
  [
    'Decode step',
    'The period from the start of one decode call to the start of the next, so that host work between them, sampling included, is inside. The last step ends with its repeat.',
  ],
  [
    'MFU',
    'Model FLOPs utilisation: FLOPs that the model’s arithmetic needs / (clean stage time × peak FLOP/s of the dtype). The peak is the one measured on this machine through the same runtime, since a CPU has no data sheet peak. int4 weights are multiplied in int8 and held against the int8 peak.',
  ],
  [
    'MBU',
    'Model bandwidth utilisation: bytes that must be moved (weights once, KV cache once, activations in and out once) / (clean stage time × bandwidth). The bandwidth is the one measured at the stage’s working-set size, so it is a cache’s where the model fits in the last-level cache; the level is named.',
  ],
  [
    'Accounting fault',
    'An MFU or MBU over 100 %. No hardware can do that, so the work is counted too high, the roof was measured too low or the time is wrong. The value is shown and must not be used.',
  ],
  [
    'Roofline',
    'max(FLOPs / peak, bytes / bandwidth) of a stage: nothing is faster without another model, batch or dtype. The ridge is the float32 peak / the bandwidth at the largest working set measured. A stage is bound by whichever takes longer at its own dtype and working set.',
  ],
  [
    'Bars',
    'From the roofline to the measured time. serial: the price of one operation after another. inefficiency.<class>: profiled time of a class less its roofline time. nonessential.<class>: classes that a fused implementation would not run. host.runtime_dispatch and host.runtime_call: gaps between operators and at the edges of a call, from which the profiler’s overhead has been taken out, in this order. host.sampling, host.loop: clean host time around the call. unattributed: what is left. A negative bar is kept: it says that an assumption is wrong.',
  ],
  [
    'Confidence',
    'high: exact intervals of the clean execution. medium: attributed by time. low: rests on an assumption about the model or the machine.',
  ],
  [
    'Interval',
    '95 % confidence interval of the mean: Student’s t over the means of the process launches. Repeats of one process are not independent of each other, tokens of one repeat even less. With one launch it is over the repeats and says only how steady that process was.',
  ],
  [
    'Clean and profiled',
    'Latency, throughput, MFU and MBU come from the clean execution, with no profiler on. Operators come from a second, profiled execution; profiler overhead is the difference of the two.',
  ],
  [
    'Gaps',
    'Time of a stage in which no operator ran: between two operators, or at the edges (binding inputs, fetching outputs). Operators + gaps + remainder = stage.',
  ],
  [
    'What costs',
    'Shares of the clean stage time. Kernels: the bars roofline, serial, inefficiency.* and nonessential.*. Scheduling: host.runtime_dispatch and host.runtime_call. Host: host.sampling and host.loop. Allocation is null: this runtime’s trace has no event for it. They and unattributed sum to 1. A verdict names the largest when it is at least half of the stage and leads the next by more than what is unattributed. What a utilisation over 100 % would support is not said.',
  ],
  [
    'Memory points',
    'Of the engine’s process in the first clean launch. Baseline: before the runtime and the model are loaded. After warm-up: when the warm-up repeats are done. Peak: the kernel’s own high-water mark at the end of the last timed repeat. The differences show lazy allocation and growth.',
  ],
];

function allFigures(result: ProfileResult): [string, Figure][] {
  const named = (prefix: string, of: object): [string, Figure][] =>
    Object.entries(of).flatMap(([key, value]): [string, Figure][] =>
      typeof value === 'object' && value !== null && 'value' in value
        ? [[`${prefix}.${key}`, value as Figure]]
        : [],
    );
  return [
    ...named('latency', result.latency),
    ...result.stages.flatMap((stage) => named(stage.kind, stage)),
    ...(result.memory ? named('memory', result.memory) : []),
    ...(result.telemetry ? named('telemetry', result.telemetry) : []),
  ];
}

export const definitionsSection: Section = {
  id: 'definitions',
  title: 'How it was measured',
  render: ({ data }) => (
    <>
      <DefinitionList terms={definitions} />
      <Behind title="Every figure with its source">
        <DataTable
          caption="Figures by their names in the JSON document"
          columns={[
            { head: 'figure' },
            { head: 'value', numeric: true },
            { head: 'source, or why it is missing', wraps: true },
          ]}
          rows={allFigures(data).map(([name, figure]) => [
            <code>{name}</code>,
            <FigureText figure={figure} />,
            figure.value === null ? figure.reason.text : figure.source,
          ])}
        />
      </Behind>
    </>
  ),
};
