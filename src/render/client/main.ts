// First: findings are open before charts are drawn for paper.
import './reading.js';
import { currentTheme, draw, type Drawing } from './drawing.js';

const root = document.documentElement;

function drawAll(): void {
  const drawings: Drawing[] = [];
  let printing = false;
  const redraw = (): void => {
    const theme = currentTheme(printing);
    for (const drawing of drawings) drawing.redraw(theme, printing);
  };

  for (const box of document.querySelectorAll<HTMLElement>('[data-chart]')) {
    drawings.push(draw(box, currentTheme(printing)));
  }
  root.dataset['charts'] = 'drawn';

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

  // Paper is light and narrower than the window: charts are drawn for it before the page is laid out on it.
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
