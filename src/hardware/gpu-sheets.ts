import { ada } from './sheets/ada.js';
import { ampere } from './sheets/ampere.js';
import { blackwell } from './sheets/blackwell.js';
import { cdna } from './sheets/cdna.js';
import { hopper } from './sheets/hopper.js';
import { voltaAndTuring } from './sheets/volta-turing.js';
import type { GpuSheet } from './gpu-sheet.js';

/**
 * Data-sheet figures. Tensor peaks are dense; vendors print the sparse figure, twice as large, first. GeForce float16
 * and float8 are the rates with float32 accumulation, which frameworks use and which is half of the headline.
 * gpu-peaks.test.ts recomputes rows from SMs × FLOP per clock and SM × boost clock. PCI ids come from the public
 * pci.ids list (2026-08).
 */
export const gpuSheets: readonly GpuSheet[] = [
  ...voltaAndTuring,
  ...ampere,
  ...ada,
  ...hopper,
  ...blackwell,
  ...cdna,
];
