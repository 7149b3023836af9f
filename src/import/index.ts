import { cublasLogImporter } from './gemm-log/cublas.js';
import { cublasLtLogImporter } from './gemm-log/cublaslt.js';
import type { Importer } from './importer.js';
import { kinetoImporter } from './kineto/importer.js';
import { memoryProfileImporter } from './memory-profile.js';
import { ncuCsvImporter } from './ncu/ncu-csv.js';
import { ncuReportImporter } from './ncu/ncu-report.js';
import { ncclInspectorImporter } from './nccl-inspector/importer.js';
import { nsysParquetdirImporter, nsysRepImporter, nsysSqliteImporter } from './nsys/importers.js';
import { nvidiaSmiDmonImporter } from './nvidia-smi/dmon.js';
import { nvidiaSmiQueryImporter } from './nvidia-smi/query.js';
import { ortTraceImporter } from './ort-trace.js';
import { recordImporter } from './record.js';
import { resultImporters } from './benchmark-results/index.js';
import { vllmLogImporter } from './vllm-log/importer.js';

/** All formats inferscope reads, in sniffing order. */
export const importers: Importer[] = [
  nsysSqliteImporter,
  nsysParquetdirImporter,
  nsysRepImporter,
  ncuReportImporter,
  kinetoImporter,
  recordImporter,
  ncclInspectorImporter,
  ortTraceImporter,
  memoryProfileImporter,
  ...resultImporters,
  ncuCsvImporter,
  cublasLtLogImporter,
  cublasLogImporter,
  nvidiaSmiDmonImporter,
  nvidiaSmiQueryImporter,
  vllmLogImporter,
];
