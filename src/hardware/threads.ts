import { cpus } from 'node:os';

/**
 * More threads that compute than this only wait for each other: at twice the cores a decode step took six times as long
 * (docs/decisions/016), and with thousands the runtime never comes to its first step.
 */
export function maxThreads(): number {
  return 4 * cpus().length;
}
