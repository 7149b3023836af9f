import { cpus } from 'node:os';

/**
 * Maximum compute threads: more only wait for each other. At twice the cores a decode step took six times as long
 * (docs/decisions/016), and with thousands the runtime never gets to its first step.
 */
export function maxThreads(): number {
  return 4 * cpus().length;
}
