import { InferscopeError } from '../../model/errors.js';
import type { Importer } from '../importer.js';

/**
 * A report in Nsight Compute's own format: "NVR\0", then protocol buffers with a schema that changes with every version.
 * Only the installed ncu reads it: the caller converts it to a raw page first (`ncu -i R --csv --page raw`).
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
        why: 'Only ncu can read a .ncu-rep file (same version or newer), and ncu was not found.',
        fix: `On a machine with ncu: ncu -i ${path} --csv --page raw > page.csv, then: inferscope import page.csv`,
      }),
    );
  },
} satisfies Importer;
