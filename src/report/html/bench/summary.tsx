import type { Child, FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type {
  BenchAnswer,
  BenchPointResult,
  BenchResult,
  BenchVariant,
} from '../../../model/documents/bench.js';
import type { Figure } from '../../../model/figure.js';
import { figureParts } from '../../format.js';
import { collapsed } from '../../notices.js';
import { Behind } from '../parts.js';
import { meanOf, pointWords } from './bench-parts.js';
import { shownFlags, type ShownFlag } from './flags.js';
import { LoudNotices, QuietNotes } from '../summary-notices.js';

const terms: Record<BenchAnswer['id'], string> = {
  variants: 'Variants',
  latency: 'Speed',
  batch_knee: 'Batch',
  bound: 'Bound by',
  idle: 'Waiting',
  scaling: 'Scaling',
  prompt_cost: 'Prompt',
  output_cost: 'Output',
  regimes: 'Regimes',
  utilization: 'Device',
};

/** The three that say most: their order is that of `terms`. */
export function leadingAnswers({ variants, answers }: BenchResult): BenchAnswer[] {
  const all = [...answers, ...(variants[0]?.answers ?? [])];
  const ranked = (Object.keys(terms) as BenchAnswer['id'][]).flatMap((id) =>
    all.filter((answer) => answer.id === id).slice(0, 1),
  );
  return ranked.slice(0, 3);
}

const measured = (points: readonly BenchPointResult[]): BenchPointResult[] =>
  points.filter(({ outcome }) => outcome === 'measured');

/** What a request by itself takes: a point of the latency part, else the smallest. */
function headline({ points }: BenchVariant): BenchPointResult | undefined {
  const bySize = measured(points).toSorted(
    (a, b) => a.batch_size - b.batch_size || a.input_len - b.input_len || a.output_len - b.output_len,
  );
  return bySize.find(({ parts }) => parts.includes('latency')) ?? bySize[0];
}

function fastest(variants: readonly BenchVariant[]) {
  return variants
    .flatMap(({ label, points }) => measured(points).map((point) => ({ label, point })))
    .filter(({ point }) => point.throughput.output_tokens_per_s.value !== null)
    .toSorted((a, b) => rate(b.point) - rate(a.point))[0];
}

const rate = ({ throughput }: BenchPointResult): number => throughput.output_tokens_per_s.value ?? 0;

interface CardData {
  label: string;
  figure: Figure;
  note: string;
  more: string;
}

/** Cards of what is known; what is missing is said in its section. */
function cardsOf({ variants }: BenchResult): CardData[] {
  const [variant] = variants;
  const point = variant && headline(variant);
  if (!variant || !point) return [];
  const where = variants.length > 1 ? `${pointWords(point)}, ${variant.label}` : pointWords(point);
  const best = fastest(variants);
  const card = (label: string, figure: Figure, more: string, note = where): CardData => ({
    label,
    figure,
    more,
    note,
  });
  return [
    card('Time to first token', meanOf(point.latency.ttft_ms), 'points'),
    card('Time per output token', meanOf(point.latency.tpot_ms), 'points'),
    card('End to end', meanOf(point.latency.e2e_ms), 'points'),
    ...(best
      ? [
          card(
            'Highest throughput',
            best.point.throughput.output_tokens_per_s,
            best.point.parts.includes('throughput') ? 'batch' : 'points',
            variants.length > 1 ? `${pointWords(best.point)}, ${best.label}` : pointWords(best.point),
          ),
        ]
      : []),
    card('Memory', point.machine.memory_bytes, 'machine'),
    card('Idle in a decode step', point.device_work.decode_idle_share, 'machine'),
    card('Decode MBU', point.model_utilization.decode_mbu, 'efficiency'),
    card('Prefill MFU', point.model_utilization.prefill_mfu, 'efficiency'),
  ].filter(({ figure }) => figure.value !== null);
}

const Card: FC<CardData> = ({ label, figure, note, more }) => {
  const { text, unit, spread } = figureParts(figure);
  return (
    <li>
      <p class="label">
        <a href={`#${more}`}>{label}</a>
      </p>
      <p class="value">
        {text}
        {unit && <span class="unit">&nbsp;{unit}</span>}
      </p>
      <p class="note">
        {spread && (
          <>
            {spread}
            <br />
          </>
        )}
        {note}
      </p>
    </li>
  );
};

const Flag: FC<{ flag: ShownFlag }> = ({ flag: { severity, whose, text, code } }) => (
  <li class={`notice ${severity}`}>
    <strong>{severity}</strong> {whose !== '' && `${whose}: `}
    {text} <code>{code}</code>
  </li>
);

/** What someone in a hurry reads: three answers, the headline figures, what warns. */
export const BenchSummary: FC<{
  document: Document<BenchResult>;
  sentences: Child;
}> = ({ document: { data, issues }, sentences }) => {
  const { session, engine, variants } = data;
  const flags = shownFlags(data);
  const said = collapsed(issues);
  const loud = said.filter(({ severity }) => severity !== 'info');
  const quiet = said.filter(({ severity }) => severity === 'info');
  const answers = leadingAnswers(data);
  const traits = [
    engine.model,
    engine.weights === 'unknown' ? null : `${engine.weights} weights`,
    engine.dtype,
    engine.quantization,
    `${engine.name} ${engine.version ?? ''}`.trim(),
    engine.device_name ?? engine.device,
    engine.threads === null ? null : `${engine.threads} thread${engine.threads === 1 ? '' : 's'}`,
    session.status === 'complete' ? null : session.status,
  ];
  return (
    <header id="summary">
      <p class="kicker">
        inferscope bench · {session.name === null ? '' : `${session.name} · `}
        {session.id} · {session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{session.title}</h1>
      <p class="identity">{traits.filter((trait) => trait !== null).join(' · ')}</p>
      {session.status !== 'complete' && (
        <ul class="notices">
          <li class="notice error">
            <strong>{session.status}</strong> The benchmark did not run to its end: the figures cover what was
            measured by then.
          </li>
        </ul>
      )}
      {sentences}
      <dl class="lead">
        {answers.map(({ id, answer }) => (
          <div>
            <dt>{terms[id]}</dt>
            <dd>{answer}</dd>
          </div>
        ))}
        {answers.length === 0 && (
          <div>
            <dt>Result</dt>
            <dd>No question was answered: {nothing(variants)}</dd>
          </div>
        )}
      </dl>
      <ul class="cards" aria-label="Headline figures">
        {cardsOf(data).map((card) => (
          <Card {...card} />
        ))}
      </ul>
      <LoudNotices issues={loud} />
      {flags.length > 0 && (
        <ul class="notices" aria-label="Health">
          {flags.slice(0, 6).map((flag) => (
            <Flag flag={flag} />
          ))}
        </ul>
      )}
      {flags.length > 6 && (
        <Behind title={`${flags.length - 6} more`}>
          <ul class="notices">
            {flags.slice(6).map((flag) => (
              <Flag flag={flag} />
            ))}
          </ul>
        </Behind>
      )}
      <QuietNotes issues={quiet} />
    </header>
  );
};

function nothing(variants: readonly BenchVariant[]): string {
  const points = variants.flatMap((variant) => variant.points);
  const ended = measured(points).length;
  return `${ended} of ${points.length} points were measured.`;
}
