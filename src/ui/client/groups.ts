import { plural } from '../../vocabulary/format.js';
import type { Scene } from './scene.js';

/** What the keys of a timeline's groups act on. */
interface GroupTarget {
  /** The scrolling element: the keys work while it has the keyboard focus. */
  box: HTMLElement;
  scene: Scene;
  /** Collapses or expands the rows of a group. */
  toggle: (key: string) => void;
  redraw: () => void;
  /** Reports the chosen group below the timeline, which screen readers read. */
  report: (text: string) => void;
}

/** Up and Down choose a group of rows, Enter or Space collapses or expands it. Elsewhere on the page these keys keep their meaning. */
export function bindGroupKeys({ box, scene, toggle, redraw, report }: GroupTarget): void {
  const choose = (step: number): void => {
    const { heads } = scene.layout;
    const index = heads.findIndex(({ key }) => key === scene.head);
    const chosen = heads[index === -1 ? (step > 0 ? 0 : heads.length - 1) : index + step];
    if (chosen) scene.head = chosen.key;
    show();
  };
  const show = (): void => {
    const head = scene.layout.heads.find(({ key }) => key === scene.head);
    if (!head) return;
    const { top, label, hidden } = head;
    if (top < box.scrollTop + 20 || top > box.scrollTop + box.clientHeight - 40)
      box.scrollTop = Math.max(0, top - box.clientHeight / 3);
    report(`${label}, ${hidden > 0 ? `closed: ${plural(hidden, 'lane')}` : 'open'}`);
    redraw();
  };
  const actions: Record<string, () => void> = {
    ArrowDown: () => choose(1),
    ArrowUp: () => choose(-1),
  };
  for (const key of ['Enter', ' '])
    actions[key] = () => {
      if (scene.head === null) return choose(1);
      toggle(scene.head);
      show();
    };
  box.addEventListener('keydown', (key) => {
    const action = actions[key.key];
    if (!action || key.ctrlKey || key.metaKey || key.altKey || key.shiftKey) return;
    key.preventDefault();
    action();
  });
  box.addEventListener('blur', () => {
    if (scene.head === null) return;
    scene.head = null;
    report('');
    redraw();
  });
}
