import { allowableData } from '../ask/allowable.js';
import { doctorIds } from '../capture/doctor/judge.js';
import { evaluators } from '../capture/run/run-options.js';
import { memoryEngines } from '../llm/memory-request.js';
import { kernelNames } from '../model/kernels.js';
import { publishedNames } from '../model/published.js';
import { stageKinds } from '../model/record.js';
import * as explain from './explain-option-values.js';

/** Words for one position of the command line; `list`: a comma-separated list of them. */
export interface ValueWords {
  words: readonly string[];
  list?: true;
}

const embeddedDtypes: ValueWords = { words: ['float32', 'int4'] };
const memoryWeights: ValueWords = { words: ['random', 'trained', 'load'] };
const memoryEngineNames: ValueWords = { words: memoryEngines };

/** Values of options with their own parser; commander knows the others (`choices`). */
export const optionWords: Readonly<Record<string, ValueWords>> = {
  'profile --dtype': embeddedDtypes,
  'run --evaluator': { words: evaluators, list: true },
  'explain --stage': { words: explain.stageKinds },
  'explain --format': { words: explain.formats },
  'explain --fail-on': { words: explain.severities },
  'analyze --allow': { words: allowableData, list: true },
  'memory --engine': memoryEngineNames,
  'memory --weights': memoryWeights,
  'serve --dtype': embeddedDtypes,
  'kernels --dtype': {
    words: ['float32', 'tfloat32', 'float16', 'bfloat16', 'float8', 'int8'],
    list: true,
  },
  'kernels --backend': { words: ['flash', 'efficient', 'cudnn', 'math', 'all'], list: true },
  'estimate --engine': memoryEngineNames,
  'gemm --stage': { words: stageKinds.filter((kind) => kind !== 'other') },
  'sweep --engine': memoryEngineNames,
  'sweep --weights': memoryWeights,
  'sql --format': { words: ['table', 'csv', 'json'] },
  'export --format': { words: ['chrome-trace', 'perfetto', 'speedscope', 'openmetrics', 'csv', 'parquet'] },
  'doctor --require': { words: doctorIds, list: true },
};

export const argumentWords: Readonly<Record<string, ValueWords>> = {
  'kernels names': { words: kernelNames },
  'schema document': { words: publishedNames },
};
