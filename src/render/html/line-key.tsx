import type { FC } from 'hono/jsx';
import type { LineMark } from '../charts/lines.js';
import { themes, type Theme } from '../palette.js';

interface Entry extends LineMark {
  name: string;
}

const dashArrays = { solid: '', dashed: '5 3', dotted: '2 2' } as const;

const Symbol: FC<{ symbol: string; color: string }> = ({ symbol, color }) => {
  if (symbol === 'rect') return <rect x="10" y="2" width="8" height="8" fill={color} />;
  if (symbol === 'triangle') return <path d="M14 1 L19 10 L9 10 Z" fill={color} />;
  if (symbol === 'diamond') return <path d="M14 0.5 L19.5 6 L14 11.5 L8.5 6 Z" fill={color} />;
  return <circle cx="14" cy="6" r="4.5" fill={color} />;
};

/** Names of a chart's lines, each with its colour, symbol and dash. */
export const LineKey: FC<{ label: string; entries: Entry[] }> = ({ label, entries }) => (
  <ul class="legend" aria-label={label}>
    {entries.map(({ name, color, symbol, dash }) => (
      <li>
        <svg width="28" height="12" viewBox="0 0 28 12" aria-hidden="true" class="line-key">
          <path d="M0 6 H28" stroke={color} stroke-width="2" stroke-dasharray={dashArrays[dash]} />
          <Symbol symbol={symbol} color={color} />
        </svg>
        {name}
      </li>
    ))}
  </ul>
);

/** Names of a chart's colours, those of the reader's theme. */
export const ColorKey: FC<{
  label: string;
  entries: (theme: Theme) => { name: string; color: string }[];
}> = ({ label, entries }) => {
  const dark = entries(themes.dark);
  return (
    <ul class="legend" aria-label={label}>
      {entries(themes.light).map(({ name, color }, index) => (
        <li>
          <span class="class-name">
            <span
              class="swatch"
              style={`background:light-dark(${color},${dark[index]?.color ?? color})`}
              aria-hidden="true"
            />
            {name}
          </span>
        </li>
      ))}
    </ul>
  );
};
