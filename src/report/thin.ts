import type { Document } from '../model/document.js';
import type { ProfileResult } from '../model/documents/profile.js';

/** At most `most` of `items`, evenly spread, the first and last among them: a series for a table or a page. */
export function thinned<T>(items: T[], most: number): T[] {
  if (items.length <= most) return items;
  const step = (items.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, index) => items[Math.round(index * step)] as T);
}

const mostMemorySamples = 2000;
const mostTelemetryPoints = 20_000;

/**
 * The document as a page carries it: long sampled series thinned to what a chart can show, so that an hour on a
 * hundred cores stays a page of a megabyte or two. The session keeps every sample.
 */
export function forPage(document: Document<ProfileResult>): Document<ProfileResult> {
  const { memory, telemetry } = document.data;
  const each = Math.max(50, Math.floor(mostTelemetryPoints / Math.max(1, telemetry?.series.length ?? 0)));
  return {
    ...document,
    data: {
      ...document.data,
      memory: memory && { ...memory, series: thinned(memory.series, mostMemorySamples) },
      telemetry: telemetry && {
        ...telemetry,
        series: telemetry.series.map((series) => ({ ...series, points: thinned(series.points, each) })),
      },
    },
  };
}
