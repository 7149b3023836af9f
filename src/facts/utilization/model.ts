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
 * Architecture and storage of the model that a session ran. The dtype is the user's, else the workload's, else that
 * of the GEMM kernels with the most time, else of the inputs of the GEMM operators with the most time, else the config's.
 */
export async function sessionModel(
  database: SessionDatabase,
  workload: Workload | null,
): Promise<SessionModel | MissingFigure> {
  const workloadModelInfo = workload?.model ?? null;
  if (!workload || !workloadModelInfo) {
    return missing('no_model', 'the session does not record its model (add it with --model)');
  }
  const userParts = new Set(workload.given_by_user);
  const [dtype, source] = userParts.has('dtype')
    ? [dtypeNamed(workloadModelInfo.dtype), 'given by you']
    : await dtypeOf(database, workloadModelInfo.config, workloadModelInfo.dtype);
  if (dtype === null) {
    return missing(
      'no_dtype',
      'the session does not record the dtype that the model computed in (add it with --dtype)',
    );
  }
  // Exports of the embedded engine have their own dtypes, which say how the file stores weights.
  const embedded = knownEngine(workload.engine.name) === 'onnx' && userParts.size === 0;
  const model = workloadModel(embedded ? workload : { ...workload, model: { ...workloadModelInfo, dtype } });
  const shapes = arithmeticConfig(workloadModelInfo).fromShapes ? ', by the shapes of its weights' : '';
  const from = userParts.has('model') ? 'given by you' : `the workload's record${shapes}`;
  return 'reason' in model
    ? model
    : {
        name: workloadModelInfo.name,
        dtype,
        from: from === source ? from : `${from}; dtype: ${source}`,
        model,
      };
}

async function dtypeOf(
  database: SessionDatabase,
  config: Record<string, unknown>,
  recorded: string,
): Promise<[DType | null, string]> {
  const recordedDtype = dtypes.find((dtype) => dtype === recorded);
  if (recordedDtype) return [recordedDtype, "the workload's record"];
  const [longestKernels] = await database.query<{ dtype: string }>(
    `SELECT dtype FROM kernels WHERE class = 'gemm' AND dtype IS NOT NULL GROUP BY dtype ORDER BY sum(dur_ns) DESC LIMIT 1`,
  );
  const kernelDtype = longestKernels ? dtypeNamed(longestKernels.dtype) : null;
  if (kernelDtype) return [kernelDtype, 'most of the GEMM time'];
  const [longestOperator] = await database.query<{ name: string; input_types: string }>(
    `SELECT name, input_types FROM ops WHERE input_types IS NOT NULL AND list_contains(string_split($1, ','), name)
     GROUP BY ALL ORDER BY sum(dur_ns) DESC LIMIT 1`,
    [gemmOperators.join(',')],
  );
  const inputDtype = longestOperator
    ? dtypeNamed(operatorType(longestOperator.name, longestOperator.input_types) ?? '')
    : null;
  if (inputDtype) return [inputDtype, "its GEMMs' inputs"];
  const declared = declaredDType(config);
  return declared ? [declared, 'the config'] : [null, ''];
}

/** A dtype as kernel names abbreviate it: fp16, bf16. */
function dtypeNamed(text: string): DType | null {
  try {
    return parseDType(text.replace(/^(fp8|float8).*/, 'float8'));
  } catch {
    return null;
  }
}
