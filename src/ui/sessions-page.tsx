import type { FC } from 'hono/jsx';
import { deviceOf } from '../facts/device.js';
import { modelNameOf } from '../facts/model-name.js';
import { Missing } from '../render/html/parts.js';
import { Breakable } from '../render/html/words.js';
import { safeText } from '../render/safe-text.js';
import { statusMark } from '../views/session.js';
import { formatBytes, formatCount, formatQuantity, formatSigned, keepUnits } from '../vocabulary/format.js';
import type { KeyedSession } from './homes.js';
import { html, Shell } from './pages.js';
import { sessionPath } from './session-path.js';
import { trendsOf } from './trends.js';

/** All sessions, newest first; a script adds new ones and filters the list. */
export const sessionsPage = (sessions: readonly KeyedSession[]): string =>
  html(
    <Shell title="Sessions" navigation={{ current: '/' }} script="ui-sessions.js" wide>
      <section aria-labelledby="sessions">
        <h1 id="sessions">Sessions</h1>
        <form action="/compare" method="get">
          <p class="tools">
            <label class="filter">
              Filter <input type="search" id="filter" placeholder="name, model, GPU, tag" />
            </label>
            <button type="submit">Compare the chosen two</button>
          </p>
          <div id="list">
            <SessionsTable sessions={sessions} />
          </div>
        </form>
      </section>
    </Shell>,
  );

/** Only the table, for the script that polls for new sessions. */
export const sessionsTable = (sessions: readonly KeyedSession[]): string =>
  String(<SessionsTable sessions={sessions} />);

type Program = NonNullable<KeyedSession['program']>;
type Trends = ReturnType<typeof trendsOf<KeyedSession>>;

const gpuOf = (program: Program): string | null => deviceOf(program, null).name;

const heads: readonly (readonly [head: string, numeric?: 'number'])[] = [
  ['Session'],
  ['Model'],
  ['GPU'],
  ['Batch', 'number'],
  ['Headline'],
  ['Trend'],
  ['Kind'],
  ['Started (UTC)'],
  ['Size', 'number'],
];

const SessionsTable: FC<{ sessions: readonly KeyedSession[] }> = ({ sessions }) => {
  if (sessions.length === 0)
    return (
      <p>
        No session yet: <code>inferscope profile</code> makes one, <code>inferscope import FILE</code> reads a
        capture. This page shows it when it is there.
      </p>
    );
  const trends = trendsOf(sessions, gpuOf);
  return (
    <div class="scroll whole">
      <table class="sessions stacks">
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">compare</span>
            </th>
            {heads.map(([head, numeric]) => (
              <th scope="col" {...(numeric ? { class: numeric } : {})}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sessions.toReversed().map((session) => (
            <SessionRow session={session} trends={trends} />
          ))}
        </tbody>
      </table>
      <p class="hint">
        Trend: the headline figure of all sessions of the same workload on the same GPU in the order in which
        they ran, this one as a dot, and its change against the one before.
      </p>
    </div>
  );
};

const SessionRow: FC<{ session: KeyedSession; trends: Trends }> = ({ session, trends }) => {
  const { listed, program, figure, key, home } = session;
  const name = safeText(listed.name ?? listed.id);
  const workload = program?.workload;
  // Empty cells are hidden on a narrow page, with their labels.
  const modelName = workload ? modelNameOf(workload) : null;
  const dtype = dtypeOf(workload);
  const trend = trends.get(session);
  const mark = safeText(statusMark(listed.status));
  return (
    <tr>
      <td>
        {listed.broken === null && (
          <input type="checkbox" name="s" value={key} aria-label={`compare ${name}`} />
        )}
      </td>
      <td class="wraps">
        {listed.broken === null ? <a href={sessionPath(key)}>{name}</a> : safeText(listed.id)}
        {mark !== '' && <span class="fault"> {mark}</span>}
        <span class="spread">
          {' '}
          <Breakable
            text={safeText([listed.title ?? '', ...listed.tags.map((tag) => `#${tag}`)].join(' '))}
          />
          {home !== null && <> in {safeText(home)}</>}
        </span>
      </td>
      <td data-head="Model" class="fits">
        {(modelName !== null || dtype !== '') && (
          <span>
            {safeText(modelName ?? '')} <span class="spread">{dtype}</span>
          </span>
        )}
      </td>
      <td data-head="GPU" class="fits">
        {program && safeText(gpuOf(program)?.replace(/^NVIDIA /, '') ?? '')}
      </td>
      <td data-head="Batch" class="number">
        {typeof workload?.batch_size === 'number' && formatCount(workload.batch_size)}
      </td>
      <td data-head="Headline" class="fits">
        {listed.broken ? (
          safeText(listed.broken.text)
        ) : listed.headline_why === 'not_analyzed' ? (
          <span class="spread">not analyzed yet</span>
        ) : listed.headline_why === 'no_time' ? (
          <Missing reason="the session has no time to show" />
        ) : (
          safeText(keepUnits(listed.headline ?? ''))
        )}
      </td>
      <td data-head="Trend">
        {trend && figure && (
          <span class="trend">
            <Sparkline
              {...trend}
              label={`${safeText(figure.name)}: ${trend.values.map((value) => formatQuantity(value, figure.unit)).join(', ')}; this is number ${trend.index + 1}`}
            />{' '}
            {trend.change !== null && formatSigned(trend.change, 'ratio', 2)}
          </span>
        )}
      </td>
      <td data-head="Kind">{listed.kind}</td>
      <td data-head="Started (UTC)">{listed.started_at?.slice(0, 16).replace('T', ' ')}</td>
      <td class="number" data-head="Size">
        {listed.bytes === null ? '' : formatBytes(listed.bytes)}
      </td>
    </tr>
  );
};

const dtypeOf = (workload: Program['workload'] | undefined): string => {
  const dtype = workload?.model?.dtype ?? 'unknown';
  return dtype === 'unknown' ? '' : dtype;
};

const width = 72;
const height = 20;

/** A sparkline from zero up, so that a small change looks small. */
const Sparkline: FC<{ values: readonly number[]; index: number; label: string }> = ({
  values,
  index: current,
  label,
}) => {
  const max = Math.max(...values);
  const place = (index: number): [x: number, y: number] => [
    3 + ((width - 6) * index) / (values.length - 1),
    height - 3 - (max > 0 ? ((height - 6) * values[index]!) / max : 0),
  ];
  const [x, y] = place(current);
  return (
    <svg class="sparkline" width={width} height={height} role="img" aria-label={label}>
      <title>{label}</title>
      <polyline points={values.map((_, index) => place(index).join(',')).join(' ')} />
      <circle cx={x} cy={y} r="2.5" />
    </svg>
  );
};
