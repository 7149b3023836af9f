import type { Document } from '../model/document.js';
import type { ErrorSummary, ValidatedProfile, Validation } from '../model/documents/validate.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import type { Block, Column, Section, Text, View } from './block.js';
import { formatBytes, formatShareSetting, minFactorShare, plural } from '../vocabulary/format.js';
import { weightFormat } from '../vocabulary/workload.js';

/** Estimated memory against measured memory. */
export function validateView(document: Document<Validation>): View {
  const { data } = document;
  const { length } = data.profiles;
  return {
    command: 'validate',
    title: `estimate compared with ${plural(length, 'measured profile')}`,
    document,
    session: data.session ?? { id: null, started_at: '' },
    lead: [
      { type: 'text', text: verdict(data) },
      ...whyRejected(data),
      { type: 'issues', issues: document.issues },
    ],
    sections: [
      ...(data.counts.compared > 0 ? [errorSection(data), profileSection(data)] : []),
      ...(data.counts.rejected + data.counts.skipped > 0 ? [otherSection(data)] : []),
      ...(data.counts.compared > 0 ? [recommendationSection(data)] : []),
    ],
  };
}

const results: Readonly<Record<Validation['result'], Text>> = {
  passed: { text: 'passed', tone: 'strong' },
  failed: { text: 'failed', tone: 'fault' },
  nothing_compared: { text: 'nothing compared', tone: 'fault' },
};

function verdict({ result, counts, tolerance }: Validation): Text {
  const { compared, rejected, skipped, within_tolerance } = counts;
  return [
    results[result],
    ...(compared > 0
      ? [`: ${within_tolerance} of ${compared} totals within ${formatShareSetting(tolerance)}`]
      : []),
    ...(rejected > 0 ? [`; ${rejected} rejected`] : []),
    ...(skipped > 0 ? [`; ${skipped} not comparable`] : []),
  ] as Text;
}

/** The report has the reasons; a summary names it. */
const whyRejected = ({ counts, session }: Validation): Block[] =>
  counts.compared > 0 && counts.rejected + counts.skipped > 0 && session !== null
    ? [
        {
          type: 'text',
          summary: true,
          text: ['reasons: ', { code: `inferscope report ${session.id} --format text` }],
        },
      ]
    : [];

/** +4.2 %: the calculator estimates too much. */
export const signedShare = (n: number | null): Text =>
  n === null ? { missing: 'not measured' } : { n, unit: 'ratio', signed: true };

/** Without a sign, unless it is so large that the signed ones are factors. */
const meanError = (n: number | null): Text =>
  n === null || n >= minFactorShare ? signedShare(n) : { n, unit: 'ratio' };

/** In GB, as in memory profiles. */
const gb = (bytes: number) => ({ n: bytes / 1e9, unit: 'GB', digits: 4 });

const errorColumns: readonly Column[] = [
  { id: 'profiles', head: 'runs', numeric: true },
  { id: 'mean_share', head: 'bias', numeric: true },
  { id: 'mean_absolute_share', head: 'mean error', numeric: true },
  { id: 'mean_absolute_bytes', head: 'in bytes', numeric: true, drop: 0 },
  { id: 'worst_share', head: 'worst', numeric: true },
  { id: 'within', head: 'within', numeric: true },
];

const errorCells = (row: ErrorSummary): Text[] => [
  { count: row.profiles },
  signedShare(row.mean_share),
  meanError(row.mean_absolute_share),
  row.profiles === 0 ? { missing: 'no profile compared' } : gb(row.mean_absolute_bytes),
  signedShare(row.worst_share),
  row.profiles === 0 ? { missing: 'no profile compared' } : `${row.within_tolerance}/${row.profiles}`,
];

const groupLabels: Readonly<Record<Validation['groups'][number]['dimension'], string>> = {
  family: 'family',
  dtype: 'dtype',
  tensor_parallel_size: 'tensor parallel',
  engine: 'engine',
  quantization: 'quantization',
};

