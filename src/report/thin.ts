import type { Document } from '../model/document.js';
import type { ProfileResult } from '../model/documents/profile.js';
import { thinned } from '../model/thinned.js';

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
