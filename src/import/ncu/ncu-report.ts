import { InferscopeError } from '../../model/errors.js';
import type { Importer } from '../importer.js';

/**
 * A report as Nsight Compute keeps it: "NVR\0", then protocol buffers of a schema that changes with every version.
 * Only the installed ncu reads it: whoever imports turns it into a raw page first (`ncu -i R --csv --page raw`).
 */
export const ncuReportImporter = {
  name: 'ncu-rep',
  sniff: (firstBytes, fileName) => firstBytes.startsWith('NVR\0') || /\.ncu-rep$/i.test(fileName),
  facts: () =>
    Promise.resolve({
      tool: { name: 'ncu', version: null },
      realtime_zero_ns: null,
      command: null,
      hardware: {},
      software: {},
      purpose: 'counters',
    }),
  load(path): Promise<never> {
    return Promise.reject(
      new InferscopeError('E_TOOL_MISSING', {
        what: `cannot read ${path} without Nsight Compute`,
        why: 'A .ncu-rep file is read by ncu itself, in the version that wrote it or a newer one, and ncu was not found.',
        fix: `Where ncu is installed: ncu -i ${path} --csv --page raw > page.csv, then: inferscope import page.csv`,
      }),
    );
  },
} satisfies Importer;
