import type { EChartsOption } from 'echarts';
import { chartNamed } from '../charts/registry.js';
import { themes, type Theme } from '../palette.js';
import { init } from './echarts.js';
import { zoomByKeys } from './zoom.js';

export interface Drawing {
  /** Draws again in another theme or after the box changed its size; for paper whole before it returns. */
  redraw: (theme: Theme, forPaper: boolean) => void;
}

export function currentTheme(printing: boolean): Theme {
  const dark = !printing && matchMedia('(prefers-color-scheme: dark)').matches;
  return dark ? themes.dark : themes.light;
}

/** Thousands of shapes are drawn over several frames otherwise, and the page is laid out on paper before the next one. */
function atOnce(option: EChartsOption): EChartsOption {
  return {
    ...option,
    series: [option.series ?? []].flat().map((one) => ({ ...one, progressive: 0 })),
  } as EChartsOption;
}

/** Draws the chart that `box` names in data-chart (and data-part) from the page's data. */
export function draw(box: HTMLElement, result: unknown, theme: Theme): Drawing | null {
  const chart = chartNamed(box.dataset['chart'] ?? '');
  if (!chart) return null;
  const canvas = box.ownerDocument.createElement('div');
  canvas.className = 'canvas';
  box.replaceChildren(canvas);
  const drawn = init(canvas, null, { renderer: chart.renderer?.(result) ?? 'svg' });
  const option = (of: Theme) =>
    chart.build({ result, part: box.dataset['part'] ?? '', theme: of, width: box.clientWidth });
  drawn.setOption(option(theme));
  if (chart.zooms) zoomByKeys(box, drawn);
  return {
    redraw: (of, forPaper) => {
      drawn.resize();
      drawn.setOption(forPaper ? atOnce(option(of)) : option(of), { notMerge: true });
      if (forPaper) drawn.getZr().flush();
    },
  };
}
