import type {
  Counter,
  EventDetails,
  EventLinks,
  EventsRequest,
  SearchResult,
  Place,
  Selection,
  SelectedEvents,
  Steps,
  TimelineData,
} from '../timeline/shown.js';
import { decodeRecords, type LaneRecord } from '../timeline/tile-format.js';
import { fetchBytes, fetchJson } from './fetch.js';

/** Where a page gets its timeline data: a server or the exported file itself. Times are ns after the start of the timeline. */
export interface TimelineSource {
  /** @param labels number of labels that the page has already */
  timeline(labels: number): Promise<TimelineData>;
  counters(): Promise<Counter[]>;
  steps(): Promise<Steps[]>;
  tile(level: number, tile: number): Promise<LaneRecord[]>;
  /** null if there is no such event */
  event(place: Place): Promise<EventDetails | null>;
  /** Links from events back to bars and findings; empty without an explanation. */
  links(): Promise<EventLinks>;
  selection(start: number, end: number): Promise<Selection>;
  /** One page of the single events of a selection. */
  selected(request: EventsRequest): Promise<SelectedEvents>;
  find(text: string, fromNs: number): Promise<SearchResult>;
  /** The state of the page, stored in its URL. */
  address: {
    read(): URLSearchParams;
    write(state: URLSearchParams): void;
    /** Calls `show` when a link on the page changed the state. */
    follow(show: () => void): void;
  };
  /** Link to the page with all events of a name; missing in exported files, which have no such pages. */
  pageOf?(named: NonNullable<EventDetails['named']>): string;
  /** Receives the key presses that control the timeline. */
  keys: HTMLElement | Window;
  /** Shown below the timeline after loading; empty if nothing is missing. */
  note: string;
}

/** @param api path of the API of a session's timelines */
export function servedSource(api: string, execution: string): TimelineSource {
  const path = (part: string, query: Record<string, string | number> = {}): string =>
    `${api}/${part}?${new URLSearchParams({ execution, ...query } as Record<string, string>)}`;
  let links: Promise<EventLinks> | undefined;
  return {
    timeline: (labels) => fetchJson(path('timeline', { labels })),
    counters: () => fetchJson(path('counters')),
    steps: () => fetchJson(path('steps')),
    tile: async (level, tile) => decodeRecords(await fetchBytes(path('tiles', { level, tile }))),
    event: ({ lane, index }) => fetchJson(path('event', { lane, index })),
    links: () => (links ??= fetchJson<EventLinks>(path('links'))),
    selection: (start, end) => fetchJson(path('selection', { start, end })),
    selected: ({ name, ...request }) =>
      fetchJson(path('selected', { ...request, ...(name === null ? {} : { name }) })),
    find: (q, fromNs) => fetchJson(path('search', { q, at: fromNs })),
    address: {
      read: () => new URLSearchParams(location.search),
      // Links to another state load the page again.
      follow: () => {},
      write: (state) => {
        const query = new URLSearchParams([['execution', execution], ...state]);
        history.replaceState(null, '', `?${query}`);
        document.querySelector('#save')?.setAttribute('href', `${api}/file?${query}`);
      },
    },
    pageOf: ({ page, name }) => `${api.replace(/api$/, page)}?${new URLSearchParams({ name })}#chosen`,
    keys: window,
    note: '',
  };
}
