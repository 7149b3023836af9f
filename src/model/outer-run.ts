// Environment variables that `inferscope run` passes to a program.

/** Path of the file that a workload appends its lines to (docs/reference/recording-protocol.md). */
export const recordVariable = 'INFERSCOPE_RECORD';

/** The evaluator around the program: nsys, ncu, torch, gemm-log or none. Set by `inferscope run` for each execution. */
export const evaluatorVariable = 'INFERSCOPE_EVALUATOR';

/** `off`: do not mark stages of programs without marks; also set by users. */
export const hooksVariable = 'INFERSCOPE_HOOKS';

/** Code of the issue that names a session saved by the recorded program. */
export const nestedSession = 'nested_session';
