import type { EChartsOption } from 'echarts';
import type { Chart } from '../../views/chart.js';
import { optionOf, rendererOf, zooms } from '../charts/option.js';
import { themes, type Theme } from '../palette.js';
import { waterfallLink } from '../charts/waterfall.js';
import { csvButton } from './csv.js';
import { init } from './echarts.js';
import { zoomByKeys } from './zoom.js';

export interface Drawing {
  /** Draws again in another theme or after the box was resized; for paper it completes before it returns. */
  redraw: (theme: Theme, forPaper: boolean) => void;
}

export function currentTheme(printing: boolean): Theme {
  const dark = !printing && matchMedia('(prefers-color-scheme: dark)').matches;
  return dark ? themes.dark : themes.light;
}

/** Draws all shapes at once: thousands of shapes are otherwise drawn over several frames, and the page is printed before the next one. */
function atOnce(option: EChartsOption): EChartsOption {
  return {
    ...option,
    series: [option.series ?? []].flat().map((series) => ({ ...series, progressive: 0 })),
  } as EChartsOption;
}

/** The link of a bar or point; lines of a roofline have none. */
function linkOf(chart: Chart, index: number): string | undefined {
  if (chart.form === 'waterfall') return waterfallLink(chart, index);
  return chart.form === 'roofline' ? chart.points[index]?.link : undefined;
}

/** Draws a chart from the data in the element after its box; for paper it completes before it returns. */
export function draw(box: HTMLElement, theme: Theme, forPaper: boolean): Drawing {
  const chart = JSON.parse(box.nextElementSibling?.textContent ?? '') as Chart;
  const canvas = box.ownerDocument.createElement('div');
  canvas.className = 'canvas';
  box.replaceChildren(canvas);
  const drawn = init(canvas, null, { renderer: rendererOf(chart) });
  if (chart.form === 'heat') box.nextElementSibling?.after(csvButton(box.ownerDocument, chart));
  const show = (shownTheme: Theme, onPaper: boolean): void => {
    const option = optionOf(chart, { theme: shownTheme, width: box.clientWidth });
    drawn.setOption(onPaper ? atOnce(option) : option, { notMerge: true });
    if (onPaper) drawn.getZr().flush();
  };
  show(theme, forPaper);
  if (zooms(chart)) zoomByKeys(box, drawn);
  drawn.on('click', ({ dataIndex }) => {
    const link = linkOf(chart, dataIndex);
    if (link !== undefined) location.assign(link);
  });
  return {
    redraw: (newTheme, onPaper) => {
      drawn.resize();
      show(newTheme, onPaper);
    },
  };
}
