import type { Importer } from '../importer.js';
import { aiperfRequestsImporter } from './aiperf-requests.js';
import { aiperfSummaryImporter } from './aiperf-summary.js';
import { aiperfSweepImporter } from './aiperf-sweep.js';
import { guidellmImporter } from './guidellm.js';
import { inferencexImporter } from './inferencex.js';
import { llamaBenchImporter } from './llama-bench.js';
import { optimumImporter } from './optimum.js';
import { sglangImporter } from './sglang.js';
import { vllmLatencyImporter } from './vllm-latency.js';
import { vllmServeImporter } from './vllm-serve.js';
import { vllmThroughputImporter } from './vllm-throughput.js';

/** Result files of other benchmark tools. */
export const resultImporters: Importer[] = [
  aiperfRequestsImporter,
  guidellmImporter,
  sglangImporter,
  aiperfSweepImporter,
  aiperfSummaryImporter,
  inferencexImporter,
  vllmServeImporter,
  vllmLatencyImporter,
  vllmThroughputImporter,
  llamaBenchImporter,
  optimumImporter,
];
