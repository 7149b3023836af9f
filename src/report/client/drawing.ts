import { chartNamed } from '../charts/registry.js';
import { themes, type Theme } from '../palette.js';
import { init } from './echarts.js';
import { zoomByKeys } from './zoom.js';

export interface Drawing {
  /** Draws again in another theme or after the box changed its size. */
  redraw: (theme: Theme) => void;
}

export function currentTheme(printing: boolean): Theme {
  const dark = !printing && matchMedia('(prefers-color-scheme: dark)').matches;
  return dark ? themes.dark : themes.light;
}

/** Draws the chart that `box` names in data-chart (and data-part) from the page's data. */
export function draw(box: HTMLElement, result: unknown, theme: Theme): Drawing | null {
  const chart = chartNamed(box.dataset['chart'] ?? '');
  if (!chart) return null;
  const canvas = box.ownerDocument.createElement('div');
  canvas.className = 'canvas';
  box.replaceChildren(canvas);
  const drawn = init(canvas, null, { renderer: chart.renderer ?? 'svg' });
  const option = (of: Theme) =>
    chart.build({ result, part: box.dataset['part'] ?? '', theme: of, width: box.clientWidth });
  drawn.setOption(option(theme));
  if (chart.zooms) zoomByKeys(box, drawn);
  return {
    redraw: (of) => {
      drawn.resize();
      drawn.setOption(option(of), { notMerge: true });
    },
  };
}
