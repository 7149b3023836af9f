import { basename } from 'node:path';
import { InferscopeError } from '../model/errors.js';

/** Session times in ns are exact up to 2^53, which is 104 days. */
const maxDistanceNs = 100n * 24n * 3600n * 1_000_000_000n;

/**
 * Checks that a recording can share the clock of others.
 * @param realtimeNs wall clock of its start, ns since the epoch; null: unknown
 * @param zeroNs zero of the session
 * @throws E_USAGE if they are more than 100 days apart
 */
export function ensureSameTime(path: string, realtimeNs: bigint | null, zeroNs: bigint | null): void {
  if (realtimeNs === null || zeroNs === null) return;
  const distanceNs = realtimeNs < zeroNs ? zeroNs - realtimeNs : realtimeNs - zeroNs;
  if (distanceNs <= maxDistanceNs) return;
  const day = (ns: bigint) => new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 10);
  throw new InferscopeError('E_USAGE', {
    what: `${basename(path)} is not a recording of the same run`,
    why: `It was recorded on ${day(realtimeNs)}, the other recordings on ${day(zeroNs)}; recordings of one session must share one clock.`,
    fix: `Import it as its own session: inferscope import ${path}`,
  });
}
