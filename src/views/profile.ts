import type { Document } from '../model/document.js';
import type { ProfileResult, StageResult } from '../model/documents/profile.js';
import { missing, type Figure } from '../model/figure.js';
import { formatSpread } from '../vocabulary/format.js';
import { evenlySpaced } from '../model/evenly-spaced.js';
import { factOf } from '../vocabulary/facts.js';
import { componentNames } from '../vocabulary/profile-memory.js';
import { stageLabels } from '../vocabulary/stages.js';
import { identityWords } from '../vocabulary/workload.js';
import type { Places } from './findings.js';
import type { Block, Section, Text, Value, View } from './block.js';
import {
  latencySection,
  memoryParts,
  memorySection,
  rooflineSection,
  telemetrySection,
} from './profile-machine.js';
import { layerSection, operatorSection } from './profile-operators.js';
import { intervalsOver } from './profile-series.js';
import { tableOf } from './table-of.js';
import { timelineSection } from './trace-timeline.js';

const maxMemorySamples = 2000;
const maxTelemetryPoints = 20_000;

/** The document for a page: long sampled series are thinned to what a chart can show. The session keeps every sample. */
function withThinnedSamples(document: Document<ProfileResult>): Document<ProfileResult> {
  const { memory, telemetry } = document.data;
  const pointsPerSeries = Math.max(
    50,
    Math.floor(maxTelemetryPoints / Math.max(1, telemetry?.series.length ?? 0)),
  );
  return {
    ...document,
    data: {
      ...document.data,
      memory: memory && { ...memory, series: evenlySpaced(memory.series, maxMemorySamples) },
      telemetry: telemetry && {
        ...telemetry,
        series: telemetry.series.map((series) => ({
          ...series,
          points: evenlySpaced(series.points, pointsPerSeries),
        })),
      },
    },
  };
}

/** A run of the embedded engine: stages against this machine's rooflines, operators, memory, the host. */
export function profileView(profileDocument: Document<ProfileResult>, places?: Places): View {
  const document = withThinnedSamples(profileDocument);
  const { data, issues } = document;
  const identity = identityWords(data.workload);
  return {
    command: 'profile',
    title: data.session.title,
    document,
    session: data.session,
    lead: [
      ...(data.session.title === identity ? [] : [{ type: 'text', text: identity } satisfies Block]),
      ...unfinished(data),
      { type: 'facts', items: leadingFacts(data) },
      { type: 'cards', level: 3, cards: cards(data) },
      { type: 'issues', issues },
    ],
    sections: [
      stageSection(data),
      operatorSection(data),
      ...layerSection(data),
      rooflineSection(data, places),
      timelineSection(data),
      memorySection(data),
      latencySection(data),
      telemetrySection(data),
      environmentSection(data),
      definitions(data),
    ],
  };
}

const unfinished = ({ session: { status } }: ProfileResult): Block[] =>
  status === 'complete'
    ? []
    : [
        {
          type: 'text',
          text: [{ text: status, tone: 'fault' }, ': the figures cover what was recorded until then.'],
        },
      ];

/** "387 ms ± 17 (95 %, n = 15) · TTFT 89.4 ms ± 4.2 · TPOT 9.60 ms ± 0.44 · 83.0 tok/s", and the peak of memory. */
function leadingFacts({ latency, memory }: ProfileResult): { name: string; text: Text }[] {
  const interval = (figure: Figure): Value => ({ figure, spread: 'interval' });
  return [
    {
      name: 'request',
      text: [
        { figure: latency.e2e_ms, spread: true },
        ' · TTFT ',
        interval(latency.ttft_ms),
        ' · TPOT ',
        interval(latency.tpot_ms),
        ' · ',
        { figure: latency.output_tokens_per_s },
      ],
    },
    {
      name: 'peak memory',
      text: memory
        ? [
            { figure: memory.peak_bytes },
            ...memoryParts(memory)
              .slice(0, 3)
              .flatMap(({ component, bytes }, index) => [
                `${index === 0 ? ': ' : ', '}${componentNames[component]} `,
                { n: bytes, unit: 'B' },
              ]),
          ]
        : { missing: 'memory was not sampled' },
    },
  ];
}

/** MFU of a compute-bound stage, MBU of a memory-bound one; `fallback` if the limit is unknown. */
function utilizationCard(name: 'prefill' | 'decode', data: ProfileResult, fallback: 'MFU' | 'MBU') {
  const stage = data.stages.find(({ kind }) => kind === name);
  const metric = stage?.bound === 'compute' ? 'MFU' : stage?.bound === 'memory' ? 'MBU' : fallback;
  const figure = metric === 'MFU' ? stage?.mfu : stage?.mbu;
  return {
    label: `${name} ${metric}`,
    value: { figure: figure ?? noStage(name), utilization: true },
    note: stage?.bound ? `${stage.bound}-bound` : 'bound unknown',
  };
}

