import { z } from 'zod';
import { necessaryOps, decoderModel } from '../../facts/model-work.js';
import { computePeaks, peaksOf } from '../../facts/roofs.js';
import { countParameters } from '../../llm/parameters.js';
import { rooflineTime } from '../../llm/roofline-time.js';
import { arithmeticIntensity } from '../../llm/utilization.js';
import { totalWork, workByClass } from '../../llm/work-totals.js';
import { sessionRoofs } from '../session-roofs.js';
import { askTool } from './tool.js';
import { sessionInput, whichSession } from './which-session.js';

export const modelArithmeticTool = askTool({
  name: 'model_arithmetic',
  description:
    "What the session's model needs for one prefill or decode step of a batch: FLOPs, bytes (weights, KV cache, activations), arithmetic intensity, and the least time at the device's roofs. Omitted sizes default to the workload's.",
  input: z.object({
    ...sessionInput,
    phase: z.enum(['prefill', 'decode']),
    batch_size: z.number().int().min(1).optional(),
    new_tokens: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe('tokens computed per sequence: the prompt at prefill, 1 at decode'),
    context_tokens: z.number().min(0).optional().describe('tokens already cached per sequence'),
  }),
  inputLine: ({ phase, batch_size: batch, new_tokens: tokens, context_tokens: context }) =>
    [phase, batch && `batch ${batch}`, tokens && `${tokens} new`, context && `${context} cached`]
      .filter(Boolean)
      .join(', '),
  async run(input, { sessions }) {
    const session = whichSession(sessions, input.session);
    const { workload } = session.manifest;
    if (!workload) return { data: { note: 'the session does not record the model' }, rows: 0 };
    const model = decoderModel(workload);
    if (!('architecture' in model)) return { data: { note: model.reason.text }, rows: 0 };
    const prefill = input.phase === 'prefill';
    const shape = {
      phase: input.phase,
      batchSize: input.batch_size ?? workload.batch_size ?? 1,
      newTokens: input.new_tokens ?? (prefill ? (workload.input_len ?? 1) : 1),
      // A decode step halfway through the output.
      contextTokens:
        input.context_tokens ??
        (prefill ? 0 : (workload.input_len ?? 0) + Math.floor((workload.output_len ?? 0) / 2)),
    };
    const ops = necessaryOps(model, shape);
    const work = totalWork(ops);
    const { gpu, machine } = await sessionRoofs(session);
    const peaks = gpu ? peaksOf(gpu.roofFlops) : machine ? computePeaks(machine) : {};
    const bandwidth = gpu ? gpu.roofBandwidth.value : (machine?.bandwidth.at(-1)?.bytes_per_s ?? null);
    const roofline = rooflineTime(ops, peaks, bandwidth);
    const classes = workByClass(ops);
    return {
      data: {
        shape: {
          phase: shape.phase,
          batch_size: shape.batchSize,
          new_tokens: shape.newTokens,
          context_tokens: shape.contextTokens,
        },
        parameters: countParameters(model.architecture).total,
        flops: work.flops,
        bytes: work.bytes,
        total_bytes: work.bytes_total,
        flop_per_byte: arithmeticIntensity(work.flops, work.bytes_total),
        by_class: classes.map((row) => ({
          class: row.class,
          flops: row.work.flops,
          total_bytes: row.work.bytes_total,
        })),
        roofline:
          'reason' in roofline
            ? { note: roofline.reason.text }
            : { ms: roofline.roofline_s * 1e3, bound: roofline.bound },
      },
      rows: classes.length,
    };
  },
});
