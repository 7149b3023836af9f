import { safeText } from '../../render/safe-text.js';
import type { EventDetails } from '../timeline/shown.js';

/** An element that every timeline page has. */
export const byId = <T extends HTMLElement>(id: string): T => document.querySelector<T>(`#${id}`)!;

/** Creates an element with text or child elements. Text is never parsed as HTML, and is isolated from bidirectional marks in it. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (typeof child === 'string' ? safeText(child) : child)));
  return made;
}

/**
 * The panel with the details of one event.
 * @param page link to all events of the same name
 * @param follow goes to the launch of a kernel, or to the kernel of a launch
 */
export function eventPanel(
  details: EventDetails,
  times: string,
  page: string | undefined,
  follow: () => void,
): Node[] {
  const facts = element('dl', { class: 'facts' });
  for (const { name, text, meaning } of details.facts)
    facts.append(element('div', {}, element('dt', { title: meaning }, name), element('dd', {}, text)));
  const launch = details.launch;
  const button = element('button', { type: 'button' }, launch?.text ?? '');
  button.addEventListener('click', follow);
  return [
    element('h2', {}, details.title),
    element(
      'p',
      {},
      times,
      ...(launch ? [' · ', button] : []),
      ...(page === undefined
        ? []
        : [
            ' · ',
            element(
              'a',
              { href: page },
              details.table === 'kernels' ? 'all of this name, roofline' : 'all calls',
            ),
          ]),
    ),
    facts,
  ];
}
