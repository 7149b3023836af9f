/** Data that may leave this machine in addition to numbers and names of kernels, ranges and operators. */
export const allowableData = ['paths', 'hosts', 'env', 'output'] as const;
export type AllowedData = (typeof allowableData)[number];
