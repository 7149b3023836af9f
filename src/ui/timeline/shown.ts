/** What the server sends to a timeline page. Times in ns; those of events are relative to `zero`. */
export interface TimelineData {
  /** Start of the first event, ns since the session's start. */
  zero: number;
  span: number;
  /** The table that is being loaded; null after all are. */
  reading: string | null;
  /** From top to bottom of the page. */
  tables: string[];
  classes: Record<string, { id: string; label: string; color: string }[]>;
  tracks: TrackData[];
  /** Labels of names that the page does not have yet. */
  labels: string[];
}

export interface TrackData {
  table: string;
  label: string;
  /** For a narrow column of names: what distinguishes the track is not cut. */
  short: string;
  rank: number | null;
  pid: number | null;
  tid: number | null;
  device: number | null;
  stream: string | null;
  /** Numbers of the classes that occur. */
  classes: number[];
  firstLane: number;
  lanes: number;
}

/** An event by the number of its lane in the timeline and its index in the lane. */
export interface Place {
  lane: number;
  index: number;
}

export interface Match extends Place {
  start: number;
  end: number;
}

/** Search result: number of matches and those around a time. */
export interface SearchResult {
  count: number;
  next: Match | null;
  previous: Match | null;
}

/** Details of one event. */
export interface EventDetails {
  table: string;
  title: string;
  /** ns since the start of the timeline. */
  start: number;
  end: number;
  /** Columns of the event's row with their meaning, longest texts last. */
  facts: { name: string; text: string; meaning: string }[];
  /** Key of its bars and findings in `EventLinks`; null if it is in none. */
  explained: string | null;
  /** The page with all events of this name; null if there is none. */
  named: { page: 'kernels' | 'operators'; name: string } | null;
  /** The API call that launched the event, or what it launched. */
  launch: { place: Place; start: number; end: number; text: string } | null;
}

/** Links to the bars and findings with the time of an event, by `EventDetails.explained`. */
export type EventLinks = Readonly<Record<string, readonly { text: string; link: string }[]>>;

/** Events in a selected time range, summed by class and by name; only the part of an event inside the range counts. */
export interface Selection {
  groups: {
    /** Id of a table on one rank and device. */
    id: string;
    table: string;
    /** Null if the timeline has only one rank. */
    rank: number | null;
    label: string;
    total_ns: number;
    classes: { id: string; ns: number; text: string; share: string }[];
    names: {
      name: string;
      label: string;
      id: string;
      count: number;
      ns: number;
      text: string;
      share: string;
    }[];
    /** Sum of the names that are not listed; null if all are. */
    others: { names: number; count: number; text: string; share: string } | null;
    all: { count: number; text: string; share: string };
  }[];
}

/** Which events of a selection to list; times in ns since the start of the timeline. */
export interface EventsRequest {
  start: number;
  end: number;
  /** Id of a group of the selection. */
  group: string;
  /** Full name; null: events of all names. */
  name: string | null;
  /** time: longest part first; start: earliest first. */
  sort: 'time' | 'start';
  /** Page number from 1. */
  page: number;
}

/** A page of the events of a selection, with sums over all pages. */
export interface SelectedEvents {
  label: string;
  count: number;
  /** Sum of the parts inside the selection. */
  total_ns: number;
  text: string;
  page: number;
  pages: number;
  /** `ns` and `text`: duration of the part inside the selection. */
  rows: (Match & { label: string; ns: number; duration: string; text: string })[];
}

/** A time range, ns. */
export interface Span {
  start: number;
  end: number;
}

/** Stages of one kind to step through; times in ns since the start of the timeline. */
export interface Steps {
  kind: string;
  label: string;
  count: number;
  /** In time order; at most `maxSteps` of steps.ts. */
  list: Span[];
  median: Span;
  slowest: Span;
}

/** A sampled series; times in ns after the start of the timeline. */
export interface Counter {
  label: string;
  unit: string;
  times: number[];
  values: number[];
}
