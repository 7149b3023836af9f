import type { Document } from '../document.js';
import type { AnalyzeResult } from './analyze.js';
import type { BenchResult } from './bench.js';
import type { CapturesResult } from './captures.js';
import type { EstimateResult } from './estimate.js';
import type { EstimateFits } from './estimate-memory.js';
import type { KernelsResult } from './kernels.js';
import type { MemoryCompareResult } from './memory-compare.js';
import type { MemoryResult } from './memory-result.js';
import type { MonitorResult } from './monitor.js';
import type { PredictResult } from './predict.js';
import type { ProfileResult } from './profile.js';
import type { BenchmarkResults } from './results.js';
import type { RooflineData } from './roofline.js';
import type { ServingResult } from './serving.js';
import type { SweepResult } from './sweep.js';
import type { Validation, ValidationHistory } from './validate.js';

/** The main document of each kind of session. */
export interface DocumentOf {
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

/** One of these kinds with its document. */
export type Shown<Kind extends keyof DocumentOf = keyof DocumentOf> = {
  [K in Kind]: {
    kind: K;
    document: DocumentOf[K];
    /** Of documents that do not name theirs. */
    session?: { id: string; started_at: string };
  };
}[Kind];
