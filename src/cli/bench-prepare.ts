import { refuseAll } from '../capture/bench/refuse-all.js';
import type { VariantPlan } from '../capture/bench/run-bench.js';
import { type BenchPart, type BenchPoint, benchParts } from '../model/bench.js';
import type { EngineRequest } from '../model/engine.js';
import { parseDType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { defaultModel, loadEngine, type EngineContext } from './bench-engines.js';
import { pointsOf } from './bench-points.js';
import { expandVariants } from './bench-variants.js';
import type { BenchOptions } from './bench-option-values.js';

export interface PreparedBench {
  request: Omit<EngineRequest, 'engineArgs'>;
  parts: BenchPart[];
  points: BenchPoint[];
  variants: VariantPlan[];
}

/**
 * Validates all input before anything is measured.
 * @throws E_USAGE, E_LENGTHS, E_DTYPE and the errors of the engine's prepare
 */
export async function prepareBench(
  verb: BenchPart | 'suite',
  options: BenchOptions,
  context: EngineContext,
): Promise<PreparedBench> {
  const variants = expandVariants(options.engineArg ?? []);
  const points = pointsOf(verb, options);
  if (options.engine !== 'openai' && options.url !== undefined) {
    throw new InferscopeError('E_USAGE', {
      what: `--url goes with --engine openai, not with --engine ${options.engine}`,
      why: 'The other engines load the model themselves.',
      fix: `Type for example: inferscope bench ${verb} --engine openai --url ${options.url}`,
    });
  }
  const request = {
    model: options.model ?? defaultModel(options.engine) ?? '',
    weights: options.weights ?? null,
    dtype: options.dtype === undefined ? null : parseDType(options.dtype),
    device: options.device ?? null,
    threads: options.threads ?? null,
    url: options.url ?? null,
    python: options.python ?? null,
  };
  const engine = await loadEngine(options.engine, context);
  const plans: VariantPlan[] = [];
  for (const variant of variants) {
    const prepared = await engine.prepare({ ...request, points, engineArgs: variant.engine_args });
    plans.push({ ...variant, prepared, points });
  }
  refuseAll(plans.flatMap(({ prepared }) => points.map((point) => prepared.refusal(point))));
  const parts: BenchPart[] = verb === 'suite' ? [...benchParts] : [verb];
  return { request, parts, points, variants: plans };
}
