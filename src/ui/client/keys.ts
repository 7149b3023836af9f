import { byId } from './panel.js';

/** Buttons that have a key. */
const buttons = [
  ['fit', 'f'],
  ['zoom-in', 'w'],
  ['zoom-out', 's'],
  ['measure', 'm'],
] as const;

/** @param done called after each action */
export function keys(
  pressed: HTMLElement | Window,
  done: () => void,
  actions: Readonly<Record<string, () => void>>,
): void {
  pressed.addEventListener('keydown', (event) => {
    const key = event as KeyboardEvent;
    const isTyped = key.target instanceof HTMLInputElement || key.target instanceof HTMLSelectElement;
    if (key.ctrlKey || key.metaKey || key.altKey || isTyped) return;
    const action = actions[key.key];
    if (!action) return;
    key.preventDefault();
    action();
    done();
  });
  for (const [id, key] of buttons)
    byId(id).addEventListener('click', () => {
      actions[key]!();
      done();
    });
}