function errorSection(data: Validation): Section {
  const { share, bytes } = data.component_tolerance;
  return {
    id: 'errors',
    title: `Errors by component (within: ${formatShareSetting(data.tolerance)} of the total, ${formatShareSetting(share)} or ${formatBytes(bytes)} of a part)`,
    blocks: [
      {
        type: 'table',
        title: '(estimated − measured) / measured',
        columns: [{ id: 'component', head: 'component' }, ...errorColumns],
        rows: [
          ...data.components.map((row) => ({ cells: [componentLabels[row.component], ...errorCells(row)] })),
          ...(data.uncovered ? [{ cells: ['not measured separately', ...errorCells(data.uncovered)] }] : []),
          { cells: [componentLabels.total, ...errorCells(data.total)] },
          ...(data.total_by_fit && data.total_by_fit.others.profiles > 0
            ? [
                { cells: ['total of fitted runs', ...errorCells(data.total_by_fit.fitted)] },
                { cells: ['total of other runs', ...errorCells(data.total_by_fit.others)] },
              ]
            : []),
        ],
      },
      ...(data.total_by_fit
        ? [
            {
              type: 'text',
              text:
                data.total_by_fit.others.profiles > 0
                  ? 'Fitted: constants of the estimate come from these runs. For a new run expect errors like those of the other runs.'
                  : 'Fitted: constants of the estimate come from these runs, so expect larger errors for a new one.',
            } satisfies Block,
          ]
        : []),
      {
        type: 'table',
        level: 2,
        title: 'Error of the total by group',
        columns: [{ id: 'by', head: 'total by' }, { id: 'value', head: '', wraps: true }, ...errorColumns],
        rows: data.groups.map((row) => ({
          cells: [groupLabels[row.dimension], row.value, ...errorCells(row)],
        })),
      },
      ...notMeasured(data.profiles),
    ],
  };
}

/** Components that come only from a formula, with the number of compared profiles; they are part of no error. */
function notMeasured(profiles: readonly ValidatedProfile[]): Block[] {
  const counts = new Map<ValidatedProfile['not_measured'][number], number>();
  for (const { status, not_measured: missing } of profiles)
    if (status === 'compared')
      for (const component of missing) counts.set(component, (counts.get(component) ?? 0) + 1);
  if (counts.size === 0) return [];
  const words = [...counts]
    .map(([component, count]) => `${componentLabels[component]} in ${count}`)
    .join(', ');
  const text = `${words}: computed by a formula, so not compared`;
  return [{ type: 'facts', level: 2, items: [{ name: 'not measured', text }] }];
}

/** "llama-3.1-8b bfloat16, batch 16, 1024 + 32" */
function runLabel(profile: ValidatedProfile): string {
  const { model, dtype, batch_size, input_len, output_len, tensor_parallel_size: tp, quantization } = profile;
  const format = weightFormat(dtype, quantization).join(' ');
  const shape = [
    batch_size === null ? null : `batch ${batch_size}`,
    input_len === null || output_len === null ? null : `${input_len} + ${output_len}`,
    tp > 1 ? `${tp} GPUs` : null,
  ];
  return [`${model} ${format}`, ...shape.filter((part) => part !== null)].join(', ');
}

/** Maximum profiles with sentences; the CSV has all. */
const maxExplained = 10;
/** Notes shown in a summary. */
const summaryNotes = 1;

function profileSection({ profiles }: Validation): Section {
  const compared = profiles.flatMap((profile) => {
    const { total } = profile;
    return total === null ? [] : [{ profile, total, label: runLabel(profile) }];
  });
  const manyGpus = new Set(compared.map(({ profile }) => profile.gpu)).size > 1;
  const outsideTolerance = compared.flatMap(({ profile, total, label }) => {
    const text = total.within_tolerance ? componentsOutside(profile) : (profile.explanation ?? []);
    return total.within_tolerance && profile.components.every(({ within_tolerance }) => within_tolerance)
      ? []
      : [{ name: label, text }];
  });
  return {
    id: 'profiles',
    title: 'Profiles, worst first',
    blocks: [
      {
        type: 'table',
        title: manyGpus ? 'Totals' : `Totals; ${compared[0]?.profile.gpu ?? 'GPU not known'}`,
        columns: [
          { id: 'run', head: 'run', wraps: true },
          ...(manyGpus ? [{ id: 'gpu', head: 'GPU', drop: 0 }] : []),
          { id: 'measured_bytes', head: 'measured', numeric: true },
          { id: 'estimated_bytes', head: 'estimated', numeric: true },
          { id: 'error_share', head: 'error', numeric: true },
          { id: 'total', head: '' },
        ],
        rows: compared.map(({ profile, total, label }) => ({
          cells: [
            label,
            ...(manyGpus ? [profile.gpu ?? { missing: 'not in the profile' }] : []),
            gb(total.measured_bytes),
            gb(total.estimated_bytes),
            signedShare(total.error_share),
            [
              profile.fitted ? 'fitted' : '',
              ...(total.within_tolerance
                ? []
                : [profile.fitted ? ', ' : '', { text: 'outside tolerance', tone: 'fault' as const }]),
            ],
          ],
        })),
        brief: 3,
      },
      ...(outsideTolerance.length > 0
        ? [{ type: 'heading', level: 2, text: 'Outside tolerance' } satisfies Block]
        : []),
      ...noteBlocks(outsideTolerance),
      {
        type: 'fold',
        level: 2,
        title: 'Largest contributions to the error',
        blocks: [
          {
            type: 'notes',
            items: compared
              .slice(0, maxExplained)
              .flatMap(({ profile: { explanation }, label }) =>
                explanation === null ? [] : [[{ text: label, tone: 'strong' }, `: ${explanation}`] as Text],
              ),
          },
        ],
      },
      ...noteBlocks(
        compared.flatMap(({ profile: { source, reasons } }) =>
          reasons.length > 0 ? [{ name: source, text: reasons.join(' ') }] : [],
        ),
        'note ',
      ),
    ],
  };
}

