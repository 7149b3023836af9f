import type { Document, Issue } from '../model/document.js';
import type { BenchAnswer, BenchPointResult, BenchResult, BenchVariant } from '../model/documents/bench.js';
import type { Figure } from '../model/figure.js';
import { issuesAt } from '../vocabulary/sentence-template.js';
import { evenlySpaced } from '../model/evenly-spaced.js';
import { answerLabels, pointLabel } from '../vocabulary/bench.js';
import { formatSpread, plural } from '../vocabulary/format.js';
import { factOf } from '../vocabulary/facts.js';
import { efficiencySection, machineSection, telemetrySections } from './bench-machine.js';
import { measuredRows, pointsSection } from './bench-points.js';
import { meanOf } from './bench-series.js';
import { batchSections, fitSections, spreadSections, variantSections } from './bench-sweeps.js';
import type { Block, Section, Text, View } from './block.js';
import { tableOf } from './table-of.js';

const maxTelemetryPoints = 12_000;

/** Thins the samples for a page: those of eight GPUs would be megabytes. The session keeps all. */
function withThinnedTelemetry(document: Document<BenchResult>): Document<BenchResult> {
  const { telemetry } = document.data;
  if (!telemetry) return document;
  const pointsPerSeries = Math.max(50, Math.floor(maxTelemetryPoints / Math.max(1, telemetry.length)));
  const series = telemetry.map((sampled) => ({
    ...sampled,
    points: evenlySpaced(sampled.points, pointsPerSeries),
  }));
  return { ...document, data: { ...document.data, telemetry: series } };
}

/** An engine benchmark: how fast, up to which batch, at which lengths, and what limits it. */
export function benchView(result: Document<BenchResult>): View {
  const document = withThinnedTelemetry(result);
  const { data, issues } = document;
  return {
    command: 'bench',
    title: data.session.title,
    document,
    session: data.session,
    lead: [
      { type: 'text', level: 2, text: identity(data) },
      ...unfinished(data),
      { type: 'facts', items: [leadingFact(data)] },
      { type: 'cards', level: 3, cards: cards(data) },
      { type: 'issues', issues: [...issues, ...flags(data)] },
    ],
    sections: [
      pointsSection(data),
      ...answerSections(data),
      ...batchSections(data),
      ...fitSections(data),
      ...variantSections(data),
      ...spreadSections(data),
      machineSection(data),
      efficiencySection(data),
      ...telemetrySections(data),
      environmentSection(data),
      definitions,
    ],
  };
}

/** "TinyLlama (random weights, bfloat16) · transformers 4.57.1 on NVIDIA H200 · 3 launches × 5 repeats" */
function identity({ engine, protocol }: BenchResult): Text {
  const traits = [
    engine.weights === 'unknown' ? null : `${engine.weights} weights`,
    engine.dtype,
    engine.quantization,
  ].filter((text) => text !== null);
  const where = `${engine.tensor_parallel_size > 1 ? `${engine.tensor_parallel_size} × ` : ''}${engine.device_name ?? engine.device}`;
  return [
    `${engine.model}${traits.length > 0 ? ` (${traits.join(', ')})` : ''}`,
    `${engine.name}${engine.version === null ? '' : ` ${engine.version}`} on ${where}${engine.threads === null ? '' : `, ${plural(engine.threads, 'thread')}`}`,
    `${plural(protocol.launches, 'launch', 'launches')} × ${plural(protocol.repeats, 'repeat')}`,
  ].join(' · ');
}

const unfinished = ({ session: { status } }: BenchResult): Block[] =>
  status === 'complete'
    ? []
    : [
        {
          type: 'text',
          text: [
            { text: status, tone: 'fault' },
            ': the benchmark did not finish; the figures cover completed measurements.',
          ],
        },
      ];

/** The most important answers: those between variants first, then in the order of their labels. */
export function leadingAnswers({ variants, answers }: BenchResult): BenchAnswer[] {
  const all = [...answers, ...(variants[0]?.answers ?? [])];
  const ranked = (Object.keys(answerLabels) as BenchAnswer['id'][]).flatMap((id) =>
    all.filter((answer) => answer.id === id).slice(0, 1),
  );
  return ranked.slice(0, 3);
}

/** Skips the answer that the table of points already gives: how fast it is. */
const firstAnswer = (data: BenchResult): BenchAnswer | undefined => {
  const answers = leadingAnswers(data);
  return answers.find(({ id }) => id !== 'latency') ?? answers[0];
};

