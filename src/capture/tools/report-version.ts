import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/**
 * Version of the nsys that wrote a report, e.g. "2025.3.1.0": it is stored as text in the file's last records (in
 * reports of 2025.3). Null when absent: the header has only a build number.
 */
export function readReportVersion(report: string): string | null {
  let file: number;
  try {
    file = openSync(report, 'r');
  } catch {
    return null;
  }
  try {
    const { size } = fstatSync(file);
    const tail = Buffer.alloc(Math.min(size, 64 * 1024));
    readSync(file, tail, 0, tail.length, size - tail.length);
    return findVersion(tail.toString('latin1'));
  } finally {
    closeSync(file);
  }
}

export function findVersion(tail: string): string | null {
  // After the name of the raw recording comes the command line, which may contain anything.
  const end = tail.lastIndexOf('.qdstrm');
  const textBeforeCommand = end < 0 ? tail : tail.slice(0, end);
  return (
    [...textBeforeCommand.matchAll(/(?<![\d.])(20\d\d\.\d{1,2}\.\d{1,2}\.\d{1,4})(?![\d.])/g)].at(-1)?.[1] ??
    null
  );
}
