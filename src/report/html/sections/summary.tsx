import type { Child, FC } from 'hono/jsx';
import type { Document, Issue } from '../../../model/document.js';
import type { ProfileResult, StageResult } from '../../../model/documents/profile.js';
import { missing, type Figure } from '../../../model/figure.js';
import { figureParts, formatFigure, isAccountingFault } from '../../format.js';
import { notices } from '../../notices.js';
import { boundWords, headlineSentences, identityWords, stageNamed } from '../../words.js';
import { Behind, Missing, Notice } from '../parts.js';

interface CardData {
  label: string;
  figure: Figure;
  /** Anchor of the section that says more. */
  more: string;
  /** Shown where there is no spread. */
  note?: string;
  isUtilization?: true;
}

/** MFU of a stage that compute bounds, MBU of one that memory bounds; `usual` where neither is known. */
function utilizationCard(name: string, stage: StageResult | undefined, usual: 'MFU' | 'MBU'): CardData {
  const which = stage?.bound === 'compute' ? 'MFU' : stage?.bound === 'memory' ? 'MBU' : usual;
  const none = missing('no_stage', `no ${name.toLowerCase()} stage was recorded`);
  return {
    label: `${name} ${which}`,
    figure: (which === 'MFU' ? stage?.mfu : stage?.mbu) ?? none,
    more: 'definitions',
    note: stage ? boundWords(stage) : '',
    isUtilization: true,
  };
}

function cardsOf(result: ProfileResult): CardData[] {
  const absent = (kind: string): Figure => missing('no_stage', `no ${kind} stage was recorded`);
  const { latency, memory } = result;
  const prefill = stageNamed(result, 'prefill');
  const decode = stageNamed(result, 'decode');
  return [
    { label: 'Time to first token', figure: latency.ttft_ms, more: 'latency' },
    { label: 'Time per output token', figure: latency.tpot_ms, more: 'latency' },
    { label: 'End to end', figure: latency.e2e_ms, more: 'latency' },
    {
      label: 'Peak memory',
      figure: memory?.peak_bytes ?? missing('no_memory', 'memory was not sampled'),
      more: 'memory',
      ...(memory && memory.baseline_bytes.value !== null
        ? { note: `${formatFigure(memory.baseline_bytes)} before the model` }
        : {}),
    },
    { label: 'Prefill throughput', figure: prefill?.tokens_per_s ?? absent('prefill'), more: 'stages' },
    { label: 'Decode throughput', figure: decode?.tokens_per_s ?? absent('decode'), more: 'stages' },
    utilizationCard('Prefill', prefill, 'MFU'),
    utilizationCard('Decode', decode, 'MBU'),
  ];
}

const Card: FC<CardData> = ({ label, figure, more, note = '', isUtilization = false }) => {
  const { text, unit, spread, reason } = figureParts(figure);
  return (
    <li>
      <p class="label">
        <a href={`#${more}`}>{label}</a>
      </p>
      <p class="value">
        {reason === null ? text : <Missing reason={reason} />}
        {unit && <span class="unit">&nbsp;{unit}</span>}
      </p>
      <p class="note">
        {isUtilization && isAccountingFault(figure) ? (
          <span class="fault">accounting fault</span>
        ) : (
          (reason ?? (spread || note))
        )}
      </p>
    </li>
  );
};

const Notices: FC<{ label: string; issues: Issue[] }> = ({ label, issues }) =>
  issues.length === 0 ? null : (
    <ul class="notices" aria-label={label}>
      {issues.map((issue) => (
        <Notice issue={issue} />
      ))}
    </ul>
  );

/** What someone in a hurry reads: what is wrong, three sentences and what to try, the headline figures, what to doubt about them. */
export const Summary: FC<{
  document: Document<ProfileResult>;
  sentences: Child;
}> = ({ document, sentences }) => {
  const { data } = document;
  const identity = identityWords(data.workload);
  const [run, bounds, memory] = headlineSentences(data);
  const all = notices(document);
  const errors = all.filter(({ severity }) => severity === 'error');
  const warnings = all.filter(({ severity }) => severity === 'warning');
  const notes = all.filter(({ severity }) => severity === 'info');
  return (
    <header id="summary">
      <p class="kicker">
        inferscope profile · {data.session.id} · {data.session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{data.session.title}</h1>
      {data.session.title !== identity && <p class="identity">{identity}</p>}
      <Notices label="What is wrong with these figures" issues={errors} />
      {sentences}
      <dl class="lead">
        <div>
          <dt>Speed</dt>
          <dd>{run}</dd>
        </div>
        <div>
          <dt>Bound by</dt>
          <dd>{bounds}</dd>
        </div>
        <div>
          <dt>Memory</dt>
          <dd>{memory}</dd>
        </div>
      </dl>
      <ul class="cards" aria-label="Headline figures">
        {cardsOf(data).map((card) => (
          <Card {...card} />
        ))}
      </ul>
      <Notices label="What to know before trusting these figures" issues={warnings} />
      {notes.length > 0 && (
        <Behind title={`${notes.length} ${notes.length === 1 ? 'note' : 'notes'}`}>
          <Notices label="Notes" issues={notes} />
        </Behind>
      )}
      <noscript>
        <p>The charts need JavaScript; every chart has its numbers in a table below it.</p>
      </noscript>
    </header>
  );
};