function leadingFact(data: BenchResult): { name: string; text: Text } {
  const first = firstAnswer(data);
  if (first) return { name: answerLabels[first.id], text: first.answer };
  const points = data.variants.reduce((sum, variant) => sum + variant.points.length, 0);
  return {
    name: 'Result',
    text: `No results: ${measuredRows(data).length} of ${points} points were measured.`,
  };
}

/** The point that represents a single request: one of the latency part, else the smallest. */
function singleRequestPoint({ points }: BenchVariant): BenchPointResult | undefined {
  const bySize = points
    .filter(({ outcome }) => outcome === 'measured')
    .toSorted(
      (a, b) => a.batch_size - b.batch_size || a.input_len - b.input_len || a.output_len - b.output_len,
    );
  return bySize.find(({ parts }) => parts.includes('latency')) ?? bySize[0];
}

/** Cards of known figures; the reason for a missing figure is in its section. */
function cards(data: BenchResult): { label: string; value: Text; note: Text }[] {
  const [variant] = data.variants;
  const point = variant && singleRequestPoint(variant);
  if (!variant || !point) return [];
  const rate = ({ throughput }: BenchPointResult): number => throughput.output_tokens_per_s.value ?? 0;
  const best = measuredRows(data).toSorted((a, b) => rate(b.point) - rate(a.point))[0];
  const pointName = (one: BenchPointResult, { label }: BenchVariant): string =>
    data.variants.length > 1 ? `${pointLabel(one.point)}, ${label}` : pointLabel(one.point);
  const card = (label: string, figure: Figure, where = pointName(point, variant)) =>
    figure.value === null
      ? []
      : [
          {
            label,
            value: { figure },
            note: [where, formatSpread(figure)].filter((text) => text !== '').join('; '),
          },
        ];
  return [
    ...card('Time to first token', meanOf(point.latency.ttft_ms)),
    ...card('Time per output token', meanOf(point.latency.tpot_ms)),
    ...card('End to end', meanOf(point.latency.e2e_ms)),
    ...(best
      ? card(
          'Highest throughput',
          best.point.throughput.output_tokens_per_s,
          pointName(best.point, best.variant),
        )
      : []),
    ...card('Memory', point.machine.memory_bytes),
    ...card('Idle per decode step', point.device_work.decode_idle_share),
    ...card('Decode MBU', point.model_utilization.decode_mbu),
    ...card('Prefill MFU', point.model_utilization.prefill_mfu),
  ];
}

const severities: readonly Issue['severity'][] = ['error', 'warning', 'info'];

