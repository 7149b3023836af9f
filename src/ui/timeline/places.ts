import type { Lane } from './lane.js';
import type { SearchResult, Match, Place } from './shown.js';
import type { Timeline, Track } from './timeline.js';

/** All lanes of a timeline in the order of their numbers, with their tracks. */
export const lanesIn = ({ tracks }: Timeline): { track: Track; lane: Lane }[] =>
  tracks.flatMap((track) => track.lanes.map((lane) => ({ track, lane })));

/** The event with these times in the given tracks; null if there is none. */
export function placeOf(
  timeline: Timeline,
  matches: (track: Track) => boolean,
  start: number,
  end: number,
): Place | null {
  for (const [number, { track, lane }] of lanesIn(timeline).entries()) {
    if (!matches(track)) continue;
    for (let index = lane.firstStartingFrom(start); lane.start[index] === start; index++)
      if (index < lane.length && lane.end[index] === end) return { lane: number, index };
  }
  return null;
}

/**
 * Searches events with `text` in their name or label; times in ns since the start of the timeline.
 * @returns the number of matches, the first that starts after `afterNs` and the last before it, both wrapping around the ends
 */
export function search(timeline: Timeline, text: string, afterNs: number): SearchResult {
  const wanted = text.toLowerCase();
  const nameNumbers = new Set<number>();
  for (const [number, name] of timeline.names.entries())
    if ([name, timeline.labels[number]!].some((one) => one.toLowerCase().includes(wanted)))
      nameNumbers.add(number);
  let count = 0;
  const matches: Record<'first' | 'next' | 'previous' | 'last', Match | null> = {
    first: null,
    next: null,
    previous: null,
    last: null,
  };
  if (nameNumbers.size > 0)
    for (const [number, { lane }] of lanesIn(timeline).entries())
      for (let index = 0; index < lane.length; index++) {
        if (!nameNumbers.has(lane.name[index]!)) continue;
        count++;
        const start = lane.start[index]! - timeline.from;
        const match = { lane: number, index, start, end: lane.end[index]! - timeline.from };
        if (match.start > afterNs && match.start < (matches.next?.start ?? Number.POSITIVE_INFINITY))
          matches.next = match;
        if (match.start < afterNs && match.start > (matches.previous?.start ?? Number.NEGATIVE_INFINITY))
          matches.previous = match;
        if (match.start < (matches.first?.start ?? Number.POSITIVE_INFINITY)) matches.first = match;
        if (match.start > (matches.last?.start ?? Number.NEGATIVE_INFINITY)) matches.last = match;
      }
  return { count, next: matches.next ?? matches.first, previous: matches.previous ?? matches.last };
}
