import type { Child, FC } from 'hono/jsx';
import { phaseTime } from '../../../model/headline-time.js';
import type { Headline } from '../../../model/documents/trace.js';
import type { TraceDocument } from './inputs.js';
import { Behind, Notice } from '../parts.js';
import { formatFigure, formatMs, formatPercent, nbsp } from '../../format.js';
import { formatNs, phaseName, causeName } from '../../charts/trace/words.js';
import { identityWords } from '../../words.js';

/** Sentences shown without a click. */
const atOnce = 5;

/** What someone in a hurry reads: what is wrong with the figures, what costs, and by how much. */
export const TraceSummary: FC<{
  trace: TraceDocument;
  sentences: Child;
}> = ({ trace, sentences }) => {
  const { data, issues } = trace;
  const { session, source, workload } = data;
  // Where three sentences lead, the timeline's own are more.
  const first = sentences ? 0 : atOnce;
  const shown = data.headlines.slice(0, first);
  const more = data.headlines.slice(first);
  const cards = data.phases.filter(({ kind, wall }) => kind !== 'outside' && wall.mean_ns > 0);
  const device = data.devices.find(({ focus }) => focus);
  const loud = issues.filter(({ severity }) => severity !== 'info');
  const quiet = issues.filter(({ severity }) => severity === 'info');
  return (
    <header id="summary">
      <p class="kicker">
        inferscope {session.kind} · {session.id} · {session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{session.title}</h1>
      <p class="identity">
        {[
          workload ? identityWords(workload) : null,
          device?.name ?? null,
          `${source.attribution.tool} capture ${source.attribution.capture_id}`,
          session.status === 'complete' ? null : session.status,
        ]
          .filter((part) => part !== null)
          .join(' · ')}
      </p>
      {loud.length > 0 && (
        <ul class="notices" aria-label="What to know before trusting these figures">
          {loud.map((issue) => (
            <Notice issue={issue} />
          ))}
        </ul>
      )}
      {sentences}
      {shown.length > 0 && <Headlines headlines={shown} />}
      {more.length > 0 && (
        <Behind title={sentences ? `${more.length} sentences of the timeline` : `${more.length} more`}>
          <Headlines headlines={more} />
        </Behind>
      )}
      <ul class="cards" aria-label="Phases">
        {cards.slice(0, 8).map((phase) => (
          <li>
            <p class="label">
              {source.gpu_used ? <a href="#phases">{phaseName(phase.kind)}</a> : phaseName(phase.kind)}
            </p>
            <p class="value">
              {phaseTime(phase).profiled ? formatNs(phase.wall.mean_ns) : formatFigure(phase.clean_ms)}
            </p>
            <p class="note">
              n{nbsp}={nbsp}
              {phase.instances}
              {phaseTime(phase).profiled
                ? ', under the profiler'
                : `, ${formatNs(phase.wall.mean_ns)} under the profiler`}
              {source.gpu_used && `; idle ${formatPercent(phase.idle_share)}`}
              {phase.main_cause && `, mostly ${causeName(phase.main_cause)}`}
            </p>
          </li>
        ))}
      </ul>
      {quiet.length > 0 && (
        <Behind title={`${quiet.length} ${quiet.length === 1 ? 'note' : 'notes'}`}>
          <ul class="notices" aria-label="Notes">
            {quiet.map((issue) => (
              <Notice issue={issue} />
            ))}
          </ul>
        </Behind>
      )}
      {data.next_steps.length > 0 && (
        <Behind title="What to type next">
          <ul class="next">
            {data.next_steps.map(({ command, why }) => (
              <li>
                {why}
                <code>{command}</code>
              </li>
            ))}
          </ul>
        </Behind>
      )}
      <noscript>
        <p>The charts need JavaScript; every chart has its numbers in a table below it.</p>
      </noscript>
    </header>
  );
};

const Headlines: FC<{ headlines: Headline[] }> = ({ headlines }) => (
  <ol class="help">
    {headlines.map(({ text, at_stake_ms, phase }) => (
      <li>
        {text}
        {at_stake_ms !== null && (
          <>
            {' '}
            <span class="stake">
              ({formatMs(at_stake_ms)} of {phase === null ? 'the capture' : `a ${phaseName(phase)}`} at stake)
            </span>
          </>
        )}
      </li>
    ))}
  </ol>
);
