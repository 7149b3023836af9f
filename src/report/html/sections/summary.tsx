import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { ProfileResult } from '../../../model/documents/profile.js';
import { missing, type Figure } from '../../../model/figure.js';
import { figureParts, formatFigure, isAccountingFault } from '../../format.js';
import { boundWords, headlineSentences, notices, stageNamed } from '../../words.js';
import { Behind, Missing, Notice } from '../parts.js';

interface CardData {
  label: string;
  figure: Figure;
  /** Anchor of the section that says more. */
  more: string;
  /** Stands where no spread does. */
  note?: string;
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
    { label: 'Prefill throughput', figure: latency.prefill_tokens_per_s, more: 'stages' },
    { label: 'Decode throughput', figure: latency.decode_tokens_per_s, more: 'stages' },
    {
      label: 'Prefill MFU',
      figure: prefill?.mfu ?? absent('prefill'),
      more: 'definitions',
      note: prefill ? boundWords(prefill) : '',
    },
    {
      label: 'Decode MBU',
      figure: decode?.mbu ?? absent('decode'),
      more: 'definitions',
      note: decode ? boundWords(decode) : '',
    },
  ];
}

const Card: FC<CardData> = ({ label, figure, more, note = '' }) => {
  const { text, unit, spread, reason } = figureParts(figure);
  const utilization = label.endsWith('MFU') || label.endsWith('MBU');
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
        {utilization && isAccountingFault(figure) ? (
          <span class="fault">accounting fault</span>
        ) : (
          (reason ?? (spread || note))
        )}
      </p>
    </li>
  );
};

/** What someone in a hurry reads: three sentences, what to doubt about them, the headline figures. */
export const Summary: FC<{ document: Document<ProfileResult> }> = ({ document }) => {
  const { data } = document;
  const [run, bounds, memory] = headlineSentences(data);
  const all = notices(document);
  const grave = all.filter(({ severity }) => severity !== 'info');
  const notes = all.filter(({ severity }) => severity === 'info');
  return (
    <header id="summary">
      <p class="kicker">
        inferscope profile · {data.session.id} · {data.session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{data.session.title}</h1>
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
      {grave.length > 0 && (
        <ul class="notices" aria-label="What to know before trusting these figures">
          {grave.map((issue) => (
            <Notice issue={issue} />
          ))}
        </ul>
      )}
      {notes.length > 0 && (
        <Behind title={`${notes.length} ${notes.length === 1 ? 'note' : 'notes'}`}>
          <ul class="notices">
            {notes.map((issue) => (
              <Notice issue={issue} />
            ))}
          </ul>
        </Behind>
      )}
      <ul class="cards" aria-label="Headline figures">
        {cardsOf(data).map((card) => (
          <Card {...card} />
        ))}
      </ul>
      <noscript>
        <p>The charts need JavaScript; every chart has its numbers in a table below it.</p>
      </noscript>
    </header>
  );
};
