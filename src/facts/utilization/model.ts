import { knownEngine } from '../../llm/memory-request.js';
import type { NamedModel } from '../../llm/model-files.js';
import { declaredDType } from '../../llm/quantization.js';
import { type DType, dtypes, parseDType } from '../../model/dtype.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import type { SessionDatabase } from '../../session/query.js';
import { gemmOperators, operatorType } from '../gemms/shape.js';
import { workloadModel, type WorkloadModel } from '../model-work.js';

export interface SessionModel {
  name: string;
  dtype: DType;
  from: string;
  model: WorkloadModel;
}

/**
 * Architecture and storage of what a session ran: from `--model`, else from the workload's own record. The dtype is the
 * one given, the workload's, what most of the GEMM time was computed in, or the config's.
 */
export async function sessionModel(
  database: SessionDatabase,
  workload: Workload | null,
  /** What the user said of the model comes before what the session says. */
  named: { model?: NamedModel | undefined; dtype?: DType | undefined },
): Promise<SessionModel | MissingFigure> {
  const own = workload?.model ?? null;
  const name = named.model?.name ?? own?.name;
  const config = named.model?.config ?? own?.config;
  if (!name || !config) {
    return missing(
      'no_model',
      'the session does not say which model it ran (session utilization --model names it)',
    );
  }
  const said = named.model ? '--model' : "the workload's record";
  const [dtype, whose] = await dtypeOf(database, config, own?.dtype, named.dtype);
  if (dtype === null) {
    return missing(
      'no_dtype',
      'nothing says in which dtype the model computed (session utilization --dtype names it)',
    );
  }
  const model = workloadModel(runOf(workload, { name, config, dtype }, named));
  return 'reason' in model ? model : { name, dtype, from: `${said}; dtype by ${whose}`, model };
}

/** The workload with the model that was named; a dtype that was named is all that is known of how it was stored. */
function runOf(
  workload: Workload | null,
  { name, config, dtype }: { name: string; config: Record<string, unknown>; dtype: DType },
  named: { model?: NamedModel | undefined; dtype?: DType | undefined },
): Workload {
  const own = workload?.model ?? null;
  const asRecorded = named.model === undefined && named.dtype === undefined;
  const embedded = knownEngine(workload?.engine.name) === 'onnx';
  const { quantization_config: _, ...plain } = config;
  return {
    device: 'cuda',
    threads: null,
    batch_size: null,
    input_len: null,
    output_len: null,
    tensor_parallel_size: 1,
    engine: { name: 'unknown', version: null, options: {} },
    ...workload,
    model: {
      name,
      config: named.dtype === undefined ? config : plain,
      // Exports have dtypes of their own, whose bytes are the file's.
      dtype: asRecorded && own && embedded ? own.dtype : dtype,
      quantization: named.dtype === undefined ? (own?.quantization ?? null) : null,
      weights: own?.weights ?? 'unknown',
      num_parameters: null,
      weight_bytes: asRecorded ? (own?.weight_bytes ?? null) : null,
    },
  };
}

async function dtypeOf(
  database: SessionDatabase,
  config: Record<string, unknown>,
  told: string | undefined,
  given: DType | undefined,
): Promise<[DType | null, string]> {
  if (given !== undefined) return [given, '--dtype'];
  const own = dtypes.find((one) => one === told);
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
export function dtypeNamed(text: string): DType | null {
  try {
    return parseDType(text.replace(/^(fp8|float8).*/, 'float8'));
  } catch {
    return null;
  }
}
