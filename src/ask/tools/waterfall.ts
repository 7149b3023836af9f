import { z } from 'zod';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { askTool } from './tool.js';
import { sessionInput, whichSession } from './which-session.js';

/** Bars of a mean instance; with their SQL only on request. */
export function briefStage(stage: StageWaterfall, withSql = false) {
  const { kind, name, source, point, instances, measured_ms, median_ms, clean_ms, roofline_ms, roofs, bars } =
    stage;
  return {
    kind,
    ...(name === null ? {} : { name }),
    source,
    point,
    instances,
    measured_ms,
    median_ms,
    clean_ms,
    roofline_ms,
    roofs,
    bars: bars.map(({ id, label, ms, share, count, confidence, note, parts, better_capture, sql }) => ({
      id,
      label,
      ms,
      share,
      count,
      confidence,
      ...(note === null ? {} : { note }),
      ...(parts.length === 0 ? {} : { parts: parts.slice(0, 5) }),
      ...(withSql ? { better_capture, sql } : {}),
    })),
    ...(stage.ranks.length > 1 ? { ranks: stage.ranks } : {}),
  };
}

export const waterfallTool = askTool({
  name: 'waterfall',
  description:
    'Where the time of a mean prefill or decode step goes, from the roofline to the measurement: bars in ms; all but profiler_overhead add up to clean_ms where it is known, else to measured_ms, and share is of that sum. With a stage also the SQL behind every bar.',
  input: z.object({
    ...sessionInput,
    stage: z
      .string()
      .optional()
      .describe(
        'prefill, decode, mixed, training, request, sampling, load, warmup, outside, other (ranges of the program)',
      ),
  }),
  inputLine: ({ stage }) => stage ?? null,
  async run({ session, stage }, context) {
    const explanation = await context.explain(whichSession(context.sessions, session));
    const stages = explanation.stages.filter(({ kind }) => stage === undefined || kind === stage);
    return {
      data: {
        stages: stages.map((waterfall) => briefStage(waterfall, stage !== undefined)),
        without: explanation.without_waterfall,
      },
      rows: stages.reduce((sum, { bars }) => sum + bars.length, 0),
    };
  },
});
