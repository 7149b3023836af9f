// Must be first: findings are opened before charts are drawn for paper.
import './reading.js';
import { currentTheme, draw, type Drawing } from './drawing.js';

const root = document.documentElement;

function drawAll(): void {
  const drawn = new Map<HTMLElement, Drawing>();
  let printing = false;
  const redraw = (): void => {
    const theme = currentTheme(printing);
    for (const drawing of drawn.values()) drawing.redraw(theme, printing);
  };

  const drawNew = (): void => {
    for (const box of drawn.keys()) if (!box.isConnected) drawn.delete(box);
    for (const box of document.querySelectorAll<HTMLElement>('[data-chart]'))
      if (!drawn.has(box)) drawn.set(box, draw(box, currentTheme(printing)));
  };
  drawNew();
  root.dataset['charts'] = 'drawn';
  document.addEventListener('charts-added', drawNew);

  let width = root.clientWidth;
  let waiting = 0;
  addEventListener('resize', () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      redraw();
    });
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

  // Paper is light and narrower than the window, so charts are drawn for it before printing.
  const print = (on: boolean): void => {
    if (printing === on) return;
    printing = on;
    root.classList.toggle('printing', on);
    redraw();
  };
  matchMedia('print').addEventListener('change', ({ matches }) => print(matches));
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
}

drawAll();
