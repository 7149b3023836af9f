import { z } from 'zod';
import { analyzeDocumentSchema, analyzeRequestDocumentSchema } from './documents/analyze.js';
import { baselineCheckDocumentSchema, baselineDocumentSchema } from './documents/baseline.js';
import { baselineMetricsSchema } from './documents/baseline-metrics.js';
import { benchDocumentSchema, benchFigures } from './documents/bench.js';
import { benchCompareDocumentSchema } from './documents/bench-compare.js';
import { collectivesDocumentSchema } from './documents/collectives.js';
import { compareDocumentSchema } from './documents/compare.js';
import { countersDocumentSchema } from './documents/counters.js';
import { doctorSchema } from './documents/doctor.js';
import { estimateDocumentSchema, estimateFigures } from './documents/estimate.js';
import { estimateFitsDocumentSchema } from './documents/estimate-memory.js';
import { explainDocumentSchema, verifyDocumentSchema, whatIfDocumentSchema } from './documents/explain.js';
import { gemmsDocumentSchema } from './documents/gemms.js';
import { kernelFigures, kernelsDocumentSchema } from './documents/kernels.js';
import { memoryFigures, memoryProfileSchema } from './documents/memory-profile.js';
import { memoryResultDocumentSchema } from './documents/memory-result.js';
import { memoryCompareDocumentSchema } from './documents/memory-compare.js';
import { monitorDocumentSchema } from './documents/monitor.js';
import { predictDocumentSchema, predictFigures } from './documents/predict.js';
import { profileDocumentSchema, profileFigures } from './documents/profile.js';
import { resultsDocumentSchema } from './documents/results.js';
import { rooflineDocumentSchema } from './documents/roofline.js';
import { servingDocumentSchema, servingFigures } from './documents/serving.js';
import * as session from './documents/session.js';
import { sweepDocumentSchema } from './documents/sweep.js';
import { traceDocumentSchema, traceFigures } from './documents/trace.js';
import { validationDocumentSchema, validationHistoryDocumentSchema } from './documents/validate.js';
import { utilizationDocumentSchema } from './documents/utilization.js';
import { type Document, documentSchema } from './document.js';
import type { FigureRow } from './figure-rows.js';
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

interface Entry {
  schema: z.ZodType;
  where: string;
  part?: 'captures';
  figures?: (data: never) => FigureRow[];
}

/**
 * Every JSON document that inferscope writes, by the name in its `schema` field, with the command that prints it or the file. `record` is
 * one line of a record file. `part`: documents that are shown together; `figures`: figures for tables over many documents.
 */