const noStage = (kind: string) => missing('no_stage', `no ${kind} stage was recorded`);

function cards(data: ProfileResult) {
  const { latency, memory, stages } = data;
  const tokensPerS = (kind: 'prefill' | 'decode') =>
    stages.find((stage) => stage.kind === kind)?.tokens_per_s ?? noStage(kind);
  const card = (label: string, figure: Figure) => ({ label, value: { figure }, note: formatSpread(figure) });
  return [
    card('time to first token', latency.ttft_ms),
    card('time per output token', latency.tpot_ms),
    card('end to end', latency.e2e_ms),
    card('peak memory', memory?.peak_bytes ?? missing('no_memory', 'memory was not sampled')),
    card('prefill throughput', tokensPerS('prefill')),
    card('decode throughput', tokensPerS('decode')),
    utilizationCard('prefill', data, 'MFU'),
    utilizationCard('decode', data, 'MBU'),
  ];
}

const details: readonly [name: string, figureOf: (stage: StageResult) => Figure][] = [
  ['necessary FLOPs', ({ flops }) => flops],
  ['necessary bytes', ({ bytes }) => bytes],
  ['arithmetic intensity', (stage) => stage.intensity_flop_per_byte],
  ['working set', (stage) => stage.working_set_bytes],
  ['bandwidth at that working set', (stage) => stage.bandwidth_bytes_per_s],
  ['time under the profiler', ({ profiled_ms }) => profiled_ms],
  ['profiler overhead', (stage) => stage.profiler_overhead_ms],
];

const stageText = ({ kind }: StageResult): string => stageLabels[kind] ?? kind;

function stageSection({ stages, latency }: ProfileResult): Section {
  return {
    id: 'stages',
    restated: true,
    title: 'Stages',
    untitled: true,
    blocks: [
      tableOf(
        `Times without a profiler; intervals are over ${intervalsOver(latency)}`,
        [
          { id: 'stage', head: 'stage', cell: stageText },
          {
            id: 'duration_ms',
            head: 'time',
            numeric: true,
            cell: ({ duration_ms }) => ({ figure: duration_ms, spread: 'interval' }),
          },
          {
            id: 'tokens_per_s',
            head: 'throughput',
            numeric: true,
            drop: 2,
            cell: (stage) => ({ figure: stage.tokens_per_s }),
          },
          {
            id: 'roofline_ms',
            head: 'roofline',
            numeric: true,
            drop: 1,
            cell: (stage) => ({ figure: stage.roofline_ms }),
          },
          { id: 'mfu', head: 'MFU', numeric: true, cell: ({ mfu }) => ({ figure: mfu, utilization: true }) },
          { id: 'mbu', head: 'MBU', numeric: true, cell: ({ mbu }) => ({ figure: mbu, utilization: true }) },
          { id: 'bound', head: 'bound', cell: ({ bound }) => bound ?? '' },
        ],
        stages,
      ),
      {
        type: 'table',
        level: 2,
        title: 'Work, roofs and the profiled execution',
        columns: [
          { id: 'figure', head: 'figure' },
          ...stages.map((stage) => ({ id: stage.kind, head: stageText(stage), numeric: true })),
        ],
        rows: [
          ...details.map(([name, figureOf]) => ({
            cells: [name, ...stages.map((stage): Text => ({ figure: figureOf(stage) }))],
          })),
          { cells: ['bandwidth level', ...stages.map(({ bandwidth_level: level }) => level ?? '')] },
          { cells: ['instances', ...stages.map(({ instances }): Text => ({ count: instances }))] },
        ],
      },
    ],
  };
}

function environmentSection({ workload, environment }: ProfileResult): Section {
  const { model, engine } = workload;
  const count = (value: number | null): Text =>
    value === null ? { missing: 'not recorded' } : { count: value };
  return {
    id: 'environment',
    title: 'Environment',
    level: 2,
    blocks: [
      {
        type: 'facts',
        items: [
          { name: 'model', text: model?.name ?? { missing: 'model unknown' } },
          { name: 'parameters', text: count(model?.num_parameters ?? null) },
          ...(model
            ? [
                {
                  name: 'weights',
                  text: [model.weights, model.dtype, model.quantization]
                    .filter((text) => text !== null)
                    .join(', '),
                },
              ]
            : []),
          ...(model?.weight_bytes
            ? [{ name: 'weights on disk', text: { n: model.weight_bytes, unit: 'B' } }]
            : []),
          { name: 'engine', text: `${engine.name} ${engine.version ?? ''}`.trim() },
          { name: 'device', text: workload.device },
          { name: 'threads', text: count(workload.threads) },
          { name: 'batch size', text: count(workload.batch_size) },
          { name: 'input tokens', text: count(workload.input_len) },
          { name: 'output tokens', text: count(workload.output_len) },
          ...Object.entries(engine.options).map(([name, value]) => ({
            name,
            text: value === null ? { missing: 'not set' } : String(value),
          })),
        ],
      },
      { type: 'heading', text: 'Machine and software' },
      { type: 'facts', items: environment.map(factOf).map(({ name, value }) => ({ name, text: value })) },
    ],
  };
}

