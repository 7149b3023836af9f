import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { MonitorResult } from '../../../model/documents/monitor.js';
import { formatFigure, formatQuantity } from '../../format.js';
import { collapsed } from '../../notices.js';
import { LoudNotices, QuietNotes } from '../summary-notices.js';

/** What someone in a hurry reads: what was watched, the findings, what warns. */
export const MonitorSummary: FC<{ document: Document<MonitorResult> }> = ({ document: { data, issues } }) => {
  const { session, plan, duration_s, sample_hz, devices, headlines } = data;
  const program = plan.program;
  const said = collapsed(issues);
  const loud = said.filter(({ severity }) => severity !== 'info');
  const quiet = said.filter(({ severity }) => severity === 'info');
  const traits = [
    devices.length === 0 ? 'no GPU' : `${devices.length} GPU${devices.length === 1 ? '' : 's'}`,
    plan.tool,
    plan.driver === null ? null : `driver ${plan.driver}`,
    duration_s.value === null ? null : formatFigure(duration_s),
    sample_hz.value === null ? null : formatFigure(sample_hz),
    session.status === 'complete' ? null : session.status,
  ];
  return (
    <header id="summary">
      <p class="kicker">
        inferscope monitor · {session.id ?? 'not kept'} · {session.started_at.slice(0, 16).replace('T', ' ')}{' '}
        UTC
      </p>
      <h1>{session.title}</h1>
      <p class="identity">{traits.filter((trait) => trait !== null).join(' · ')}</p>
      <dl class="lead">
        {headlines.map((text, index) => (
          <div>
            <dt>{index === 0 ? 'Findings' : ''}</dt>
            <dd>{text}</dd>
          </div>
        ))}
        {program && (
          <div>
            <dt>Program</dt>
            <dd>
              <code>{program.command.join(' ')}</code>:{' '}
              {program.signal ??
                (program.exit_code === null ? 'not started' : `exit code ${program.exit_code}`)}
              , {formatQuantity((program.end_ns - program.start_ns) / 1e6, 'ms')}
            </dd>
          </div>
        )}
        {plan.no_gpus && (
          <div>
            <dt>GPUs</dt>
            <dd>None was read: {plan.no_gpus.text}</dd>
          </div>
        )}
      </dl>
      <LoudNotices issues={loud} />
      <QuietNotes issues={quiet} />
    </header>
  );
};
