import type { Lane } from './lane.js';

/** Tables shown as tracks, from top to bottom of a page. */
export const trackTables = ['stages', 'ops', 'api_calls', 'gaps', 'kernels', 'copies'] as const;
export type TrackTable = (typeof trackTables)[number];

/** Events of one thread or one stream, or the idle time of one device. */
export interface Track {
  table: TrackTable;
  rank: number | null;
  host: string | null;
  /** Process and thread of a host track; null for a device. */
  pid: number | null;
  tid: number | null;
  /** Device of a device track; null for a thread. */
  device: number | null;
  stream: string | null;
  /** Numbers of the classes that occur. */
  classes: Set<number>;
  lanes: Lane[];
}

/** The events of one execution, in memory. */
export interface Timeline {
  execution: string;
  /** Start of the first event and end of the last one, ns since the session's start. */
  from: number;
  to: number;
  /** In the order in which they were read. */
  tracks: Track[];
  /** Full names of the events, by number. */
  names: string[];
  /** What pages show instead of each name. */
  labels: string[];
  /** The table that is being loaded; null after all are. */
  reading: TrackTable | null;
}
