import {
  severities,
  type Evidence,
  type ExplainResult,
  type Finding,
  type StageWaterfall,
  type WhatIfResult,
} from '../model/documents/explain.js';
import {
  changeText,
  isJudged,
  nothingFound,
  limitNotRecorded,
  nothingSignificant,
} from '../vocabulary/explain-words.js';
import { gapParts, isBarOf } from '../model/bars.js';
import { barWords } from '../vocabulary/bars.js';
import { withheldWords } from '../model/withheld.js';
import type { Block, Fact, FindingItem, Part, Text } from './block.js';
import { barsOfFinding } from './finding-bars.js';
import { largestBars, leadingStages, numberedQueries } from './explain-series.js';
import { headlineTime } from '../model/headline-time.js';
import { halfInterval } from '../model/half-interval.js';
import { formatColumn, formatMs, formatWithin, formatWithRange, nbsp, plural } from '../vocabulary/format.js';
import { perGain, stageLabels } from '../vocabulary/stages.js';
import { namedKernels } from './trace-values.js';

export interface FindingOptions {
  /** Show every stage bar by bar; otherwise only the leading ones, the others as one line each. */
  allStages?: boolean;
  /** Flags that chose the stage, rank or device, for commands that must show the same: " --stage decode". */
  flags?: string;
  /** Maximum findings. */
  limit?: number | undefined;
  /** Show evidence and causes; otherwise a summary ends with the commands that print them. */
  verbose?: boolean;
  /** Whether this is a summary followed by the tables of its command. */
  tables?: boolean;
  places?: Places | undefined;
  /** Predictions; their waterfalls are shown next to the measured ones. */
  whatIf?: WhatIfResult | undefined;
  /** Whether waterfalls are shown with the findings. */
  withWaterfalls?: boolean;
}

/** Links to the best place of a finding (by id), a bar (by `barPlace`) or a roofline point (by `pointPlace`), on pages with a timeline. */
export type Places = ReadonlyMap<string, { link: string; text: string }>;
export const barPlace = (stage: string, bar: string): string => `bar ${stage} ${bar}`;
/** @param pointId a case of `kernels`, or a stage; then `part` is a class of the stage or null */
export const pointPlace = (pointId: string, part: string | null = null): string =>
  `point ${pointId} ${part ?? ''}`;

/** Link properties of a chart point. */
export const linkTo = (place: { link: string } | undefined): { link?: string } =>
  place === undefined ? {} : { link: place.link };

/** A name with a link to its place, if it has one. */
export const linked = (place: { link: string } | undefined, text: string): Text =>
  place === undefined ? text : { link: place.link, text };

/** Maximum findings in a summary. */
const briefFindings = 3;

export function findingBlocks(
  data: ExplainResult,
  { flags = '', limit, verbose = false, tables = false, withWaterfalls = true, places }: FindingOptions,
): Block[] {
  const { findings } = data;
  const queries = numberedQueries(findings);
  const listed = inReadingOrder(findings).slice(0, limit ?? findings.length);
  const titles = new Map(findings.map(({ id, title }) => [id, title]));
  const session = sessionName(data);
  const withheld = withheldWords(data.withheld);
  const items = listed.map((finding) =>
    itemOf(finding, {
      titles,
      queries,
      session,
      place: places?.get(finding.id),
      bars: withWaterfalls ? barsOfFinding(finding, data.stages) : null,
      stage: data.stages.find(({ kind, name }) => kind === finding.stage && name === null),
    }),
  );
  const optional: readonly (Block | false)[] = [
    ordersDiffer(listed.filter((finding) => !isMinor(finding))) && {
      type: 'text',
      level: 2,
      text: 'Ordered by affected time in the whole run; high, medium and low are by share of the stage.',
    },
    findings.length > 0 &&
      findings.every(isMinor) && {
        type: 'text',
        text:
          withWaterfalls || data.session.status !== 'complete' ? nothingFoundIn(data) : nothingSignificant,
      },
    findings.length > listed.length && {
      type: 'text',
      level: 2,
      text: `… and ${findings.length - listed.length} more (--limit)`,
    },
    withheld !== null && { type: 'text', level: tables ? 2 : 1, text: withheld },
    queries.length > 0 && {
      type: 'commands',
      level: 2,
      // A page has the queries.
      pages: false,
      items: [
        {
          command: `inferscope explain ${session}${flags} --sql 1`,
          why: 'prints the query that evidence marks as [sql 1]',
        },
      ],
    },
    !verbose && {
      type: 'commands',
      summary: true,
      items: detailCommands(data, { tables, withWaterfalls, flags }),
    },
  ];
  return [
    findings.length === 0
      ? {
          type: 'text',
          text:
            withWaterfalls && isJudged(data) && data.stages.length > 0
              ? nothingFoundIn(data)
              : nothingFound(data),
        }
      : { type: 'findings', brief: limit ?? briefFindings, items },
    ...optional.filter((block) => block !== false),
    ...silentRules(data),
  ];
}

