import { z } from 'zod';
import { analyzeDocumentSchema, analyzeRequestDocumentSchema } from './documents/analyze.js';
import { baselineCheckDocumentSchema, baselineDocumentSchema } from './documents/baseline.js';
import { baselineMetricsSchema } from './documents/baseline-metrics.js';
import { benchDocumentSchema } from './documents/bench.js';
import { benchCompareDocumentSchema } from './documents/bench-compare.js';
import { collectivesDocumentSchema } from './documents/collectives.js';
import { compareDocumentSchema } from './documents/compare.js';
import { countersDocumentSchema } from './documents/counters.js';
import { doctorSchema } from './documents/doctor.js';
import { estimateDocumentSchema } from './documents/estimate.js';
import { estimateFitsDocumentSchema } from './documents/estimate-memory.js';
import { explainDocumentSchema, verifyDocumentSchema, whatIfDocumentSchema } from './documents/explain.js';
import { gemmsDocumentSchema } from './documents/gemms.js';
import { kernelsDocumentSchema } from './documents/kernels.js';
import { memoryProfileSchema } from './documents/memory-profile.js';
import { memoryResultDocumentSchema } from './documents/memory-result.js';
import { memoryCompareDocumentSchema } from './documents/memory-compare.js';
import { monitorDocumentSchema } from './documents/monitor.js';
import { predictDocumentSchema } from './documents/predict.js';
import { profileDocumentSchema } from './documents/profile.js';
import { resultsDocumentSchema } from './documents/results.js';
import { rooflineDocumentSchema } from './documents/roofline.js';
import { servingDocumentSchema } from './documents/serving.js';
import * as session from './documents/session.js';
import { sweepDocumentSchema } from './documents/sweep.js';
import { traceDocumentSchema } from './documents/trace.js';
import { validationDocumentSchema, validationHistoryDocumentSchema } from './documents/validate.js';
import { utilizationDocumentSchema } from './documents/utilization.js';
import { documentSchema } from './document.js';
import { manifestSchema, userSchema } from './manifest.js';
import { recordLineSchema } from './record.js';

const errorSchema = documentSchema(
  'error',
  '1.0',
  z.object({
    code: z.string(),
    exit_code: z.number().int(),
    what: z.string(),
    why: z.string(),
    fix: z.string(),
  }),
);

/** Every JSON document inferscope writes, by the name in its `schema` field; `record` is one line of a record file. */
const documents = {
  session: manifestSchema,
  user: userSchema,
  record: recordLineSchema,
  profile: profileDocumentSchema,
  roofline: rooflineDocumentSchema,
  estimate: estimateDocumentSchema,
  'estimate-fits': estimateFitsDocumentSchema,
  validate: validationDocumentSchema,
  'validate-history': validationHistoryDocumentSchema,
  trace: traceDocumentSchema,
  utilization: utilizationDocumentSchema,
  counters: countersDocumentSchema,
  gemms: gemmsDocumentSchema,
  collectives: collectivesDocumentSchema,
  predict: predictDocumentSchema,
  explain: explainDocumentSchema,
  'what-if': whatIfDocumentSchema,
  verify: verifyDocumentSchema,
  analyze: analyzeDocumentSchema,
  'analyze-request': analyzeRequestDocumentSchema,
  compare: compareDocumentSchema,
  results: resultsDocumentSchema,
  baseline: baselineDocumentSchema,
  'baseline-check': baselineCheckDocumentSchema,
  bench: benchDocumentSchema,
  'baseline-metrics': baselineMetricsSchema,
  'bench-compare': benchCompareDocumentSchema,
  kernels: kernelsDocumentSchema,
  memory: memoryResultDocumentSchema,
  'memory-profile': memoryProfileSchema,
  serving: servingDocumentSchema,
  'memory-compare': memoryCompareDocumentSchema,
  monitor: monitorDocumentSchema,
  sweep: sweepDocumentSchema,
  doctor: doctorSchema,
  error: errorSchema,
  'session-list': session.sessionListDocumentSchema,
  'session-show': session.sessionShowDocumentSchema,
  'session-user': session.sessionUserDocumentSchema,
  'session-delete': session.sessionDeleteDocumentSchema,
  'session-export': session.sessionExportDocumentSchema,
  'session-import': session.sessionImportDocumentSchema,
  'session-verify': session.sessionVerifyDocumentSchema,
  sql: session.sqlDocumentSchema,
  'sql-schema': session.sqlSchemaDocumentSchema,
} as const satisfies Record<string, z.ZodType>;
type DocumentName = keyof typeof documents;
export const publishedDocuments: Readonly<Record<string, z.ZodType>> = documents;

/** Where each is found: the command that prints it, or the file it is. */
export const documentSources: Readonly<Record<DocumentName, string>> = {
  session: '`session.json` of a session: its manifest',
  user: '`user.json` of a session: name, tags, notes',
  record: 'one line of a record file (INFERSCOPE_RECORD)',
  profile: '`profile --json`',
  roofline: '`roofline --json`',
  estimate: '`estimate --json`',
  'estimate-fits': '`estimate --fits --json`',
  validate: '`validate --json`',
  'validate-history': '`validate --history --json`',
  trace: '`run --json`, `import --json`, `report --json` of a session with a timeline',
  utilization: '`session utilization --json`',
  counters: '`report --json` of a session with counters of ncu and no timeline',
  gemms: '`report --json` of a session with BLAS calls and no timeline',
  collectives: '`report --json` of a session with records of NCCL Inspector alone',
  predict: '`predict --json`',
  explain: '`explain --json`',
  'what-if': '`explain --what-if … --json`',
  verify: '`explain --verify AFTER --json`',
  analyze: '`analyze --json`: answer, claims with the queries behind them, tokens, cost',
  'analyze-request': '`analyze --dry-run --json`: the first request, without its key',
  compare: '`session compare --json`',
  results: '`import --json` of result files of other benchmarks',
  baseline: '`baseline set --json`, and the file of a baseline',
  'baseline-check': '`baseline check --json`',
  bench: '`bench latency --json`, also `throughput`, `sequence` and `suite`',
  'baseline-metrics': 'the file `baseline_metrics.json` of these four',
  'bench-compare': '`bench compare --json`; exit code 1 when a gate failed',
  kernels: '`kernels --json`',
  memory: '`report --json` of a session with a memory profile',
  'memory-profile': '`memory --json`, and the file it writes',
  serving: '`bench serve --json`',
  'memory-compare': '`memory compare --json`',
  monitor: '`monitor --json`',
  sweep: '`sweep --json`, and its journal',
  doctor: '`doctor --json`',
  error: 'any command with `--json` that fails',
  'session-list': '`session list --json`',
  'session-show': '`session show --json`',
  'session-user': '`session rename --json`, also `tag`, `note` and `set`',
  'session-delete': '`session delete --json`',
  'session-export': '`session export --json`',
  'session-import': '`session import --json`',
  'session-verify': '`session verify --json`; exit code 5 unless all files are intact',
  sql: '`sql --format json`; integers beyond 2^53 are decimal text',
  'sql-schema': '`sql --schema --format json`',
};

/** JSON Schema (draft 2020-12) of a document, as text. */
export function jsonSchema(name: string): string {
  return `${JSON.stringify(z.toJSONSchema(publishedDocuments[name]!, { io: 'input' }), null, 2)}\n`;
}