export const published = {
  session: { schema: manifestSchema, where: '`session.json` of a session: its manifest' },
  user: { schema: userSchema, where: '`user.json` of a session: name, tags, notes' },
  record: { schema: recordLineSchema, where: 'one line of a record file (INFERSCOPE_RECORD)' },
  profile: { schema: profileDocumentSchema, where: '`profile --json`', figures: profileFigures },
  roofline: { schema: rooflineDocumentSchema, where: '`roofline --json`' },
  estimate: { schema: estimateDocumentSchema, where: '`estimate --json`', figures: estimateFigures },
  'estimate-fits': { schema: estimateFitsDocumentSchema, where: '`estimate --fits --json`' },
  validate: { schema: validationDocumentSchema, where: '`validate --json`' },
  'validate-history': { schema: validationHistoryDocumentSchema, where: '`validate --history --json`' },
  trace: {
    schema: traceDocumentSchema,
    where: '`run --json`, `import --json`, `report --json` of a session with a timeline',
    part: 'captures',
    figures: traceFigures,
  },
  utilization: {
    schema: utilizationDocumentSchema,
    where: '`session utilization --json`, `report --json` of a program that ran without a profiler',
    part: 'captures',
  },
  counters: {
    schema: countersDocumentSchema,
    where: '`report --json` of a session with counters of ncu and no timeline',
    part: 'captures',
  },
  gemms: {
    schema: gemmsDocumentSchema,
    where: '`report --json` of a session with BLAS calls and no timeline',
    part: 'captures',
  },
  collectives: {
    schema: collectivesDocumentSchema,
    where: '`report --json` of a session with records of NCCL Inspector alone',
    part: 'captures',
  },
  predict: { schema: predictDocumentSchema, where: '`predict --json`', figures: predictFigures },
  explain: { schema: explainDocumentSchema, where: '`explain --json`' },
  'what-if': { schema: whatIfDocumentSchema, where: '`explain --what-if … --json`' },
  verify: { schema: verifyDocumentSchema, where: '`explain --verify AFTER --json`' },
  analyze: {
    schema: analyzeDocumentSchema,
    where: '`analyze --json`: answer, claims with the queries behind them, tokens, cost',
  },
  'analyze-request': {
    schema: analyzeRequestDocumentSchema,
    where: '`analyze --dry-run --json`: the first request, without its key',
  },
  compare: { schema: compareDocumentSchema, where: '`session compare --json`' },
  results: { schema: resultsDocumentSchema, where: '`import --json` of result files of other benchmarks' },
  baseline: { schema: baselineDocumentSchema, where: '`baseline set --json`, and the file of a baseline' },
  'baseline-check': { schema: baselineCheckDocumentSchema, where: '`baseline check --json`' },
  bench: {
    schema: benchDocumentSchema,
    where: '`bench latency --json`, also `throughput`, `sequence` and `suite`',
    figures: benchFigures,
  },
  'baseline-metrics': {
    schema: baselineMetricsSchema,
    where: 'the file `baseline_metrics.json` of `bench latency`, `throughput`, `sequence` and `suite`',
  },
  'bench-compare': {
    schema: benchCompareDocumentSchema,
    where: '`bench compare --json`; exit code 1 when a gate failed',
  },
  kernels: { schema: kernelsDocumentSchema, where: '`kernels --json`', figures: kernelFigures },
  memory: { schema: memoryResultDocumentSchema, where: '`report --json` of a session with a memory profile' },
  'memory-profile': {
    schema: memoryProfileSchema,
    where: '`memory --json`, and the file it writes',
    figures: memoryFigures,
  },
  serving: { schema: servingDocumentSchema, where: '`bench serve --json`', figures: servingFigures },
  'memory-compare': { schema: memoryCompareDocumentSchema, where: '`memory compare --json`' },
  monitor: { schema: monitorDocumentSchema, where: '`monitor --json`' },
  sweep: { schema: sweepDocumentSchema, where: '`sweep --json`, and its journal' },
  doctor: { schema: doctorSchema, where: '`doctor --json`' },
  error: { schema: errorSchema, where: 'any command with `--json` that fails' },
  'session-list': { schema: session.sessionListDocumentSchema, where: '`session list --json`' },
  'session-show': { schema: session.sessionShowDocumentSchema, where: '`session show --json`' },
  'session-user': {
    schema: session.sessionUserDocumentSchema,
    where: '`session rename --json`, also `tag`, `note` and `set`',
  },
  'session-delete': { schema: session.sessionDeleteDocumentSchema, where: '`session delete --json`' },
  'session-export': { schema: session.sessionExportDocumentSchema, where: '`session export --json`' },
  'session-import': { schema: session.sessionImportDocumentSchema, where: '`session import --json`' },
  'session-verify': {
    schema: session.sessionVerifyDocumentSchema,
    where: '`session verify --json`; exit code 5 unless all files are intact',
  },
  sql: {
    schema: session.sqlDocumentSchema,
    where: '`sql --format json`; integers beyond 2^53 are decimal text',
  },
  'sql-schema': { schema: session.sqlSchemaDocumentSchema, where: '`sql --schema --format json`' },
} as const satisfies Record<string, Entry>;
export type Published = typeof published;
export const publishedNames = Object.keys(published) as (keyof Published)[];

/** JSON Schema (draft 2020-12) of a document, as text. */
export const jsonSchema = (name: keyof Published): string =>
  `${JSON.stringify(z.toJSONSchema(published[name].schema, { io: 'input' }), null, 2)}\n`;

/** The figures of any document; empty if its kind has no such table. */
export function figuresOfDocument({ schema, data }: Document<unknown>): FigureRow[] {
  const known = Object.entries<Entry>(published).find(([name]) => schema.startsWith(`inferscope/${name}/`));
  return known?.[1].figures?.(data as never) ?? [];
}
