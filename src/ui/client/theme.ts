import type { Scene } from './draw.js';
import { element } from './panel.js';

/** Colors of the page in the light or dark theme. */
export function themeOf(): Scene['theme'] {
  const of = getComputedStyle(document.documentElement);
  const colour = (name: string): string => of.getPropertyValue(`--${name}`).trim();
  return {
    ink: colour('ink'),
    muted: colour('muted'),
    line: colour('line'),
    surface: colour('surface'),
    raised: colour('raised'),
    link: colour('link'),
  };
}

/** A CSS color as a canvas accepts it, resolved for the current theme. */
export function resolved(colour: string): string {
  if (colour.startsWith('#')) return colour;
  const probe = element('span', { style: `color:${colour}` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
