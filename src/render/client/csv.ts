import type { HeatChart } from '../../views/chart.js';
import { csvField } from '../../model/csv-field.js';

/** A header and a CSV row per cell of a heat map: its position and number, empty if not measured. */
export function heatCsv({ x, y, cells }: HeatChart): string {
  const unit = cells.map(({ lines: [first] }) => numberOf(first)?.unit).find((found) => found !== undefined);
  const rows = cells.map((cell) => [
    y.values[cell.y] ?? '',
    x.values[cell.x] ?? '',
    numberOf(cell.lines[0])?.n,
  ]);
  const line = (fields: readonly unknown[]): string => fields.map(csvField).join(',');
  return [[y.name, x.name, unit ?? 'value'], ...rows].map((row) => `${line(row)}\r\n`).join('');
}

function numberOf(text: unknown): { n: number; unit: string } | undefined {
  return typeof text === 'object' && text !== null && 'n' in text
    ? (text as { n: number; unit: string })
    : undefined;
}

/** Button that saves the numbers of a heat map. */
export function csvButton(document: Document, chart: HeatChart): HTMLElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'save';
  button.textContent = 'Save as CSV';
  button.addEventListener('click', () => {
    const url = URL.createObjectURL(new Blob([heatCsv(chart)], { type: 'text/csv' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'inferscope.csv';
    link.click();
    URL.revokeObjectURL(url);
  });
  return button;
}
