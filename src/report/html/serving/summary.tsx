import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { ExplainResult } from '../../../model/documents/explain.js';
import type { ServingPoint, ServingResult, Slo } from '../../../model/documents/serving.js';
import type { Figure } from '../../../model/figure.js';
import { byLoad, levelLabel } from '../../charts/serving/levels.js';
import { figureParts, formatCount, formatFigure, formatMs, formatPercent } from '../../format.js';
import { collapsed } from '../../notices.js';
import { Sentences } from '../explain/explain.js';
import { asRequests } from './serving-parts.js';
import { LoudNotices, QuietNotes } from '../summary-notices.js';

/** "TTFT ≤ 200 ms, TPOT ≤ 30.0 ms for 99 % of the requests". */
export function sloWords(slo: Slo): string {
  const bounds = [
    ['TTFT', slo.ttft_ms],
    ['TPOT', slo.tpot_ms],
    ['end to end', slo.e2e_ms],
  ] as const;
  const told = bounds.flatMap(([name, ms]) => (ms === null ? [] : [`${name} ≤ ${formatMs(ms)}`]));
  return `${told.join(', ')} for ${formatPercent(slo.share)} of the requests`;
}

/** Whether the figures are the server's or ours. */
export function clientSentence(points: readonly ServingPoint[]): string {
  const bound = points.filter(({ client }) => client.bound);
  if (points.length === 0) return 'No load was measured.';
  if (bound.length === 0) return 'No: the load generator kept up at every load.';
  const reasons = [...new Set(bound.flatMap(({ client }) => client.reasons))];
  const which = bound.length === points.length ? 'every load' : bound.map(levelLabel).join(', ');
  return `Yes, at ${which}: ${reasons.join('; ')}. These latencies are not the server’s.`;
}

function failureSentence(points: readonly ServingPoint[]): string {
  const failed = points.reduce((sum, { requests }) => sum + requests.failed, 0);
  const all = points.reduce((sum, { requests }) => sum + requests.counted, 0);
  if (failed === 0) return `None of ${formatCount(all)} counted requests failed.`;
  return `${formatCount(failed)} of ${formatCount(all)} counted requests failed; they are in no latency.`;
}

interface CardData {
  label: string;
  figure: Figure | null;
  text?: string;
  note: string;
}

/** Least load for latency, best load for throughput. */
function cardsOf(points: readonly ServingPoint[]): CardData[] {
  const [least] = points;
  if (!least) return [];
  const best = points.toSorted(
    (a, b) => (b.throughput.output_tokens_per_s.value ?? 0) - (a.throughput.output_tokens_per_s.value ?? 0),
  )[0];
  const good = points
    .filter(({ goodput }) => goodput.requests_per_s.value !== null)
    .toSorted((a, b) => (b.goodput.requests_per_s.value ?? 0) - (a.goodput.requests_per_s.value ?? 0))[0];
  const { ttft, tpot } = least.latency;
  return [
    ...('value' in ttft
      ? []
      : [
          {
            label: 'TTFT, median',
            figure: null,
            text: formatMs(ttft.p50),
            note: `${levelLabel(least)}; p99 ${formatMs(ttft.p99)}`,
          },
        ]),
    ...('value' in tpot
      ? []
      : [
          {
            label: 'TPOT, median',
            figure: null,
            text: formatMs(tpot.p50),
            note: `${levelLabel(least)}; p99 ${formatMs(tpot.p99)}`,
          },
        ]),
    ...(best && best.throughput.output_tokens_per_s.value !== null
      ? [
          {
            label: 'Highest output rate',
            figure: best.throughput.output_tokens_per_s,
            note: levelLabel(best),
          },
        ]
      : []),
    ...(good
      ? [
          {
            label: 'Highest goodput',
            figure: asRequests(good.goodput.requests_per_s),
            note: `${levelLabel(good)}; ${formatFigure(good.goodput.share)} within the SLO`,
          },
        ]
      : []),
  ];
}

const Card: FC<CardData> = ({ label, figure, text, note }) => {
  const parts = figure ? figureParts(figure) : null;
  const [number = '', unit = ''] = (text ?? '').split(/\u00a0(?=\D)/);
  return (
    <li>
      <p class="label">{label}</p>
      <p class="value">
        {parts ? parts.text : number}
        <span class="unit">&nbsp;{parts ? parts.unit : unit}</span>
      </p>
      <p class="note">{note}</p>
    </li>
  );
};

/** What someone in a hurry reads: what the server can bear, and whether it was the server. */
export const ServingSummary: FC<{
  document: Document<ServingResult>;
  explain?: Document<ExplainResult> | null | undefined;
}> = ({ document: { data, issues }, explain }) => {
  const points = byLoad(data);
  const said = collapsed(issues);
  const loud = said.filter(({ severity }) => severity !== 'info');
  const quiet = said.filter(({ severity }) => severity === 'info');
  const { session, target, best_under_slo: best, probe } = data;
  return (
    <header id="summary">
      <p class="kicker">
        inferscope bench serve · {session.id} · {session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{session.title}</h1>
      <p class="identity">
        {[target.model, target.server, target.url, session.status === 'complete' ? null : session.status]
          .filter((part) => part !== null)
          .join(' · ')}
      </p>
      <Sentences explain={explain} />
      <dl class="lead">
        <div>
          <dt>Saturation</dt>
          <dd>{data.saturation.text}</dd>
        </div>
        {best && (
          <div>
            <dt>SLO</dt>
            <dd>
              {best.text} {data.slo && <span class="spread">({sloWords(data.slo)})</span>}
            </dd>
          </div>
        )}
        <div>
          <dt>Client-bound</dt>
          <dd>{clientSentence(points)}</dd>
        </div>
        <div>
          <dt>Failures</dt>
          <dd>{failureSentence(points)}</dd>
        </div>
        {probe?.caches_prefixes && (
          <div>
            <dt>Prefix cache</dt>
            <dd>The server answers a repeated prompt from its cache. The prompts of the loads are fresh.</dd>
          </div>
        )}
      </dl>
      <ul class="cards" aria-label="Headline figures">
        {cardsOf(points).map((card) => (
          <Card {...card} />
        ))}
      </ul>
      <LoudNotices issues={loud} />
      <QuietNotes issues={quiet} />
    </header>
  );
};