const sessionName = ({ session }: ExplainResult): string => session.name ?? session.id;

/** Commands that print what a summary leaves out. */
function detailCommands(
  data: ExplainResult,
  { tables, withWaterfalls, flags }: { tables: boolean; withWaterfalls: boolean; flags: string },
): { command: string; why: string }[] {
  const { findings, stages } = data;
  const session = sessionName(data);
  const isUnexplained =
    withWaterfalls && data.session.status === 'complete' && unexplainedStage(data) !== null;
  return [
    ...(stages.length + findings.length > 0
      ? [{ command: `inferscope explain ${session}${flags} --verbose`, why: 'evidence, causes' }]
      : []),
    ...(tables || stages.length === 0
      ? [{ command: `inferscope report ${session} --format text`, why: 'every table' }]
      : []),
    ...(findings.every(isMinor) && isUnexplained ? data.next_steps.slice(0, 1) : []),
    ...data.next_steps.filter(({ asks }) => asks),
    ...(!tables && findings.some(({ gain }) => gain !== null)
      ? [{ command: `inferscope explain ${session} --verify <after>`, why: 'check a change' }]
      : []),
  ];
}

/** Rules without a finding, and why. */
function silentRules({ rules }: ExplainResult): Block[] {
  const silent = rules.filter(({ outcome }) => outcome !== 'fired');
  if (silent.length === 0) return [];
  return [
    {
      type: 'fold',
      level: 3,
      title: `${plural(silent.length, 'rule')} without a finding`,
      blocks: [
        {
          type: 'table',
          title: 'Rules without a finding',
          columns: [
            { id: 'rule', head: 'rule', wraps: true },
            { id: 'why', head: 'why', wraps: true },
          ],
          rows: silent.map(({ title, outcome, why }) => ({
            cells: [title, `${outcome.replaceAll('_', ' ')}: ${why}`],
          })),
        },
      ],
    },
  ];
}

/** Findings that no other one hides first, notes last: the first one is that of the summary and of the next commands. */
const inReadingOrder = (findings: readonly Finding[]): Finding[] =>
  findings.toSorted((a, b) => readingPlace(a) - readingPlace(b));

const readingPlace = ({ severity, hidden_by: hiddenBy }: Finding): number =>
  severity === 'info' ? 2 : hiddenBy === null ? 0 : 1;

/** Whether a finding of higher severity is listed after one of lower severity. */
const ordersDiffer = (found: readonly Finding[]): boolean =>
  found.some(
    ({ severity }, i) => i > 0 && severities.indexOf(severity) < severities.indexOf(found[i - 1]!.severity),
  );

/** Minimum unexplained share of a stage that is reported. */
const minUnexplainedShare = 0.2;

/** The unexplained share of the leading stage, if it is large. */
function unexplainedStage(data: ExplainResult): { share: number; stage: StageWaterfall } | null {
  const [stage] = leadingStages(data).full;
  const share = stage?.bars.find(({ id }) => id === 'unattributed')?.share ?? 0;
  return stage && share >= minUnexplainedShare ? { share, stage } : null;
}

