// What a program learns about the `inferscope run` around it.

/** Names the file that a workload appends its lines to (docs/reference/recording-protocol.md). */
export const recordVariable = 'INFERSCOPE_RECORD';

/** The evaluator around the program: nsys, ncu, torch, gemm-log or none. Set by `inferscope run` for each execution. */
export const evaluatorVariable = 'INFERSCOPE_EVALUATOR';

/** `off`: no stages of programs that mark nothing; also set by users. */
export const hooksVariable = 'INFERSCOPE_HOOKS';

/** Code of the issue that names a session which the recorded program kept. */
export const nestedSession = 'nested_session';
