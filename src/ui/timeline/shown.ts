/** What the server sends to a page of a timeline; times in ns, those of events after `zero`. */
export interface TimelineShown {
  /** Start of the first event, ns since the session's start. */
  zero: number;
  span: number;
  /** The table that is being read; null when all is there. */
  reading: string | null;
  /** From the top of the page to its bottom. */
  tables: string[];
  classes: Record<string, { id: string; label: string; colour: string }[]>;
  tracks: TrackShown[];
  /** Those after the ones that the page has. */
  names: string[];
}

export interface TrackShown {
  table: string;
  label: string;
  rank: number | null;
  pid: number | null;
  tid: number | null;
  device: number | null;
  stream: string | null;
  /** Numbers of those that occur. */
  classes: number[];
  firstLane: number;
  lanes: number;
}

/** An event by its lane's number in the timeline and its index in the lane. */
export interface Place {
  lane: number;
  index: number;
}

export interface Match extends Place {
  start: number;
  end: number;
}

/** Events of a name: how many, and those around a time. */
export interface Found {
  count: number;
  next: Match | null;
  previous: Match | null;
}

/** What a page shows of one event. */
export interface EventDetails {
  table: string;
  title: string;
  /** ns since the start of the timeline. */
  start: number;
  end: number;
  /** Columns of its row with what they mean; the longest texts last. */
  facts: { name: string; text: string; meaning: string }[];
  /** The page that has all events of its name; null where no page has. */
  named: { page: 'kernels' | 'operators'; name: string } | null;
  /** The call that launched it, or what it launched. */
  launch: { place: Place; start: number; end: number; says: string } | null;
}

/** What ran in a selected time, summed by class and by name: parts of events that lie in it count, no others. */
export interface Selection {
  groups: {
    /** Names a table on one rank and device. */
    id: string;
    table: string;
    label: string;
    total_ns: number;
    classes: { id: string; ns: number; share: string }[];
    names: { name: string; id: string; count: number; ns: number; text: string; share: string }[];
    /** What is not among the names; null where all are. */
    others: { names: number; count: number; text: string; share: string } | null;
    all: { count: number; text: string; share: string };
  }[];
}

/** Which events of a selection are listed; times in ns since the start of the timeline. */
export interface EventsAsked {
  start: number;
  end: number;
  /** Id of a group of the selection. */
  group: string;
  /** null: events of all names. */
  name: string | null;
  /** The longest parts first, or the earliest events. */
  sort: 'time' | 'start';
  /** From 1. */
  page: number;
}

/** A page of the events of a selection, and sums over all pages. */
export interface SelectedEvents {
  label: string;
  count: number;
  /** Sum of the parts inside the selection. */
  total_ns: number;
  text: string;
  page: number;
  pages: number;
  /** `ns` and `text`: the part inside the selection. */
  rows: (Match & { name: string; ns: number; duration: string; text: string })[];
}

/** A time, in ns. */
export interface Span {
  start: number;
  end: number;
}

/** Stages of a kind to step through; times in ns since the start of the timeline. */
export interface Steps {
  kind: string;
  label: string;
  count: number;
  /** By their order in time; at most `stepsListed`. */
  list: Span[];
  median: Span;
  slowest: Span;
}

/** A sampled series; times in ns after the start of the timeline. */
export interface Counter {
  label: string;
  unit: string;
  t: number[];
  v: number[];
}
