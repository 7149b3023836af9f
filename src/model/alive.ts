import process from 'node:process';
import { systemErrorCode } from './errors.js';

/** Whether a process with this id runs, including those of other users. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === 'EPERM';
  }
}
