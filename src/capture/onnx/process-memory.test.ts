import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { mappedBytes, processMemory } from './process-memory.js';

test.skipIf(process.platform !== 'linux')(
  "the kernel's figures: as statm counts pages, and never above the peak",
  () => {
    // statm's second field is the resident set in pages, another file of the same kernel.
    const read = `cat /proc/${process.pid}/statm; getconf PAGESIZE`;
    const [statm = '', page = ''] = execFileSync('sh', ['-c', read], { encoding: 'utf8' }).split('\n');
    const pages = Number(statm.split(' ')[1]) * Number(page);
    const { rssBytes, peakRssBytes, source } = processMemory();
    expect(rssBytes / pages).toBeGreaterThan(0.8);
    expect(rssBytes / pages).toBeLessThan(1.25);
    expect(peakRssBytes!).toBeGreaterThanOrEqual(rssBytes);
    expect(source).toBe('/proc/<pid>/status');
  },
);

test.skipIf(process.platform !== 'linux')('resident pages of the files of a folder: those of Node.js', () => {
  const code = mappedBytes(dirname(process.execPath))!;
  expect(code).toBeGreaterThan(1e6);
  expect(code).toBeLessThan(processMemory().rssBytes);
  expect(mappedBytes('/no/such/folder')).toBe(0);
});
