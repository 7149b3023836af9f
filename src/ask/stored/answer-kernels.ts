import type { KernelCounters } from '../../model/documents/counters.js';
import type { OpClass } from '../../model/classes.js';
import { readStoredRoofline } from '../../facts/artifact.js';
import { phaseTime } from '../../model/headline-time.js';
import { stepKinds } from '../../model/record.js';
import { bareKernelName } from '../../model/kernel-name.js';
import { hasSubject } from '../../model/subjects.js';
import { withoutGpu } from './answer-idle.js';
import { ruleAnswer, ruleTopics, withoutYesNo } from './answer-rules.js';
import { barTexts } from './finding-parts.js';
import { shownRows } from './shown-rows.js';
import {
  notKnown,
  capture,
  hasTable,
  instanceOf,
  partFrom,
  questionStages,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { kernelLabels } from '../../vocabulary/kernel-label.js';
import { classLabel } from '../../vocabulary/op-classes.js';
import { overlap, shortened, tokensOf } from './words.js';
import { formatMs, formatPercent, formatQuantity, plural } from '../../vocabulary/format.js';
import { capitalize, withoutEnd } from '../../vocabulary/sentence.js';

interface NamedRow extends Record<string, unknown> {
  name: string;
  class: string;
  tile: string | null;
  calls: number;
  total_ms: number;
  share: number;
}

/** "Which kernels take longest?": kernels (on a CPU: operators), only those that the question names, if any. */
export const longestKernels = async (facts: StoredFacts): Promise<TopicAnswer> =>
  (await longestOf(facts)).answer;

/** Maximum rows of an answer. */
const mostRows = 25;

/** The longest kernels; if the question names some, only those. */
async function longestOf(facts: StoredFacts): Promise<{ answer: TopicAnswer; namesKernels: boolean }> {
  const table = hasTable(facts, 'kernels') ? 'kernels' : hasTable(facts, 'ops') ? 'ops' : null;
  const noKernels = {
    answer: notKnown(
      'No kernel of a program was recorded, and no operator: only a timeline has them.',
      capture.timeline,
    ),
    namesKernels: false,
  };
  if (table === null) return noKernels;
  const name = table === 'kernels' ? "coalesce(name, short_name, '')" : 'name';
  const shown = await shownRows(facts, table);
  const tile = table === 'kernels' ? 'any_value(tile)' : 'NULL';
  const sql = `SELECT ${name} AS name, class, ${tile} AS tile, count(*) AS calls, sum(dur_ns) / 1e6 AS total_ms,
  sum(dur_ns) / sum(sum(dur_ns)) OVER () AS share
FROM ${table} WHERE ${shown.where}
GROUP BY ALL ORDER BY total_ms DESC, name`;
  const rows = await facts.database.query<NamedRow>(sql);
  // The names of the report: several kernels of PyTorch have one bare name.
  const labels = table === 'kernels' ? kernelLabels(rows) : new Map<string, string>();
  const labelOf = (row: NamedRow): string => labels.get(row.name) ?? bareKernelName(row.name);
  const words = new Set([...facts.question.tokens].filter((token) => !genericTokens.has(token)));
  const matches = rows.filter(
    (row) => overlap(words, `${labelOf(row)} ${bareKernelName(row.name)} ${row.class}`) > 0,
  );
  const listedRows = (matches.length > 0 ? matches : rows).slice(0, wantedRows(facts));
  const [first] = listedRows;
  if (!first) return noKernels;
  const what = table === 'kernels' ? 'kernel' : 'operator';
  const lines = listedRows.map(
    (row) =>
      `- ${shortened(labelOf(row))} (${classLabel(row.class)}): ${formatMs(row.total_ms)}, ${formatPercent(row.share)}, ${plural(row.calls, 'call')}`,
  );
  const part = (text: string): StoredPart => ({ text, sql, from: 'sql', rows: rows.length });
  const sentenceStart = matches.length > 0 ? `The longest matching ${what} is` : `The longest ${what} is`;
  const answer = known(
    part(
      `${sentenceStart} ${shortened(labelOf(first))}: ${formatMs(first.total_ms)} in ${plural(first.calls, 'call')}, ${formatPercent(first.share)} of all ${what} time.`,
    ),
    [part(`The longest, over ${shown.name}:\n${lines.join('\n')}`)],
  );
  return { answer, namesKernels: matches.length > 0 };
}

/** "Top 10 kernels" asks for ten. */
function wantedRows({ question }: StoredFacts): number {
  const number = /\btop[- ](\d+)\b/i.exec(question.text)?.[1];
  return number === undefined ? 5 : Math.min(Number(number), mostRows);
}

/** Word stems that occur in both questions and kernel names. */
const genericTokens = tokensOf(
  'kernel operator gpu cuda decode prefill step token longest most slow fast run launch total top list is',
);

/** Classes by their common names. */
const classWords: readonly [RegExp, OpClass][] = [
  [/\battention\b|\battn\b|\bsdpa\b|\bflash\b/i, 'attention'],
  [/\bgemms?\b|\bmat[- ]?muls?\b|\bmatrix (?:products?|multipl\w*)\b|\blinear layers?\b|\bgemv\b/i, 'gemm'],
  [
    /\belement[- ]?wise\b|\bpointwise\b|\bactivation functions?\b|\bsilu\b|\bgelu\b|\brotary\b|\brope\b/i,
    'elementwise',
  ],
  [/\b(?:layer|rms)?[- ]?norms?\b|\bnormali[sz]ations?\b/i, 'norm'],
  [/\bembeddings?\b/i, 'embedding'],
  [/\bcommunication\b|\bnccl\b|\ball-?reduce\b/i, 'communication'],
  [/\bsampling\b|\bargmax\b|\btop-?k\b/i, 'sampling'],
];

const classesIn = (text: string): OpClass[] =>
  classWords.flatMap(([words, name]) => (words.test(text) ? [name] : []));

/** "How much is attention?", "GEMM share and attention share": kernel classes per mean instance of the stages in the question, else of all steps. */
export async function shareOfClass(facts: StoredFacts): Promise<TopicAnswer | null> {
  const names = classesIn(facts.question.text);
  if (names.length === 0) return null;
  const { trace } = await facts.captures();
  if (!trace?.data.source.gpu_used) return hasTable(facts, 'ops') ? operatorShares(facts, names) : null;
  const leadStages = questionStages(facts);
  const stages =
    facts.question.stages.length > 0
      ? leadStages
      : facts.explained.stages.filter(
          (stage) => leadStages.includes(stage) || (stepKinds as readonly string[]).includes(stage.kind),
        );
  const shares = stages.flatMap((stage) => {
    const classes = trace.data.classes.find(({ kind }) => kind === stage.kind);
    const phase = trace.data.phases.find(({ kind }) => kind === stage.kind);
    if (!classes || !phase) return [];
    const wall = 1e6 * phaseTime(phase).ms;
    return names.map((name) => {
      const row = classes.rows.find((classRow) => classRow.class === name);
      if (!row)
        return partFrom('trace', `No kernel of class ${classLabel(name)} runs in ${instanceOf(stage)}.`, 0);
      return partFrom(
        'trace',
        `${capitalize(classLabel(name))} takes ${formatMs(row.per_instance_ns / 1e6)} of ${instanceOf(stage)}: ${formatPercent(row.share)} of its kernel time, ${formatPercent(row.per_instance_ns / wall)} of its ${formatMs(wall / 1e6)}, in ${plural(row.per_instance, 'kernel')}.`,
      );
    });
  });
  const [first, ...rest] = shares;
  if (!first) return null;
  const bars = leadStages.flatMap((stage) =>
    barTexts(
      stage,
      names.flatMap((name) => [`inefficiency.${name}`, `nonessential.${name}`]),
      2,
    ),
  );
  const { evidence } = await longestKernels({
    ...facts,
    question: { ...facts.question, tokens: tokensOf(names.join(' ')) },
  });
  return known(first, [...rest, ...bars, ...evidence.slice(0, 1)]);
}

interface ClassRow extends Record<string, unknown> {
  kind: string;
  class: OpClass;
  ms: number;
  share: number;
  calls: number;
}

async function operatorShares(facts: StoredFacts, names: readonly OpClass[]): Promise<TopicAnswer> {
  // Stages may be in another capture of the same execution: in the record, with operators in the trace.
  const sql = `WITH marked AS (SELECT DISTINCT execution_id, capture_id, stage_id, kind FROM stages WHERE NOT coalesce(warmup, false)),
stage_ops AS (SELECT coalesce(s.kind, e.kind) AS kind, o.class, o.dur_ns FROM ops o
  LEFT JOIN marked s USING (execution_id, capture_id, stage_id)
  LEFT JOIN (SELECT execution_id, stage_id, min(kind) AS kind FROM marked GROUP BY ALL) e
    ON e.execution_id = o.execution_id AND e.stage_id = o.stage_id),
total AS (SELECT kind, sum(dur_ns) AS all_ns FROM stage_ops GROUP BY kind)
SELECT kind, class, sum(dur_ns) / 1e6 AS ms, sum(dur_ns) / any_value(all_ns) AS share, count(*) AS calls
FROM stage_ops JOIN total USING (kind) WHERE class IN (${names.map((name) => `'${name}'`).join(', ')}) GROUP BY kind, class ORDER BY ms DESC, kind`;
  const rows = await facts.database.query<ClassRow>(sql);
  const { stages } = facts.question;
  const kindRows = rows.filter(({ kind }) => stages.length === 0 || stages.includes(kind));
  if (kindRows.length === 0)
    return notKnown(
      `No operator of class ${names.map(classLabel).join(' or ')} was recorded in these stages.`,
      capture.operators,
    );
  const part = (text: string): StoredPart => ({ text, sql, from: 'sql', rows: rows.length });
  const [first, ...rest] = kindRows.map(({ kind, class: name, ms, share, calls }) =>
    part(
      `${capitalize(classLabel(name))} takes ${formatPercent(share)} of the operators' time in ${kind} (${formatMs(ms)} in ${plural(calls, 'call')}).`,
    ),
  );
  return known(first!, rest);
}

const sides = ['memory', 'compute', 'latency'] as const;
const sideWords = {
  memory: /\b(?:memory|bandwidth|dram)\b/i,
  compute: /\b(?:compute|flops?)\b/i,
  latency: /\blatency\b/i,
};

/** "Which kernel is memory-bound?", "memory-bound vs compute-bound?": from hardware counters, for each bound in the question. */
export async function boundKernels(facts: StoredFacts): Promise<TopicAnswer> {
  const { counters } = await facts.captures();
  const named = sides.filter((side) => sideWords[side].test(facts.question.text));
  const chosen = named.length > 0 ? named : sides;
  const what = chosen.map((side) => `${side}-bound`).join(' or ');
  if (!counters) {
    if (hasSubject(facts.session.manifest, 'profile')) return boundOperators(facts, chosen);
    return notKnown(
      `Which kernels are ${what} is not known: no hardware counters were recorded.`,
      capture.counters,
    );
  }
  const withBound = counters.data.kernels.filter(({ bound }) => bound.by !== null);
  if (withBound.length === 0)
    return notKnown('The counters that show the limit of a kernel were not collected.', capture.counters);
  const line = (kernel: KernelCounters) => `- ${nameOf(kernel)}: ${withoutEnd(kernel.bound.text)}`;
  const kernelsBySide = sides.map((side) => ({
    side,
    kernels: withBound.filter(({ bound }) => bound.by === side),
  }));
  const chosenSides = kernelsBySide.filter(({ side }) => chosen.includes(side));
  const all = `${plural(withBound.length, 'kernel')} with counters`;
  const count = chosenSides.map(
    ({ side, kernels }, i) =>
      `${kernels.length} ${i === 0 ? `of ${all} ` : ''}${kernels.length === 1 ? 'is' : 'are'} ${side}-bound`,
  );
  const longest = chosenSides.flatMap(({ kernels }) => kernels.slice(0, 1)).map(nameOf);
  const noneBound = chosenSides.every(({ kernels }) => kernels.length === 0);
  const lists = (noneBound ? kernelsBySide : chosenSides)
    .filter(({ kernels }) => kernels.length > 0)
    .map(({ side, kernels }) =>
      partFrom(
        'counters',
        `${capitalize(side)}-bound:\n${kernels.slice(0, 6).map(line).join('\n')}`,
        kernels.length,
      ),
    );
  const first = longest.length > 0 ? `; the longest: ${longest.join(', ')}` : '';
  return known(partFrom('counters', `${count.join(', ')}${first}.`, withBound.length), lists);
}

/** The embedded engine has no counters: classes of operators, by the model's arithmetic against the machine's rooflines. */
async function boundOperators(
  { session, database, question }: StoredFacts,
  chosen: readonly (typeof sides)[number][],
): Promise<TopicAnswer> {
  const { readStages } = await import('../../facts/stages.js');
  const stages = (await readStages(session, database, await readStoredRoofline(session))).filter(
    ({ kind }) => question.stages.length === 0 || question.stages.includes(kind),
  );
  const parts = stages.flatMap(({ kind, breakdown }) => {
    const classes = breakdown?.by_class ?? [];
    const boundTexts = chosen.map((side) => {
      const boundClasses = classes.filter(({ bound }) => bound === side);
      const list = boundClasses.map(({ class: name, ms }) => `${name} (${formatMs(ms)})`).join(', ');
      return `${side}-bound: ${list || 'none'}`;
    });
    return classes.some(({ bound }) => bound !== null)
      ? [
          partFrom(
            'profile',
            `Operators of ${kind} by the roofline: ${boundTexts.join('; ')}.`,
            classes.length,
          ),
        ]
      : [];
  });
  const [first, ...rest] = parts.toReversed();
  return first
    ? known(first, rest)
    : notKnown('The work of the operators is not known, so their limit is not known.', 'inferscope profile');
}

const nameOf = ({ name, stage }: KernelCounters): string =>
  `${shortened(bareKernelName(name))}${stage === null ? '' : ` (${stage})`}`;

const metrics: readonly {
  pattern: RegExp;
  what: string;
  figure: (kernel: KernelCounters) => KernelCounters['l2_hit_rate'];
  isOccupancy?: true;
}[] = [
  { pattern: /\bl2\b/i, what: 'L2 hit rate', figure: (kernel) => kernel.l2_hit_rate },
  { pattern: /\bl1\b/i, what: 'L1 hit rate', figure: (kernel) => kernel.l1_hit_rate },
  {
    pattern: /\boccupancy\b/i,
    what: 'achieved occupancy',
    figure: (kernel) => kernel.occupancy.achieved,
    isOccupancy: true,
  },
  {
    pattern: /\btensor (?:cores?|pipe)\b/i,
    what: 'tensor pipe use',
    figure: (kernel) => kernel.tensor_pipe,
  },
  {
    pattern: /\bregisters?\b/i,
    what: 'registers per thread',
    figure: (kernel) => kernel.registers_per_thread,
  },
  { pattern: /\bdram\b/i, what: 'DRAM throughput', figure: (kernel) => kernel.dram_throughput },
];

/** "What is the L2 hit rate?", "what limits occupancy?": a counter of the longest kernels. */
export async function counterOf(facts: StoredFacts): Promise<TopicAnswer | null> {
  const metric = metrics.find(({ pattern }) => pattern.test(facts.question.text));
  const stalls = /\bstall\w*/i.test(facts.question.text);
  if (!metric && !stalls) return null;
  const { counters } = await facts.captures();
  const what = metric?.what ?? 'stall reasons';
  if (!counters) {
    // Kernel names show the instructions they were compiled for, not what was executed.
    return (
      withoutGpu(facts, []) ??
      notKnown(
        `${capitalize(what)}: not known, because no hardware counters were recorded.`,
        capture.counters,
      )
    );
  }
  const lines = counters.data.kernels.slice(0, 6).flatMap((kernel) => {
    if (!metric) {
      const [first] = kernel.stalls;
      return first
        ? [`${nameOf(kernel)}: ${first.reason} ${formatPercent(first.share)}, ${first.meaning}`]
        : [];
    }
    const value = metric.figure(kernel);
    if (value.value === null) return [];
    const limits =
      metric.isOccupancy && kernel.occupancy.limited_by.length > 0
        ? `, limited by ${kernel.occupancy.limited_by.join(' and ')}`
        : '';
    const theory =
      metric.isOccupancy && kernel.occupancy.theoretical.value !== null
        ? ` of ${formatQuantity(kernel.occupancy.theoretical.value, '%')} possible`
        : '';
    return [`${nameOf(kernel)}: ${formatQuantity(value.value, value.unit)}${theory}${limits}`];
  });
  const [first, ...rest] = lines;
  if (first === undefined)
    return notKnown(
      `${capitalize(what)}: not known, because the counters that were collected do not include it.`,
      capture.counters,
    );
  return known(
    partFrom('counters', `${capitalize(what)} of the longest kernel: ${first}.`, lines.length),
    rest.length > 0
      ? [partFrom('counters', `The next longest kernels:\n${rest.map((line) => `- ${line}`).join('\n')}`)]
      : [],
  );
}

/** "Is flash attention used?": the rule for eager attention, and the kernels of attention. */
export async function attentionKind(facts: StoredFacts): Promise<TopicAnswer> {
  const attentionAnswer = ruleAnswer(facts, ruleTopics.attention_kind);
  const attentionFacts = { ...facts, question: { ...facts.question, tokens: tokensOf('attention') } };
  const {
    answer: { direct, evidence },
    namesKernels,
  } = await longestOf(attentionFacts);
  if (attentionAnswer.notKnown || !direct || !namesKernels) return attentionAnswer;
  const isEager = facts.explained.findings.some(({ rule }) => rule === 'eager_attention');
  if (isEager) return { ...attentionAnswer, evidence: [...attentionAnswer.evidence, ...evidence] };
  const yes = facts.question.isYesNo && !/\beager\b|\bunfused\b/i.test(facts.question.text) ? 'Yes: ' : '';
  const fused = { ...direct, text: `${yes}attention runs in fused kernels. ${direct.text}` };
  const { direct: rule } = ruleAnswer(withoutYesNo(facts), ruleTopics.attention_kind);
  return known(fused, [...evidence, ...(rule ? [rule] : [])]);
}
