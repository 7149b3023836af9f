import type { Document } from '../model/document.js';
import type { AnalyzeResult } from '../model/documents/analyze.js';
import type { BenchResult } from '../model/documents/bench.js';
import type { CapturesResult } from '../model/documents/captures.js';
import type { EstimateResult } from '../model/documents/estimate.js';
import type { EstimateFits } from '../model/documents/estimate-memory.js';
import type { KernelsResult } from '../model/documents/kernels.js';
import type { MemoryCompareResult } from '../model/documents/memory-compare.js';
import type { MemoryResult } from '../model/documents/memory-result.js';
import type { MonitorResult } from '../model/documents/monitor.js';
import type { PredictResult } from '../model/documents/predict.js';
import type { ProfileResult } from '../model/documents/profile.js';
import type { BenchmarkResults } from '../model/documents/results.js';
import type { RooflineData } from '../model/documents/roofline.js';
import type { ServingResult } from '../model/documents/serving.js';
import type { SweepResult } from '../model/documents/sweep.js';
import type { Validation, ValidationHistory } from '../model/documents/validate.js';
import type { View } from './block.js';

/** Documents by the kind of session whose main document they are. */
interface DocumentOf {
  analyze: Document<AnalyzeResult>;
  bench: Document<BenchResult>;
  captures: CapturesResult;
  estimate: Document<EstimateResult>;
  'estimate-fits': Document<EstimateFits>;
  kernels: Document<KernelsResult>;
  memory: Document<MemoryResult>;
  'memory-compare': Document<MemoryCompareResult>;
  monitor: Document<MonitorResult>;
  predict: Document<PredictResult>;
  profile: Document<ProfileResult>;
  results: Document<BenchmarkResults>;
  roofline: Document<RooflineData>;
  serving: Document<ServingResult>;
  sweep: Document<SweepResult>;
  validate: Document<Validation>;
  'validate-history': Document<ValidationHistory>;
}

/** Each kind's view, loaded when it is needed: the only list of what can be shown. */
const views: { [K in keyof DocumentOf]: () => Promise<(document: DocumentOf[K]) => View> } = {
  analyze: async () => (await import('./analyze.js')).analyzeView,
  bench: async () => (await import('./bench.js')).benchView,
  captures: async () => (await import('./captures.js')).capturesView,
  estimate: async () => (await import('./estimate.js')).estimateView,
  'estimate-fits': async () => (await import('./estimate-fits.js')).estimateFitsView,
  kernels: async () => (await import('./kernels.js')).kernelsView,
  memory: async () => (await import('./memory.js')).memoryView,
  'memory-compare': async () => (await import('./memory-compare.js')).memoryCompareView,
  predict: async () => (await import('./predict.js')).predictView,
  monitor: async () => (await import('./monitor.js')).monitorView,
  profile: async () => (await import('./profile.js')).profileView,
  results: async () => (await import('./results.js')).resultsView,
  roofline: async () => (await import('./roofline.js')).rooflineView,
  serving: async () => (await import('./serving.js')).servingView,
  sweep: async () => (await import('./sweep.js')).sweepView,
  validate: async () => (await import('./validate.js')).validateView,
  'validate-history': async () => (await import('./validate-history.js')).validateHistoryView,
};

type Kind = keyof DocumentOf;
type Shown = {
  [K in Kind]: {
    kind: K;
    document: DocumentOf[K];
    /** Of documents that do not name theirs. */
    session?: View['session'];
  };
}[Kind];

/** How a document looks. */
export async function viewOf({ kind, document, session }: Shown): Promise<View> {
  const view = (await views[kind]()) as (document: unknown) => View;
  return { ...view(document), ...(session && { session }) };
}