function nothingFoundIn(data: ExplainResult): Text {
  const { session, stages } = data;
  if (session.status !== 'complete') return 'The run did not complete.';
  if (stages.length === 0) return limitNotRecorded;
  const unexplainedTime = unexplainedStage(data);
  const [largest] = leadingStages(data).full.flatMap((stage) => largestBars(stage, 1));
  // An idle device is not "nothing significant".
  if (unexplainedTime === null && largest && largest.share > 0.5 && isBarOf(largest.id, ...gapParts)) {
    const { meaning } = barWords(largest.id);
    return `No rule explains the largest bar: ${largest.label}${meaning === null ? '' : ` (${meaning})`}.`;
  }
  return unexplainedTime === null
    ? nothingSignificant
    : [
        'The session does not show the cause of ',
        { n: unexplainedTime.share, unit: 'ratio' },
        ` of the ${stageLabels[unexplainedTime.stage.kind]}.`,
      ];
}

/** Why a gain is small compared with the affected time; the assumption says it in full. */
const hostLimit = ({ host_ms: host }: NonNullable<Finding['gain']>): string =>
  host === undefined
    ? ''
    : `; beyond that the host is the limit: it needs ${formatMs(host)} to launch the rest`;

/** Contained in a larger finding, or without gain. */
const isMinor = ({ severity, hidden_by: hiddenBy }: Finding): boolean =>
  severity === 'info' || hiddenBy !== null;

/** Id of a finding's element on its page. */
export const findingAnchor = (id: string): string => `finding-${id.replaceAll(/[^\w-]+/g, '-')}`;

interface ItemContext {
  /** Titles of all findings by id. */
  titles: ReadonlyMap<string, string>;
  queries: readonly string[];
  session: string;
  place: { link: string; text: string } | undefined;
  /** The bars with its time, if waterfalls are shown with it. */
  bars: Text | null;
  stage: StageWaterfall | undefined;
}

function itemOf(
  finding: Finding,
  { titles, queries, session, place, bars, stage }: ItemContext,
): FindingItem {
  const { id, severity, title, gain, at_stake_ms: atStake, cause, change, hidden_by: hiddenBy } = finding;
  return {
    id: findingAnchor(id),
    severity,
    title,
    gain:
      gain && gain.expected_ms > 0
        ? gainHead(gain)
        : atStake === null || atStake === 0
          ? ''
          : ['affects ', { n: atStake, unit: 'ms' }],
    expected:
      gain && gain.expected_ms > 0
        ? `expected gain: ${gainText(gain, finding.stage, stage)}${hostLimit(gain)}`
        : '',
    change: change.text,
    example: change.example,
    minor: isMinor(finding),
    ...(place ? { place } : {}),
    facts: [
      ...finding.evidence.map(({ text, sql }): Fact => ({
        name: 'evidence',
        text: [text, ...(sql === null ? [] : [` ${queryMark(sql, queries)}`])],
      })),
      ...(bars === null ? [] : [{ name: 'in bars', text: bars } satisfies Fact]),
      { name: 'cause', text: cause },
      { name: 'change', text: changeText(change) },
      ...(change.example === null ? [] : [{ name: '', lines: change.example }]),
      ...(gain ? gainFacts(gain, gainText(gain, finding.stage, stage), session) : []),
      ...(hiddenBy === null
        ? []
        : [
            {
              name: 'hidden by',
              text: [
                { link: `#${findingAnchor(hiddenBy)}`, text: titles.get(hiddenBy) ?? hiddenBy },
                ': included in it, or visible only after that change',
              ],
            } satisfies Fact,
          ]),
      { name: 'check', text: checkText(finding.check) },
      { name: 'confidence', text: `${finding.confidence}; severity ${severity}; rule ${id}` },
      ...(finding.references.length === 0
        ? []
        : [
            {
              level: 3,
              name: 'read',
              text: finding.references.flatMap(({ title: name, url }, index): Part[] => [
                ...(index === 0 ? [] : ['; ']),
                /^https?:/.test(url) ? { link: url, text: name } : name,
              ]),
            } satisfies Fact,
          ]),
    ],
    blocks: finding.evidence.flatMap((evidence) => evidenceBlocks(evidence, queries)),
  };
}

/** A check in words and commands: "inferscope run …, then inferscope explain …". */
const checkText = (check: string): Text =>
  check
    .split(/(, (?:then )?|^repeat )/)
    .map((text) => (text.startsWith('inferscope ') ? { code: text } : text));

