import type { FC } from 'hono/jsx';
import type { LineSymbol } from '../../vocabulary/colors.js';
import type { KeyEntry } from '../../views/chart.js';
import { cssColor } from '../palette.js';

const dashArrays = { solid: '', dashed: '5 3', dotted: '2 2' } as const;

const Mark: FC<{ symbol: LineSymbol }> = ({ symbol }) => {
  if (symbol === 'rect') return <rect x="10" y="2" width="8" height="8" fill="currentColor" />;
  if (symbol === 'triangle') return <path d="M14 1 L19 10 L9 10 Z" fill="currentColor" />;
  if (symbol === 'diamond') return <path d="M14 0.5 L19.5 6 L14 11.5 L8.5 6 Z" fill="currentColor" />;
  return <circle cx="14" cy="6" r="4.5" fill="currentColor" />;
};

/** The key of a chart in the reader's theme; lines with their symbol and dash. */
export const Key: FC<{ label: string; entries: readonly KeyEntry[] }> = ({ label, entries }) =>
  entries.length === 0 ? null : (
    <ul class="legend" aria-label={label}>
      {entries.map(({ name, color, symbol, dash }) => (
        <li>
          {symbol || dash ? (
            <svg
              width="28"
              height="12"
              viewBox="0 0 28 12"
              aria-hidden="true"
              class="line-key"
              style={`color:${cssColor(color)}`}
            >
              <path
                d="M0 6 H28"
                stroke="currentColor"
                stroke-width="2"
                stroke-dasharray={dashArrays[dash ?? 'solid']}
              />
              {symbol && <Mark symbol={symbol} />}
            </svg>
          ) : (
            <span class="swatch" style={`background:${cssColor(color)}`} aria-hidden="true" />
          )}
          {name}
        </li>
      ))}
    </ul>
  );
