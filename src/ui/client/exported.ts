import { eventDetails } from '../timeline/details.js';
import { decodeTimeline, embeddedRows, timelineOf } from '../timeline/embedded.js';
import { recordsOf } from '../timeline/lane.js';
import { search } from '../timeline/places.js';
import { selectedEvents, selection } from '../timeline/selection.js';
import { eventsPerLane } from '../timeline/tile-format.js';
import { ServerError } from './fetch.js';
import type { TimelineSource } from './source.js';
import { redraw } from './redraw.js';
import { showTimeline } from './timeline.js';

/** Fragment prefix of links to a place in the timeline. */
const timelineFragment = '#timeline?';

/** Decodes the data of the file: base64 of gzip. */
async function unpack(text: string): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Keeps a section in view while the charts above it get their heights, until the reader does something. */
function scrollTo(section: HTMLElement): void {
  const observer = new ResizeObserver(() => section.scrollIntoView());
  observer.observe(document.body);
  for (const action of ['wheel', 'pointerdown', 'keydown', 'touchmove'])
    addEventListener(action, () => observer.disconnect(), { once: true, passive: true });
}

async function embeddedSource(section: HTMLElement): Promise<TimelineSource> {
  const stored = section.querySelector('script')!;
  const data = decodeTimeline(await unpack(stored.textContent ?? ''));
  /** The view that was saved: shown until the reader moves. */
  const saved = stored.dataset['state'] ?? '';
  if (saved !== '' && location.hash === '') scrollTo(section);
  const { shown, counters, steps, note, lanes } = data;
  const timeline = timelineOf(data);
  const classIds = Object.fromEntries(
    Object.entries(shown.classes).map(([table, classes]) => [table, classes.map(({ id }) => id)]),
  );
  const windows = lanes.find((lane) => lane.windows !== null)?.windows ?? null;
  /** Runs `answer` only inside the exported time windows: elsewhere the file has only sums by class. */
  const inside = <T>(start: number, end: number, answer: () => T): Promise<T> =>
    windows === null ||
    windows.some((span) => span.start <= shown.zero + start && span.end >= shown.zero + end)
      ? Promise.resolve(answer())
      : Promise.reject(new ServerError(`No sums here. ${note}`));
  return {
    timeline: () => Promise.resolve(shown),
    counters: () => Promise.resolve(counters),
    steps: () => Promise.resolve(steps),
    tile: (level, tile) =>
      Promise.resolve(
        lanes.flatMap((lane, number) =>
          recordsOf(lane, { number, zero: shown.zero, tile, level, maxEvents: eventsPerLane(lanes.length) }),
        ),
      ),
    links: () => Promise.resolve(data.links),
    event: (eventPlace) => eventDetails(embeddedRows(data.rows), timeline, eventPlace),
    selection: (start, end) => inside(start, end, () => selection(timeline, classIds, start, end)),
    selected: (request) =>
      inside(request.start, request.end, () => selectedEvents(timeline, classIds, request)),
    find: (text, fromNs) => Promise.resolve(search(timeline, text, fromNs)),
    address: {
      read: () =>
        new URLSearchParams(
          location.hash.startsWith(timelineFragment) ? location.hash.slice(timelineFragment.length) : saved,
        ),
      write: (state) => {
        // Does not replace the fragment of a link to another section.
        if (location.hash === '' || location.hash.startsWith(timelineFragment))
          history.replaceState(null, '', `${timelineFragment}${state}`);
      },
      follow: (show) =>
        addEventListener('hashchange', () => {
          if (!location.hash.startsWith(timelineFragment)) return;
          section.scrollIntoView();
          show();
        }),
    },
    keys: section,
    note,
  };
}

void embeddedSource(document.querySelector<HTMLElement>('#whole-timeline')!).then(showTimeline);

/** Fragment prefix of links that switch a change. */
const whatIfFragment = '#what-if=';

/** Shows the waterfalls under the what-if change in the URL. */
async function followWhatIf(): Promise<void> {
  const switches = document.querySelector<HTMLElement>('#what-ifs');
  if (!switches) return;
  const parts = JSON.parse(new TextDecoder().decode(await unpack(switches.textContent ?? ''))) as Record<
    string,
    string
  >;
  const show = (change: string): void => {
    const part = parts[change];
    if (part !== undefined) redraw(new DOMParser().parseFromString(part, 'text/html'));
  };
  const isNamed = (): boolean => location.hash.startsWith(whatIfFragment);
  const named = (): string => decodeURIComponent(location.hash.slice(whatIfFragment.length));
  addEventListener('hashchange', () => {
    if (isNamed()) show(named());
  });
  const first = isNamed() ? named() : (switches.dataset['chosen'] ?? '');
  if (first !== '') show(first);
}

void followWhatIf();
