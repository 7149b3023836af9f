import type { FC } from 'hono/jsx';
import { formatMs } from '../../vocabulary/format.js';
import type { Value } from '../../views/block.js';

const drawn = { width: 160, height: 16, edge: 5 };

/** Interval, expected and achieved gain on one scale for all rows; distinguished by shape, not color. */
export const GainDrawing: FC<Extract<Value, { gain: unknown }>> = ({
  gain: { lowMs: low, expectedMs: expected, highMs: high, achievedMs: achieved },
  longestMs: longest,
}) => {
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
