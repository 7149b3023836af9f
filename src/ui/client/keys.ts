import { byId } from './panel.js';

/** Buttons that have a key. */
const buttons = [
  ['fit', 'f'],
  ['zoom-in', 'w'],
  ['zoom-out', 's'],
  ['measure', 'm'],
] as const;

/** Runs an action when its key or button is pressed. @param done called after each action */
export function bindKeys(
  target: HTMLElement | Window,
  done: () => void,
  actions: Readonly<Record<string, () => void>>,
): void {
  target.addEventListener('keydown', (event) => {
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
