import type {
  ExplainResult,
  Finding,
  StageWaterfall,
  WaterfallBar,
  WaterfallKind,
} from '../model/documents/explain.js';

/** Below this share of the measured time bars are put together. */
const smallShare = 0.01;
const always = (id: string): boolean => id === 'roofline' || id === 'unattributed';

/** A bar as a reader sees it; `smaller` stands for several. */
export type ShownBar = Pick<WaterfallBar, 'id' | 'label' | 'ms' | 'share' | 'count' | 'note' | 'parts'>;

/** Bars in order, those under 1 % of the measured time as one before `unattributed`: they sum to the same. */
export function shownBars({ bars }: Pick<StageWaterfall, 'bars'>): ShownBar[] {
  const small = bars.filter(({ id, share }) => !always(id) && Math.abs(share) < smallShare);
  if (small.length < 2) return bars;
  const rest: ShownBar[] = bars.filter((bar) => !small.includes(bar));
  const last = rest.findIndex(({ id }) => id === 'unattributed');
  const together: ShownBar = {
    id: 'smaller',
    label: `${small.length} smaller: ${small.map(({ id }) => id).join(', ')}`,
    ms: small.reduce((sum, { ms }) => sum + ms, 0),
    share: small.reduce((sum, { share }) => sum + share, 0),
    count: null,
    note: null,
    parts: [],
  };
  return rest.toSpliced(last === -1 ? rest.length : last, 0, together);
}

const stageOrder: readonly WaterfallKind[] = ['decode', 'mixed', 'prefill', 'outside'];

/** Stages as they are told: what a served model does all day first. */
export function stagesInOrder({ stages }: Pick<ExplainResult, 'stages'>): StageWaterfall[] {
  const rank = ({ kind }: StageWaterfall) => (stageOrder.indexOf(kind) + 1 || stageOrder.length + 1) - 1;
  return stages.toSorted((a, b) => rank(a) - rank(b));
}

export const stageNames: Partial<Record<WaterfallKind, string>> = {
  decode: 'decode step',
  mixed: 'mixed step',
  prefill: 'prefill',
  outside: 'whole capture',
};
export const stageName = ({ kind, point }: Pick<StageWaterfall, 'kind' | 'point'>): string =>
  `${stageNames[kind] ?? kind}${point === null ? '' : ` at ${point}`}`;

/** Queries behind the findings, in the order of their numbers from 1: "[sql 3]" is the third. */
export function numberedQueries(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ evidence }) => evidence.flatMap(({ sql }) => (sql === null ? [] : [sql])));
}

export const severityRank: Record<Finding['severity'], number> = { high: 3, medium: 2, low: 1, info: 0 };

/** Tells stages of a document apart, as an anchor and as the part of a chart. */
export const stageKey = ({
  kind,
  point,
  execution_id,
}: Pick<StageWaterfall, 'kind' | 'point' | 'execution_id'>): string =>
  [kind, ...(point === null ? [] : [execution_id, point])].join('-').replaceAll(/[^\w-]+/g, '_');
