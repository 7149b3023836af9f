import type { FC } from 'hono/jsx';
import type { VerifyResult } from '../../../model/documents/explain.js';
import { stageNames } from '../../explain-rows.js';
import { formatMs, formatPercent, noValue } from '../../format.js';
import { errorWords, insideWords, outcomeWords, scoreSentence } from '../../verify-words.js';
import { DataTable, FigureText } from '../parts.js';
import type { ExplainPart } from './explain.js';

type Change = VerifyResult['changes'][number];
type Stage = VerifyResult['stages'][number];

/** Bars that changed by less of the stage are not shown. */
const leastShare = 0.01;

/** Expected beside achieved for every change, and the score; for the top of a page of the session before. */
export const verifyPart = (data: VerifyResult): ExplainPart => ({
  id: 'verify',
  title: 'Expected beside achieved',
  body: <Verify data={data} />,
});

const Verify: FC<{ data: VerifyResult }> = ({ data }) => {
  const { changes, stages } = data;
  const score = scoreSentence(data);
  const longest = Math.max(
    0,
    ...changes.flatMap(({ high_ms: high, achieved_ms: ms }) => [high ?? 0, ms ?? 0]),
  );
  return (
    <>
      <p>
        What the findings of <strong>{nameOf(data.before)}</strong> promised, and what{' '}
        <strong>{nameOf(data.after)}</strong>, with changes made, shows of it.
      </p>
      {score !== null && (
        <p>
          <strong>{score}</strong>
        </p>
      )}
      {changes.length === 0 ? (
        <p>Neither session has a finding.</p>
      ) : (
        <>
          <DataTable
            caption="Gains of a mean instance: the bar is the interval that was promised, the line in it the expectation, the dot what was achieved"
            columns={[
              { head: 'finding', wraps: true },
              { head: 'now' },
              { head: 'expected', numeric: true },
              { head: 'achieved', numeric: true },
              { head: 'error', numeric: true },
              { head: 'in interval' },
            ]}
            rows={changes.map((one) => [
              <>
                <span title={one.finding}>{one.title}</span>
                <Gain change={one} longest={longest} />
              </>,
              outcomeWords[one.outcome],
              one.expected_ms === null
                ? noValue
                : `${formatMs(one.expected_ms)}${one.low_ms === null || one.high_ms === null ? '' : ` (${formatMs(one.low_ms)} to ${formatMs(one.high_ms)})`}`,
              one.achieved_ms === null ? noValue : formatMs(one.achieved_ms),
              errorWords(one),
              insideWords(one),
            ])}
          />
          <ul class="notes">
            {changes.map(({ title, text }) => (
              <li>
                {title}: {text}
              </li>
            ))}
          </ul>
        </>
      )}
      {stages.map((stage) => (
        <StageBars stage={stage} />
      ))}
    </>
  );
};

const nameOf = ({ name, id }: VerifyResult['before']): string => name ?? id;

const drawn = { width: 160, height: 16, edge: 5 };

/** Interval, expectation and achievement on one scale for all rows; shapes, not colours, tell them apart. */
const Gain: FC<{ change: Change; longest: number }> = ({ change, longest }) => {
  const { low_ms: low, high_ms: high, expected_ms: expected, achieved_ms: achieved } = change;
  if (low === null || high === null || expected === null || longest <= 0) return null;
  const { width, height, edge } = drawn;
  const x = (ms: number) => Math.round(10 * (edge + (Math.max(0, ms) / longest) * (width - 2 * edge))) / 10;
  const middle = height / 2;
  const words = `${formatMs(expected)} expected, ${formatMs(low)} to ${formatMs(high)}; ${achieved === null ? 'not graded' : `${formatMs(achieved)} achieved`}`;
  return (
    <svg
      class="gain"
      role="img"
      aria-label={words}
      width={String(width)}
      height={String(height)}
      viewBox={`0 0 ${width} ${height}`}
    >
      <line
        class="axis"
        x1={String(edge)}
        x2={String(width - edge)}
        y1={String(middle)}
        y2={String(middle)}
      />
      <rect
        class="interval"
        x={String(x(low))}
        y="4"
        width={String(Math.max(1, x(high) - x(low)))}
        height={String(height - 8)}
      />
      <line
        class="expected"
        x1={String(x(expected))}
        x2={String(x(expected))}
        y1="1"
        y2={String(height - 1)}
      />
      {achieved !== null && <circle class="achieved" cx={String(x(achieved))} cy={String(middle)} r="4" />}
    </svg>
  );
};

const StageBars: FC<{ stage: Stage }> = ({ stage }) => {
  const { kind, point, before_ms: before, after_ms: after, graded_on, graded_why, achieved_ms } = stage;
  const whole = Math.max(before.value ?? 0, after.value ?? 0);
  const bars = stage.bars.filter((bar) => Math.abs(bar.before_ms - bar.after_ms) >= leastShare * whole);
  const name = `${stageNames[kind] ?? kind}${point === null ? '' : ` at ${point}`}`;
  const from = before.value ?? 0;
  return (
    <div>
      <h3>
        {name.charAt(0).toUpperCase() + name.slice(1)}: <FigureText figure={before} /> →{' '}
        <FigureText figure={after} />
        {from > 0 && `, ${formatPercent(-achieved_ms / from)}`}
      </h3>
      <p>
        Graded on {graded_on === 'wall' ? 'W' : 'GPU time'}: {graded_why}.
      </p>
      {bars.length > 0 && (
        <DataTable
          caption="Bars of the waterfall that changed, of a mean instance"
          columns={[
            { head: 'bar' },
            { head: 'before', numeric: true },
            { head: 'after', numeric: true },
            { head: 'change', numeric: true },
          ]}
          rows={bars.map(({ id, before_ms: was, after_ms: is }) => [
            <code>{id}</code>,
            formatMs(was),
            formatMs(is),
            formatMs(is - was),
          ])}
        />
      )}
    </div>
  );
};
