import type { Scene } from './scene.js';
import { element } from './panel.js';

/** Colors of the page in the light or dark theme. */
export function themeOf(): Scene['theme'] {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: color('ink'),
    muted: color('muted'),
    line: color('line'),
    surface: color('surface'),
    raised: color('raised'),
    link: color('link'),
  };
}

/** A CSS color as a canvas accepts it, resolved for the current theme. */
export function resolveColor(color: string): string {
  if (color.startsWith('#')) return color;
  const probe = element('span', { style: `color:${color}` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
