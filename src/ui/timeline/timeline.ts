import type { Lane } from './lane.js';

/** What a track shows, from the top of a page to its bottom; `table` is where its events are recorded. */
export const trackTables = ['stages', 'ops', 'api_calls', 'gaps', 'kernels', 'copies'] as const;
export type TrackTable = (typeof trackTables)[number];

/** Events of one thread, one stream or the idle time of one device. */
export interface Track {
  table: TrackTable;
  rank: number | null;
  host: string | null;
  /** Of a thread of the host; null for a device. */
  pid: number | null;
  tid: number | null;
  /** Of a device; null for a thread. */
  device: number | null;
  stream: string | null;
  /** Numbers of the classes that occur. */
  classes: Set<number>;
  lanes: Lane[];
}

/** The events of one execution, in memory. */
export interface Timeline {
  execution: string;
  /** Of the first event and of the end of the last one, ns since the session's start. */
  from: number;
  to: number;
  /** In the order in which they were read. */
  tracks: Track[];
  /** Names of the events, by number. */
  names: string[];
  /** The table that is being read; null when all are there. */
  reading: TrackTable | null;
}
