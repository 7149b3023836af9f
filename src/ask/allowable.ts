/** What may leave this machine beside names of kernels, ranges and operators, and numbers. */
export const allowable = ['paths', 'hosts', 'env', 'output'] as const;
export type Allowed = (typeof allowable)[number];
