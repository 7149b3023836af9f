// Must be first: findings are opened before charts are drawn for paper.
import './reading.js';
import { currentTheme, draw, type Drawing } from './drawing.js';

const root = document.documentElement;

/** Charts nearer to the window than this share of its height are drawn at once; the same as an observer takes it. */
const margin = 0.5;
const rootMargin = '50% 0px';

/** Whether a box has a place on the page: a box in closed details has no width. */
const isShown = ({ clientWidth }: HTMLElement): boolean => clientWidth > 0;

function isNear(box: HTMLElement): boolean {
  const { top, bottom } = box.getBoundingClientRect();
  return isShown(box) && top < (1 + margin) * innerHeight && bottom > -margin * innerHeight;
}

const whenIdle = (act: () => void): void => {
  // Safari has no requestIdleCallback.
  if ('requestIdleCallback' in globalThis) requestIdleCallback(act);
  else setTimeout(act);
};

/**
 * Draws the charts in and near the window at once. The others are drawn when they come near, or one by one while the browser is idle: a
 * search in the page finds their words. Charts in closed details are drawn when these are opened.
 */
function drawCharts(): void {
  const drawings = new Map<HTMLElement, Drawing>();
  const due = new Set<HTMLElement>();
  let printing = false;
  let drawsWhenIdle = false;

  const drawNow = (box: HTMLElement): void => {
    due.delete(box);
    nearby.unobserve(box);
    const theme = currentTheme(printing);
    const drawing = drawings.get(box);
    if (drawing) drawing.redraw(theme, printing);
    else drawings.set(box, draw(box, theme, printing));
  };
  const nearby = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        if (isIntersecting && due.has(target as HTMLElement)) drawNow(target as HTMLElement);
    },
    { rootMargin },
  );
  const drawNext = (): void => {
    const box = [...due].find(isShown);
    drawsWhenIdle = box !== undefined;
    if (box === undefined) {
      root.dataset['charts'] = 'drawn';
      return;
    }
    drawNow(box);
    whenIdle(drawNext);
  };
  const update = (boxes: Iterable<HTMLElement>): void => {
    for (const box of boxes) due.add(box);
    for (const box of [...due].filter(printing ? isShown : isNear)) drawNow(box);
    for (const box of due) nearby.observe(box);
    root.dataset['charts'] = 'drawing';
    if (!drawsWhenIdle) whenIdle(drawNext);
    drawsWhenIdle = true;
  };
  const updateAll = (): void => update(drawings.keys());
  const updateNew = (): void => {
    for (const known of [drawings, due])
      for (const box of known.keys()) if (!box.isConnected) known.delete(box);
    const boxes = [...document.querySelectorAll<HTMLElement>('[data-chart]')];
    update(boxes.filter((box) => !drawings.has(box)));
  };
  updateNew();
  document.addEventListener('charts-added', updateNew);

  let width = root.clientWidth;
  let waiting = 0;
  addEventListener('resize', () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      updateAll();
    });
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', updateAll);

  // Paper is light and narrower than the window, so charts are drawn for it before printing.
  const print = (on: boolean): void => {
    if (printing === on) return;
    printing = on;
    root.classList.toggle('printing', on);
    updateAll();
  };
  matchMedia('print').addEventListener('change', ({ matches }) => print(matches));
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
}

drawCharts();
