import type { EChartsOption } from 'echarts';
import type { Chart, KeyEntry } from '../../views/chart.js';
import { barsHeight, barsOption } from './bars.js';
import type { Frame } from './chart.js';
import { heatHeight, heatOption } from './heat.js';
import { linesHeight, linesOption } from './lines.js';
import { rooflineOption } from './roofline.js';
import { spreadHeight, spreadOption } from './spread.js';
import { maxSvgSpans, timelineHeight, timelineOption } from './timeline.js';
import { waterfallHeight, waterfallOption } from './waterfall.js';

/** Converts a chart of a view to ECharts options; the only place that does. */
export function optionOf(chart: Chart, frame: Frame): EChartsOption {
  switch (chart.form) {
    case 'lines':
      return linesOption(chart, frame);
    case 'bars':
      return barsOption(chart, frame);
    case 'waterfall':
      return waterfallOption(chart, frame);
    case 'spread':
      return spreadOption(chart, frame);
    case 'heat':
      return heatOption(chart, frame);
    case 'roofline':
      return rooflineOption(chart, frame);
    case 'timeline':
      return timelineOption(chart, frame);
  }
}

/** Height of the box, CSS pixels. */
export function heightOf(chart: Chart): number {
  switch (chart.form) {
    case 'lines':
      return linesHeight(chart);
    case 'bars':
      return barsHeight(chart);
    case 'waterfall':
      return waterfallHeight(chart);
    case 'spread':
      return spreadHeight(chart);
    case 'heat':
      return heatHeight(chart);
    case 'roofline':
      return 420;
    case 'timeline':
      return timelineHeight(chart);
  }
}

/** SVG by default; a canvas for thousands of shapes. */
export const rendererOf = (chart: Chart): 'svg' | 'canvas' =>
  chart.form === 'timeline' && chart.spans.length > maxSvgSpans ? 'canvas' : 'svg';

/** Whether the x axis zooms: by slider, Ctrl + wheel, and keys on the focused chart. */
export const zooms = ({ form }: Chart): boolean => form === 'timeline';

/** Entries of the chart's key, if it has no labels; each color once. */
export function keyOf(chart: Chart): KeyEntry[] {
  const byColor = new Map<string, KeyEntry>();
  for (const { name, color, symbol, dash } of entriesOf(chart)) {
    const id = `${color} ${symbol ?? ''} ${dash ?? ''}`;
    const known = byColor.get(id);
    const names = known && known.name !== name ? `${known.name}, ${name}` : name;
    byColor.set(id, { name: names, color, ...(symbol && { symbol }), ...(dash && { dash }) });
  }
  return [...byColor.values()];
}

function entriesOf(chart: Chart): readonly KeyEntry[] {
  switch (chart.form) {
    case 'lines': {
      const [first, ...otherPanels] = chart.panels;
      const named = first?.series.filter(({ style }) => style !== 'guide') ?? [];
      const shades = new Map(chart.shades?.map(({ name, color }) => [name, color]));
      const colored = [...shades].flatMap(([name, color]) => (color ? [{ name, color }] : []));
      return [
        ...(otherPanels.length === 0 && first?.title === undefined && named.length + colored.length > 1
          ? named
          : []),
        ...colored,
      ];
    }
    case 'bars':
      return chart.series.length > 1 || chart.kind === 'shares'
        ? chart.series.filter(({ values }) => values.some(Boolean))
        : [];
    case 'roofline':
      return chart.points
        .flatMap(({ group, color }) => (group === null ? [] : [{ name: group, color }]))
        .filter(({ name }, index, all) => all.findIndex((entry) => entry.name === name) === index);
    case 'spread':
    case 'timeline':
      return chart.key;
    case 'heat':
      return (chart.shades ?? []).map(({ name, shade }) => ({ name, color: `shade ${shade}` }));
    case 'waterfall':
      return [];
  }
}
