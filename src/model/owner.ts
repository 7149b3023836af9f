import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import process from 'node:process';
import { isAlive } from './alive.js';

/**
 * Names of temporary folders identify the process that made them, so that leftovers of a killed process can be distinguished from folders
 * in use: <pid>-<process start>-<boot and pid namespace>.
 */
export const ownerPattern = String.raw`(\d+)-(\d+)-([0-9a-f]{8})`;

export const ownerTag = (pid = process.pid): string => `${pid}-${processStart(pid) ?? '0'}-${pidSpace()}`;

/** Whether the process of a tag has exited; null if it is on another machine, boot or container. */
export function ownerIsGone(pid: string, start: string, space: string): boolean | null {
  if (space !== pidSpace()) return null;
  if (!isAlive(Number(pid))) return true;
  const running = processStart(Number(pid));
  return running !== null && start !== '0' && running !== start;
}

/** Clock ticks from boot to the process's start, which distinguish it from a later process with the same pid. */
function processStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Field 22; the command in field 2 may contain spaces and brackets, so count from its closing bracket.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

function readOr(read: () => string, otherwise: string): string {
  try {
    return read().trim();
  } catch {
    return otherwise;
  }
}

/** Equal for two processes only if they see each other's process ids. */
function pidSpace(): string {
  const boot = readOr(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1'), 'no-boot-id');
  const namespace = readOr(() => readlinkSync('/proc/self/ns/pid'), 'no-namespace');
  return createHash('sha256').update(`${boot} ${namespace} ${hostname()}`).digest('hex').slice(0, 8);
}
