import type { EChartsType } from 'echarts/core';

interface Range {
  start: number;
  end: number;
}

/** Next zoom range, percent of the axis, after a key; null for keys that are not ours. */
function zoomed({ start, end }: Range, key: string): Range | null {
  const span = end - start;
  const clamped = (from: number, size: number): Range => {
    const width = Math.min(100, Math.max(0.1, size));
    const left = Math.min(100 - width, Math.max(0, from));
    return { start: left, end: left + width };
  };
  switch (key) {
    case '+':
    case '=':
      return clamped(start + span / 4, span / 2);
    case '-':
      return clamped(start - span / 2, span * 2);
    case 'ArrowLeft':
      return clamped(start - span / 4, span);
    case 'ArrowRight':
      return clamped(start + span / 4, span);
    case '0':
    case 'Home':
      return { start: 0, end: 100 };
    default:
      return null;
  }
}

/** + − ← → 0 on the focused chart zoom and move its x axis. */
export function zoomByKeys(box: HTMLElement, chart: EChartsType): void {
  box.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [zoom] = (chart.getOption()['dataZoom'] ?? []) as Range[];
    const next = zoom && zoomed(zoom, event.key);
    if (!next) return;
    event.preventDefault();
    chart.dispatchAction({ type: 'dataZoom', ...next });
  });
}
