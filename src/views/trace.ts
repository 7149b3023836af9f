import type { Document } from '../model/document.js';
import { phaseTime } from '../model/headline-time.js';
import type { PhaseKind, TraceResult } from '../model/documents/trace.js';
import type { Figure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';
import { factOf } from '../vocabulary/facts.js';
import { phaseLabel } from '../vocabulary/stages.js';
import type { Block, Section, Text } from './block.js';
import { tableOf } from './table-of.js';
import { driftSection } from './trace-drift.js';
import { idleSection, launchesSection } from './trace-idle.js';
import {
  classesSection,
  copiesSection,
  kernelsSection,
  operatorsSection,
  overlapSection,
} from './trace-kernels.js';
import { phasesSection } from './trace-phases.js';
import { memorySection, telemetrySection, timelineSection } from './trace-timeline.js';
import { countValue, ns, number, ratio } from './trace-values.js';
import { utilizationSection } from './utilization.js';
import { lengthWords, weightFormat } from '../vocabulary/workload.js';
import { rankName } from '../vocabulary/ranks.js';

/** Identity and cards of a timeline, shown with the explanation of its session. */
export function traceLead({ data }: Document<TraceResult>): Block[] {
  return [
    { type: 'text', level: 2, text: identity(data) },
    { type: 'cards', level: 3, restated: true, cards: cards(data) },
  ];
}

const isSection = (section: Section | null): section is Section => section !== null;

/** Sections about the work on the device, most important first. */
export function workSections({ data }: Document<TraceResult>): Section[] {
  const utilization = utilizationSection(data.utilization, data.phases);
  const all = data.source.gpu_used
    ? [
        phasesSection(data),
        driftSection(data),
        utilization,
        timelineSection(data),
        idleSection(data),
        kernelsSection(data),
        classesSection(data),
        launchesSection(data),
        copiesSection(data),
        overlapSection(data),
        operatorsSection(data),
      ]
    : [
        phasesSection(data),
        driftSection(data),
        utilization,
        timelineSection(data),
        classesSection(data),
        operatorsSection(data),
      ];
  return all.filter(isSection);
}

/** Sections about the context of the work: memory, telemetry, captures used and losses, machine, definitions. */
export const contextSections = ({ data }: Document<TraceResult>): Section[] =>
  [
    memorySection(data),
    telemetrySection(data),
    lossesSection(data),
    data.devices.length + data.environment.length > 0 ? environmentSection(data) : null,
    definitions(data),
  ].filter(isSection);

/** "llama 8B bfloat16 · vllm 0.26 · batch 8, 512 in + 64 out tokens · NVIDIA H200 · capture nsys (nsys 2025.3)" */
function identity({ workload, devices, source, session }: TraceResult): string {
  const device = devices.find(({ focus }) => focus);
  const { attribution, focus, gpu_used: used } = source;
  return [
    ...workloadTexts(workload),
    used ? (device?.name ?? 'unknown GPU') : 'no GPU used',
    ...(devices.length > 1 ? [rankName(focus)] : []),
    `capture ${attribution.capture_id} (${attribution.tool})`,
    ...(session.status === 'complete' ? [] : [session.status]),
  ].join(' · ');
}

const isKnown = (text: string): boolean => text !== 'unknown';

function workloadTexts(workload: Workload | null): string[] {
  if (!workload) return [];
  const { model, engine, batch_size: batch, input_len: input, output_len: output } = workload;
  return [
    ...(model
      ? [[model.name, ...weightFormat(model.dtype, model.quantization)].filter(isKnown).join(' ')]
      : []),
    ...(isKnown(engine.name) ? [`${engine.name} ${engine.version ?? ''}`.trim()] : []),
    [
      ...(batch === null ? [] : [`batch ${batch}`]),
      ...(input === null && output === null ? [] : [lengthWords(input, output)]),
    ].join(', '),
  ].filter((text) => text !== '');
}

const nOf = (figure: Figure): number | undefined => (figure.value === null ? undefined : figure.n);

/** Cards that fit one row; stages of a served model come first. */
const maxCards = 4;
const cardOrder: readonly PhaseKind[] = [
  'decode',
  'mixed',
  'prefill',
  'training',
  'sampling',
  'other',
  'warmup',
  'load',
];

const cards = ({ phases, source }: TraceResult): { label: string; value: Text; note: Text }[] =>
  phases
    .filter(({ kind, wall }) => kind !== 'outside' && wall.mean_ns > 0)
    .toSorted((a, b) => cardOrder.indexOf(a.kind) - cardOrder.indexOf(b.kind))
    .slice(0, maxCards)
    .map((phase) => {
      const { ms, profiled } = phaseTime(phase);
      return {
        label: phaseLabel(phase.kind),
        value: { n: ms, unit: 'ms' },
        note: [
          'n = ',
          countValue((profiled ? undefined : nOf(phase.clean_ms)) ?? phase.instances),
          ...(profiled ? [', under the profiler'] : [', ', ns(phase.wall.mean_ns), ' under the profiler']),
          ...(source.gpu_used ? ['; idle ', ratio(phase.idle_share)] : []),
        ],
      };
    });

const methodLabels: Record<string, string> = {
  api: 'the API call that launched it',
  process_range: 'a range of the whole process around that call',
  thread: 'the thread that launched it',
  time: 'its time only',
};

function lossesSection({ attribution, source }: TraceResult): Section {
  return {
    id: 'losses',
    title: 'Captures used, and losses',
    level: 2,
    blocks: [
      { type: 'notes', items: source.why },
      tableOf(
        'Executions and their captures; figures are never summed over them',
        [
          { id: 'execution', head: 'execution', cell: ({ execution_id: id }) => id },
          { id: 'purpose', head: 'purpose', cell: ({ purpose }) => purpose },
          {
            id: 'captures',
            head: 'captures',
            wraps: true,
            lines: true,
            cell: ({ captures }): Text =>
              captures.flatMap(({ capture_id: id, tool, kernels }, index) => [
                `${index === 0 ? '' : ', '}${id} (${tool}`,
                // Records and samples have none.
                ...(kernels === 0
                  ? []
                  : [', ', countValue(kernels), source.gpu_used ? ' kernels' : ' operators']),
                ')',
              ]),
          },
          {
            id: 'used_for',
            head: 'used for',
            cell: ({ used_for: use, purpose }) => use ?? (purpose === 'counters' ? 'counters' : 'not used'),
          },
        ],
        source.executions,
      ),
      ...(attribution.methods.length > 0 ? attributionBlocks(attribution) : []),
    ],
  };
}

/** How kernels were assigned to phases; without kernels there is nothing to assign. */
function attributionBlocks(attribution: TraceResult['attribution']): Block[] {
  const total = attribution.methods.reduce((sum, { kernel_ns: n }) => sum + n, 0);
  return [
    {
      level: 3,
      ...tableOf(
        'How kernels were assigned to stages',
        [
          {
            id: 'how',
            head: 'method',
            cell: ({ method }) => (method === null ? 'in no range' : (methodLabels[method] ?? method)),
          },
          { id: 'kernels', head: 'kernels', ...number, cell: ({ kernels: count }) => ({ count }) },
          { id: 'kernel_ns', head: 'time', ...number, cell: ({ kernel_ns: n }) => ns(n) },
          {
            id: 'share',
            head: 'share',
            ...number,
            cell: ({ kernel_ns: n }) => (total > 0 ? ratio(n / total) : { missing: 'no kernel has a time' }),
          },
        ],
        attribution.methods,
      ),
    },
    {
      type: 'text',
      level: 3,
      text: [
        ...(attribution.orphans === 0
          ? ['Every kernel has its launching API call in the capture.']
          : [
              countValue(attribution.orphans),
              ` ${attribution.orphans === 1 ? 'kernel has' : 'kernels have'} no launching API call in the capture.`,
            ]),
        ' Classified by name or operator: ',
        { figure: attribution.classified_share },
        attribution.classified_share.value === null
          ? ` (${attribution.classified_share.reason.text}).`
          : ' of kernel time.',
      ],
    },
  ];
}

const devicesTable = (devices: TraceResult['devices']): Block =>
  tableOf(
    'Devices; the page shows the one in focus',
    [
      {
        id: 'device',
        head: 'device',
        cell: ({ device, focus }) => `${device ?? '–'}${focus ? ' (focus)' : ''}`,
      },
      {
        id: 'rank',
        head: 'rank',
        cell: ({ rank }) => (rank === null ? { missing: 'no rank was recorded' } : String(rank)),
      },
      { id: 'name', head: 'name', cell: ({ name }) => name ?? { missing: 'no name was recorded' } },
      { id: 'kernels', head: 'kernels', ...number, cell: ({ kernels: count }) => ({ count }) },
      { id: 'copies', head: 'copies', ...number, cell: ({ copies: count }) => ({ count }) },
      { id: 'streams', head: 'streams', ...number, cell: ({ streams: count }) => ({ count }) },
      { id: 'busy_ns', head: 'busy', ...number, cell: ({ busy_ns: n }) => ns(n) },
      { id: 'span_ns', head: 'first to last', ...number, cell: ({ span_ns: n }) => ns(n) },
      {
        id: 'peak_bandwidth_bytes_per_s',
        head: 'bandwidth, data sheet',
        ...number,
        cell: ({ peak_bandwidth_bytes_per_s: figure }) => ({ figure }),
      },
      {
        id: 'peak_flops_per_s',
        head: 'peak, data sheet',
        ...number,
        cell: ({ peak_flops_per_s: figure }) => ({ figure }),
      },
    ],
    devices,
  );

const environmentSection = ({ devices, environment }: TraceResult): Section => ({
  id: 'environment',
  title: 'Environment',
  level: 3,
  blocks: [
    ...(devices.length > 0 ? [devicesTable(devices)] : []),
    {
      type: 'facts',
      items: environment.map((fact) => {
        const { name, value } = factOf(fact);
        return { name, text: value };
      }),
    },
  ],
});

/** Definitions of the figures on the page. */
const meanings = {
  'Wall time of a stage':
    'A decode step runs from its start to the start of the next, so that host work between steps is inside; other stages run from start to end.',
  'n, sd': 'Number of instances and their sample standard deviation.',
};

/** Definitions of figures that only a capture of a GPU has. */
const gpuMeanings = {
  'Clock of a stage':
    'Host ranges give the times of stages where the program waits for the device in every step, else the first device activity of each step.',
  Busy: 'At least one kernel or copy ran on the device; concurrent ones are counted once.',
  'Idle, by cause':
    "Each gap is cut at the start and return of the API call that launched what ended it. Before the call: synchronization where its thread was in a waiting call, else host. Inside it: launch call. After it: launch latency up to this device's usual one, the rest is a device dependency.",
  'Total and counted once':
    'Total is the sum of durations. Counted once (exclusive) omits time already counted for another kernel that ran at the same time.',
  Queue: "From the return of the launching call to the kernel's start, of kernels that started after it.",
  Exposed: 'Copies or communication while no compute kernel ran: the most that overlap could save.',
  'With and without profiler':
    'Kernel times stay valid under a profiler; host times grow. “Without profiler” is a clean run of the same workload, if the session has one.',
};

const definitions = ({ source }: TraceResult): Section => ({
  id: 'definitions',
  title: 'How it was measured',
  level: 3,
  blocks: [
    {
      type: 'facts',
      items: Object.entries({ ...meanings, ...(source.gpu_used ? gpuMeanings : {}) }).map(([name, text]) => ({
        name,
        text,
      })),
    },
  ],
});