const componentsOutside = ({ components }: ValidatedProfile): Text =>
  components
    .filter(({ within_tolerance }) => !within_tolerance)
    .flatMap(({ component, error_bytes, error_share }, index) => [
      `${index === 0 ? '' : ', '}${componentLabels[component]} `,
      { ...gb(error_bytes), signed: true },
      ...(error_share === null ? [] : [' (', { n: error_share, unit: 'ratio', signed: true }, ')']),
    ]) as Text;

/** The first entries in every summary, all of them with details. */
function noteBlocks(items: readonly { name: string; text: Text }[], before = ''): Block[] {
  const notes = items.map(
    ({ name, text }): Text => [before, { text: name, tone: 'strong' }, ': ', ...[text].flat()] as Text,
  );
  return [notes.slice(0, summaryNotes), notes.slice(summaryNotes)].flatMap((part, index): Block[] =>
    part.length === 0 ? [] : [{ type: 'notes', items: part, ...(index === 1 ? { level: 2 } : {}) }],
  );
}

const otherSection = ({ profiles, counts }: Validation): Section => ({
  id: 'rejected',
  // If anything was compared, the verdict counts them and names the report.
  level: counts.compared > 0 ? 2 : 1,
  title: 'Rejected and not comparable',
  blocks: (['rejected', 'skipped'] as const).flatMap((status) =>
    noteBlocks(
      profiles
        .filter((profile) => profile.status === status)
        .map((profile) => ({
          name: profile.source,
          text: `${runLabel(profile)}. ${profile.reasons.join(' ')}`,
        })),
      `${status} `,
    ),
  ),
});

function recommendationSection({ recommendations }: Validation): Section {
  const section = { id: 'recommendations', title: 'Recommendations' };
  if (recommendations.length === 0) {
    const text = 'None: no constant of the estimate deviates by more than these profiles scatter.';
    return { ...section, level: 2, blocks: [{ type: 'text', text }] };
  }
  return {
    ...section,
    blocks: [
      {
        type: 'table',
        title:
          'Constants in src/llm/memory-constants.ts that deviate, and the median of the values that fit each profile',
        columns: [
          { id: 'constant', head: 'constant', wraps: true },
          { id: 'current', head: 'now', numeric: true },
          { id: 'fitted', head: 'fitted', numeric: true },
          { id: 'spread', head: 'spread', numeric: true, drop: 1 },
          { id: 'profiles', head: 'profiles', numeric: true },
          { id: 'models', head: 'models', numeric: true, drop: 0 },
          { id: 'error_before_bytes', head: 'bias', numeric: true },
          { id: 'error_after_bytes', head: 'fitted error', numeric: true },
        ],
        rows: recommendations.map((recommendation) => {
          const value = (n: number) => ({ n, unit: recommendation.unit === 'bytes' ? 'B' : '' });
          return {
            cells: [
              recommendation.constant,
              value(recommendation.current),
              value(recommendation.fitted),
              [value(recommendation.spread[0]), ' to ', value(recommendation.spread[1])],
              { count: recommendation.profiles },
              { count: recommendation.models },
              gb(recommendation.error_before_bytes),
              gb(recommendation.error_after_bytes),
            ],
          };
        }),
      },
      {
        type: 'notes',
        items: recommendations.map(({ constant, current_source }) => `${constant} now: ${current_source}`),
      },
    ],
  };
}
