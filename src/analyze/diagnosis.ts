import type { costs, Diagnosis, StageResult, WithheldPart } from '../model/documents/profile.js';
import { withheldReasons } from '../model/withheld.js';
import { barShare, figure, isShare, missing, type Figure } from '../model/figure.js';
import { observations, percent, type DiagnosisInput } from './observations.js';

/** Beyond this share of a stage the profiled pass and the clean one were not the same run any more. */
export const doubtfulUnattributed = 0.1;
/** A cost below this share of its stage is not what the stage costs. */
const dominantShare = 0.5;
const mostObservations = 4;

const allocation = missing(
  'not_in_trace',
  "the runtime's operator trace has no allocation events: their time is inside operators and gaps",
);

/**
 * What costs in each stage, by the bars of the waterfall, and at most four observations that each tie a measured thing
 * to a decision about model or runtime, the one with the most time at stake first. Says nothing that the figures do
 * not bear: where the profiled pass does not explain the clean one, nothing is built on its parts.
 */
export function diagnosis(input: DiagnosisInput): { diagnosis: Diagnosis[]; withheld: WithheldPart[] } {
  const stages = input.stages.filter(({ kind }) => kind !== 'sampling');
  const { said, withheld } = observations(
    input,
    (stage) => Math.abs(unattributedShare(stage) ?? 1) <= doubtfulUnattributed,
  );
  const shown = said.slice(0, mostObservations);
  return {
    diagnosis: [...stages.map(verdict), ...(shown.length > 0 ? shown : [nothingSignificant])],
    withheld: [...withheld, ...stages.flatMap(barsWithoutShare)],
  };
}

/** Of the profiled pass: what is longer than the clean time or below 0. */
function barsWithoutShare(stage: StageResult): WithheldPart[] {
  const kind = kindOf(stage);
  return stage.bars
    .filter(({ ms }) => barShare(ms, stage.duration_ms.value) === null)
    .map(({ id }) => ({ kind: 'bar_share', id, stage: kind, reason: withheldReasons.not_a_share }));
}

const kindOf = ({ kind }: StageResult) => (kind === 'decode' ? 'decode' : 'prefill');

const nothingSignificant: Diagnosis = {
  id: 'nothing_significant',
  stage: null,
  cost: null,
  share: missing('below_threshold', 'no observation passed its threshold'),
  text: 'Nothing else is significant: no observation passed its threshold.',
  decision: null,
};

/** Part of the measured time that the bars leave unexplained, signed; null without bars. */
export function unattributedShare({ bars, duration_ms }: StageResult): number | null {
  const bar = bars.find(({ id }) => id === 'unattributed');
  return bar && duration_ms.value ? bar.ms / duration_ms.value : null;
}

/** Bars by cost; `unattributed` belongs to none. */
const costOfBar = (id: string): 'kernels' | 'scheduling' | 'host' | null => {
  if (id === 'roofline' || id === 'serial' || /^(?:inefficiency|nonessential)\./.test(id)) return 'kernels';
  if (id === 'host.runtime_dispatch' || id === 'host.runtime_call') return 'scheduling';
  return id === 'host.sampling' || id === 'host.loop' ? 'host' : null;
};

function unknownVerdict(kind: 'prefill' | 'decode', none: ReturnType<typeof missing>): Diagnosis {
  return {
    id: 'verdict',
    stage: kind,
    cost: null,
    share: none,
    shares: { kernels: none, scheduling: none, allocation, host: none },
    text: `What costs in ${kind} is unknown: ${none.reason.text}.`,
    decision: null,
  };
}

function verdict(stage: StageResult): Diagnosis {
  const kind = kindOf(stage);
  const measuredMs = stage.duration_ms.value;
  const unattributed = unattributedShare(stage);
  if (!measuredMs || unattributed === null) {
    return unknownVerdict(kind, missing('no_bars', whyNoBars(stage)));
  }
  const shareOf = (cost: (typeof costs)[number]): number =>
    stage.bars.filter(({ id }) => costOfBar(id) === cost).reduce((sum, { ms }) => sum + ms, 0) / measuredMs;
  const outside = (['kernels', 'scheduling', 'host'] as const).filter((cost) => !isShare(shareOf(cost)));
  if (outside.length > 0)
    return unknownVerdict(kind, missing('not_a_share', withheldReasons.passes_differ.text));
  const ranked = (['kernels', 'scheduling', 'host'] as const)
    .map((cost) => ({ cost, share: shareOf(cost) }))
    .toSorted((x, y) => y.share - x.share);
  const [first, second] = ranked;
  const doubtful = Math.abs(unattributed) > doubtfulUnattributed;
  // What is unexplained could lie in any part, so it must not be able to turn the order.
  const clear = first!.share >= dominantShare && first!.share - second!.share > Math.abs(unattributed);
  const source = (what: string): string => `bars of the stage (${what}) / measured time`;
  const shares = {
    kernels: figure(shareOf('kernels'), 'ratio', source('roofline, serial, inefficiency.*, nonessential.*')),
    scheduling: figure(shareOf('scheduling'), 'ratio', source('host.runtime_dispatch, host.runtime_call')),
    allocation,
    host: figure(shareOf('host'), 'ratio', source('host.sampling, host.loop')),
  };
  const parts = ranked.map(({ cost, share }) => `${costWords[cost]} ${percent(share)}`);
  if (doubtful) parts.push(`not explained ${percent(unattributed)}`);
  const what = clear
    ? `${costWords[first!.cost]} ${first!.cost === 'kernels' ? 'cost' : 'costs'} most`
    : 'no single cost dominates';
  const share: Figure = clear ? shares[first!.cost] : missing('no_single_cost', 'no cost dominates clearly');
  return {
    id: 'verdict',
    stage: kind,
    cost: clear ? first!.cost : null,
    share,
    shares,
    text: `In ${kind} ${what}: ${parts.join(', ')}; allocation is not visible in this runtime's trace.`,
    decision: clear ? costDecisions[first!.cost] : null,
  };
}

const costWords = { kernels: 'kernels', scheduling: 'scheduling', host: 'the host' } as const;

const costDecisions = {
  kernels: 'model size, dtype, batch and lengths decide, and the kernels that run them',
  scheduling: 'the runtime decides: fewer operators and calls, inputs and outputs that stay bound',
  host: 'the generation loop decides: sampling and what runs between two calls',
} as const;

function whyNoBars({ roofline_ms, profiled_ms, breakdown }: StageResult): string {
  if (profiled_ms.value === null) return profiled_ms.reason.text;
  if (breakdown === null) return 'no operator of it was recorded';
  return roofline_ms.value === null ? roofline_ms.reason.text : 'the stage has no bars';
}