/** Definitions of the figures on the page. */
const meanings: readonly [term: string, text: string][] = [
  ['TTFT', 'From the start of a request to its first generated token, prefill and sampling included.'],
  ['TPOT', '(last token − first token) / (output tokens − 1). None for one output token.'],
  ['Decode tokens/s', 'Batch size / TPOT. Output tokens/s divides all output tokens by the end-to-end time.'],
  [
    'Decode step',
    'From the start of one decode call to the start of the next, host work and sampling included. The last step ends with its repeat.',
  ],
  [
    'MFU',
    "FLOPs that the model's arithmetic needs / (stage time without a profiler × peak FLOP/s of the dtype). The peak is measured on this machine through the same runtime. int4 weights are multiplied in int8 and compared with the int8 peak.",
  ],
  [
    'MBU',
    "Bytes that must be moved (weights, KV cache and activations, each once) / (stage time × bandwidth). The bandwidth is the one measured at the stage's working set: that of a cache where the model fits into it.",
  ],
  [
    'Accounting fault',
    'An MFU or MBU over 100 %: the work is counted too high, the roof was measured too low, or the time is wrong. Do not use this value.',
  ],
  [
    'Roofline',
    'max(FLOPs / peak, bytes / bandwidth) of a stage. The ridge is the float32 peak / the bandwidth at the largest working set measured. A stage is bound by whichever takes longer at its own dtype and working set.',
  ],
  [
    'Bars',
    'From the roofline to the measured time; the table behind a chart has the meaning of each bar. Operators count with their time under the profiler, gaps between and around them less what the profiler added. A negative bar means that an assumption is wrong.',
  ],
  [
    'Confidence',
    'high: exact intervals of the execution without a profiler. medium: attributed by time. low: rests on an assumption about the model or the machine.',
  ],
  [
    'Interval',
    "95 % confidence interval of the mean: Student's t over the means of the process launches. With one launch it is over repeats and shows only variation within that process.",
  ],
  [
    'Clean and profiled',
    'Latency, throughput, MFU and MBU come from the execution without a profiler. Operators come from a second execution with it; profiler overhead is the difference.',
  ],
  ['Gaps', 'Time of a stage in which no operator ran. Operators + gaps + remainder = stage.'],
  [
    'Memory points',
    "Memory of the engine's process in the first launch. Baseline: before the runtime and the model are loaded. After warm-up: when the warm-up repeats are done. Peak: the kernel's own high-water mark at the end of the last timed repeat.",
  ],
];

function allFigures(result: ProfileResult): [string, Figure][] {
  const prefixed = (prefix: string, figures: object): [string, Figure][] =>
    Object.entries(figures).flatMap(([key, value]): [string, Figure][] =>
      typeof value === 'object' && value !== null && 'value' in value
        ? [[`${prefix}.${key}`, value as Figure]]
        : [],
    );
  return [
    ...prefixed('latency', result.latency),
    ...result.stages.flatMap((stage) => prefixed(stage.kind, stage)),
    ...(result.memory ? prefixed('memory', result.memory) : []),
    ...(result.telemetry ? prefixed('telemetry', result.telemetry) : []),
  ];
}

const definitions = (data: ProfileResult): Section => ({
  id: 'definitions',
  title: 'Definitions',
  level: 3,
  blocks: [
    { type: 'facts', items: meanings.map(([name, text]) => ({ name, text })) },
    {
      type: 'fold',
      title: 'Every figure with its source',
      blocks: [
        tableOf(
          'Figures by their names in the JSON document',
          [
            { id: 'figure', head: 'figure', cell: ([name]) => ({ code: name }) },
            { id: 'value', head: 'value', numeric: true, cell: ([, figure]) => ({ figure, spread: true }) },
            {
              id: 'source',
              head: 'source, or reason if missing',
              wraps: true,
              cell: ([, figure]) => (figure.value === null ? figure.reason.text : figure.source),
            },
          ],
          allFigures(data),
          { reasons: false },
        ),
      ],
    },
  ],
});