/** Issues of the measurement, the most severe first; issues that differ only in numbers are merged, with the points that have them. */
export function flags({ variants }: BenchResult): Issue[] {
  const all = variants.flatMap(({ label, flags: variantFlags, points }) => {
    const prefix = variants.length > 1 ? `${label}: ` : '';
    const scoped = (point: string | null) => (flag: (typeof variantFlags)[number]) => ({
      prefix,
      scope: point === null ? null : pointLabel(point),
      issue: { ...flag, severity: flag.severity === 'good' ? ('info' as const) : flag.severity },
    });
    return [
      ...variantFlags.map(scoped(null)),
      ...points.flatMap(({ point, flags }) => flags.map(scoped(point))),
    ];
  });
  return issuesAt(all).toSorted((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
}

/** Every question with its answer, those between variants first; the answer at the top of the page is not repeated. */
function answerSections(data: BenchResult): Section[] {
  const { answers, variants } = data;
  const lead = firstAnswer(data);
  const groups = [
    { label: null, answers },
    ...variants.map((variant) => ({
      label: variants.length > 1 ? variant.label : null,
      answers: variant.answers,
    })),
  ].filter((group) => group.answers.length > 0);
  if (groups.length === 0) return [];
  return [
    {
      id: 'answers',
      title: 'Answers',
      level: 2,
      blocks: groups.flatMap(({ label, answers: groupAnswers }): Block[] => [
        ...(label === null ? [] : [{ type: 'heading', text: label } as const]),
        ...groupAnswers
          .filter((answer) => answer !== lead)
          .flatMap(({ question, answer }): Block[] => [
            { type: 'text', text: { text: question, tone: 'strong' } },
            { type: 'text', text: answer },
          ]),
        ...answerFigures(groupAnswers),
      ]),
    },
  ];
}

function answerFigures(answers: readonly BenchAnswer[]): Block[] {
  const figures = answers.flatMap((answer) => Object.entries(answer.figures));
  if (figures.length === 0) return [];
  return [
    {
      type: 'fold',
      level: 3,
      title: 'Figures behind these results',
      blocks: [
        tableOf(
          'Figures',
          [
            { id: 'figure', head: '', cell: ([name]) => name.replaceAll('_', ' ') },
            { id: 'value', head: 'value', numeric: true, cell: ([, figure]) => ({ figure, spread: true }) },
          ],
          figures,
        ),
      ],
    },
  ];
}

function environmentSection({
  engine,
  protocol,
  variants,
  environment,
  not_measured: notMeasured,
}: BenchResult): Section {
  return {
    id: 'environment',
    title: 'Environment',
    level: 2,
    blocks: [
      {
        type: 'facts',
        items: [
          { name: 'engine', text: `${engine.name} ${engine.version ?? ''}`.trim() },
          { name: 'model', text: engine.model },
          { name: 'weights', text: engine.weights },
          { name: 'dtype', text: engine.dtype ?? { missing: 'not known' } },
          { name: 'quantization', text: engine.quantization ?? 'none' },
          {
            name: 'device',
            text: engine.device_name === null ? engine.device : `${engine.device}, ${engine.device_name}`,
          },
          { name: 'tensor parallel', text: { count: engine.tensor_parallel_size } },
          {
            name: 'threads',
            text: engine.threads === null ? { missing: 'not known' } : { count: engine.threads },
          },
          ...variants.map(({ label, launches }) => ({
            name: `variant ${label}`,
            text: { count: launches, unit: 'launches' },
          })),
          { name: 'repeats', text: [{ count: protocol.repeats }, ' per point and launch'] },
          { name: 'warm-up', text: protocol.warmup },
          { name: 'sampling', text: protocol.sampling },
          { name: 'seed', text: String(protocol.seed) },
        ],
      },
      {
        type: 'facts',
        level: 3,
        items: (environment ?? []).map(factOf).map(({ name, value }) => ({ name, text: value })),
      },
      ...(notMeasured.length > 0
        ? [
            { type: 'heading', text: 'Not measured' } as const,
            tableOf(
              'Not available for this engine',
              [
                { id: 'figure', head: 'figure', cell: ({ figure }) => figure.replaceAll('_', ' ') },
                { id: 'why', head: 'why', wraps: true, lines: true, cell: ({ text }) => text },
              ],
              notMeasured,
            ),
          ]
        : []),
    ],
  };
}

/** Definitions of the figures on the page. */
const meanings: readonly [name: string, text: string][] = [
  ['TTFT', 'From the start of the request or batch to its first token: prefill and first sampling.'],
  [
    'TPOT',
    '(last token − first token) / (output tokens − 1) of one repeat. Not defined for one output token.',
  ],
  ['ITL', 'Every gap between two tokens of the timed repeats; its percentiles show single slow steps.'],
  ['End to end', 'Start to the last token of the batch.'],
  [
    'Output tokens/s',
    'Batch × output tokens / end to end, prefill included. Decode tokens/s is batch / TPOT, without it.',
  ],
  [
    'Scaling, efficiency',
    'Output tokens/s over that of the smallest batch of the same lengths; that factor over how many times larger the batch is.',
  ],
  ['Knee', 'The largest batch before a doubling gives less than 1.5 times the decode tokens/s.'],
  [
    '95 % interval',
    "Student's t over the means of the process launches, repeats interleaved within each: where the mean over many launches is expected. With one launch it is over repeats and shows only variation within that process.",
  ],
  ['Percentiles, sd', 'Linear between order statistics (type 7); the sample standard deviation (n − 1).'],
  ['Outliers', 'Beyond 1.5 interquartile ranges from the quartiles (Tukey). Marked, never removed.'],
  [
    'Idle',
    "1 − device busy time / host time of the same stage without a profiler. Busy time is from one more repeat under the framework's profiler.",
  ],
  [
    'MFU, MBU',
    "FLOP/s and bytes/s that the model's own arithmetic needs, over the hardware's peak and bandwidth. A value above 100 % is invalid: model, dtype or peak do not match the run.",
  ],
  [
    'GPU utilization',
    'As sampled by the driver: share of time in which any kernel ran. It does not show how efficiently.',
  ],
];

const definitions: Section = {
  id: 'definitions',
  title: 'Definitions',
  level: 3,
  blocks: [{ type: 'facts', items: meanings.map(([name, text]) => ({ name, text })) }],
};