function gainFacts(gain: NonNullable<Finding['gain']>, expected: string, session: string): Fact[] {
  return [
    { name: 'gain', text: [expected, '. Assumption: ', gain.assumption] },
    ...(gain.what_if === null
      ? []
      : [
          {
            level: 3 as const,
            name: 'predict',
            text: { code: `inferscope explain --session ${session} --what-if ${gain.what_if}` },
          },
        ]),
  ];
}

/** "−6.20 ms expected" for a stage, "0.51 ms → 0.02 ms per token expected" for a token: the two must look different. */
function gainHead({
  per,
  expected_ms: expected,
  after_ms: after,
  ...gain
}: NonNullable<Finding['gain']>): Part[] {
  const ms = (n: number): string => formatWithin(n, (gain.high_ms - gain.low_ms) / 2, 'ms');
  return per === 'token'
    ? [`${ms(after + expected)} → ${ms(after)} per token expected`]
    : [`${ms(-expected)} expected`];
}

/** "3.27 ms per prefill (2.91 to 3.36 ms), leaving 0.80 ms": the gain with its interval, then the rest of the stage. */
function gainText(
  { per, after_ms: after, expected_ms: expected, low_ms: low, high_ms: high }: NonNullable<Finding['gain']>,
  stage: Finding['stage'],
  waterfall: StageWaterfall | undefined,
): string {
  const { value, range } = formatWithRange(expected, low, high, 'ms');
  const interval = range === null ? '' : ` (${range})`;
  // A difference is as uncertain as the less certain of its parts.
  const half = Math.max((high - low) / 2, (waterfall && halfInterval(headlineTime(waterfall))) ?? 0);
  const rest = formatColumn([after], 'ms', after + expected, half);
  const leavingWords = after === 0 ? '' : `, leaving ${rest.texts[0]} ${rest.unit}`;
  const shorter = per === 'token' ? '; the step itself does not get shorter' : '';
  return `${value} ${perGain(per, stage)}${interval}${leavingWords}${shorter}`;
}

/** "[sql 1]": the number of a query, by which `--sql` prints it. */
const queryMark = (sql: string, queries: readonly string[]): string =>
  `[sql${nbsp}${queries.indexOf(sql) + 1}]`;

/** The evidence rows, and the query that returns them. */
function evidenceBlocks(
  { sql, rows, row_count: count, kernel_labels: labels }: Evidence,
  queries: readonly string[],
): Block[] {
  const columns = Object.keys(rows[0] ?? {});
  const isNumber = (name: string) => rows.every((row) => row[name] === null || typeof row[name] === 'number');
  const isKernel = (name: string) => name === 'kernel' || name === 'kernel_name';
  const named = namedKernels(
    rows.flatMap((row) => columns.flatMap((name) => (isKernel(name) ? [{ name: String(row[name]) }] : []))),
    new Map(Object.entries(labels)),
  );
  const kernelOf = (name: Parameters<typeof cell>[0]): Text =>
    typeof name === 'string' ? named(name) : cell(name);
  return [
    ...(rows.length > 0
      ? [
          {
            type: 'table',
            level: 3,
            title: count > rows.length ? `${rows.length} of ${count} rows` : 'Evidence',
            columns: columns.map((head) =>
              isNumber(head) ? { id: head, head, numeric: true } : { id: head, head, wraps: true },
            ),
            rows: rows.map((row) => ({
              cells: columns.map((name) => (isKernel(name) ? kernelOf(row[name]) : cell(row[name]))),
            })),
          } satisfies Block,
        ]
      : []),
    ...(sql === null
      ? []
      : [
          {
            type: 'fold',
            level: 2,
            terminal: false,
            title: `Query ${queryMark(sql, queries)} for inferscope sql`,
            blocks: [{ type: 'lines', text: sql }],
          } satisfies Block,
        ]),
  ];
}

function cell(value: string | number | boolean | null | undefined): Text {
  if (value === null || value === undefined) return { missing: 'the query returned no value' };
  if (typeof value !== 'number') return String(value);
  return Number.isInteger(value) ? { count: value } : { n: value, unit: '', digits: digitsOf(value) };
}

/** The significant digits of a number as the query returned it, at most six: queries round. */
const digitsOf = (value: number): number =>
  Math.max(
    1,
    String(Number(Math.abs(value).toPrecision(6)))
      .replace(/e.*|\./g, '')
      .replace(/^0+/, '').length,
  );
