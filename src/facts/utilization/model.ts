import { knownEngine } from '../../llm/memory-request.js';
import { declaredDType } from '../../llm/quantization.js';
import { type DType, dtypes, parseDType } from '../../model/dtype.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import type { SessionDatabase } from '../../session/query.js';
import { gemmOperators, operatorType } from '../gemms/shape.js';
import { arithmeticConfig, workloadModel, type WorkloadModel } from '../model-work.js';

export interface SessionModel {
  name: string;
  dtype: DType;
  from: string;
  model: WorkloadModel;
}

/**
 * Architecture and storage of what a session ran. The dtype is the one given, the workload's, what most of the GEMM time was
 * computed in, or the config's.
 */
export async function sessionModel(
  database: SessionDatabase,
  workload: Workload | null,
): Promise<SessionModel | MissingFigure> {
  const own = workload?.model ?? null;
  if (!workload || !own) {
    return missing('no_model', 'the session does not record its model (add it with --model)');
  }
  const given = new Set(workload.given);
  const [dtype, source] = given.has('dtype')
    ? [dtypeNamed(own.dtype), 'you']
    : await dtypeOf(database, own.config, own.dtype);
  if (dtype === null) {
    return missing(
      'no_dtype',
      'the session does not record the dtype that the model computed in (add it with --dtype)',
    );
  }
  // Exports of the embedded engine have dtypes of their own, which say how their file stores weights.
  const embedded = knownEngine(workload.engine.name) === 'onnx' && given.size === 0;
  const model = workloadModel(embedded ? workload : { ...workload, model: { ...own, dtype } });
  const shapes = arithmeticConfig(own).fromShapes ? ', by the shapes of its weights' : '';
  const from = given.has('model') ? 'given by you' : `the workload's record${shapes}`;
  return 'reason' in model ? model : { name: own.name, dtype, from: `${from}; dtype by ${source}`, model };
}

async function dtypeOf(
  database: SessionDatabase,
  config: Record<string, unknown>,
  recorded: string,
): Promise<[DType | null, string]> {
  const own = dtypes.find((dtype) => dtype === recorded);
  if (own) return [own, "the workload's record"];
  const [most] = await database.query<{ dtype: string }>(
    `SELECT dtype FROM kernels WHERE class = 'gemm' AND dtype IS NOT NULL GROUP BY dtype ORDER BY sum(dur_ns) DESC LIMIT 1`,
  );
  const seen = most ? dtypeNamed(most.dtype) : null;
  if (seen) return [seen, 'most of the GEMM time'];
  const [called] = await database.query<{ name: string; input_types: string }>(
    `SELECT name, input_types FROM ops WHERE input_types IS NOT NULL AND list_contains(string_split($1, ','), name)
     GROUP BY ALL ORDER BY sum(dur_ns) DESC LIMIT 1`,
    [gemmOperators.join(',')],
  );
  const typed = called ? dtypeNamed(operatorType(called.name, called.input_types) ?? '') : null;
  if (typed) return [typed, "its matrix products' inputs"];
  const declared = declaredDType(config);
  return declared ? [declared, 'the config'] : [null, ''];
}

/** fp16, bf16: as kernels' names have them. */
function dtypeNamed(text: string): DType | null {
  try {
    return parseDType(text.replace(/^(fp8|float8).*/, 'float8'));
  } catch {
    return null;
  }
}
