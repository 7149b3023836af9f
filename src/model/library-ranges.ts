/**
 * Libraries that mark their own calls with NVTX, each in a domain of its name: `NCCL:ncclAllReduce`. No stages of the
 * program: what runs inside belongs to the stage around them.
 */
const domains = [
  'NCCL',
  'NVSHMEM',
  'CCCL',
  'CUB',
  'Thrust',
  'cuBLAS',
  'cuBLASLt',
  'cuBLASMp',
  'cuDNN',
  'cuFFT',
  'cuSOLVER',
  'cuSPARSE',
  'cuSPARSELt',
  'cuTENSOR',
  'TensorRT',
];

/** At the start of a range's name, for JavaScript and for DuckDB's regular expressions alike; case does not count. */
export const libraryRange = `(?:lib)?(?:${domains.join('|')}):`;
