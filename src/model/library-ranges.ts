/**
 * NVTX domains of libraries that mark their own calls: `NCCL:ncclAllReduce`. They are not stages of the program: their content belongs to
 * the enclosing stage.
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

/** Pattern for the start of a range's name, in JavaScript and DuckDB syntax; case-insensitive. */
export const libraryRange = `(?:lib)?(?:${domains.join('|')}):`;
