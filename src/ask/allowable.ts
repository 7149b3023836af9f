/** Data that may leave this machine in addition to numbers and names of kernels, ranges and operators. */
export const allowable = ['paths', 'hosts', 'env', 'output'] as const;
export type Allowed = (typeof allowable)[number];
