import { type Figure, figure, missing } from '../model/figure.js';
import { gpuSheets } from './gpu-sheets.js';
import { migInstance, migShare, type MigShare } from './mig.js';
import type { GpuSheet, PeakDType } from './gpu-sheet.js';
import { formatPercent } from '../vocabulary/format.js';

/** Names that drivers give to devices newer than the driver. */
const namelessNames = new Set(['', 'Graphics Device', 'NVIDIA Graphics Device']);

/**
 * The data sheet of a GPU by its exact reported name, or by PCI id if the name is missing or shared. Null for others:
 * an unknown GPU never gets the nearest sheet (an A10G is not an A10; an "H100 PCIe" is not an "H100"). A MIG instance
 * of a known GPU has its share of the sheet's figures, with a note.
 * @param pciId vendor:device in hexadecimal, e.g. 10de:2335. It never overrides a name, because part of a GPU in a
 * virtual machine has the id of the whole GPU.
 */
export function gpuSheet(name: string, pciId: string | null = null): GpuSheet | null {
  const trimmed = name.trim();
  const named = gpuSheets.find((sheet) => sheet.names.includes(trimmed));
  if (named) return named;
  const mig = migInstance(trimmed);
  if (mig) {
    const parent = gpuSheet(mig.parent, pciId);
    const share = migShare(mig);
    return parent && share ? instanceSheet(parent, trimmed, mig.profile, share) : null;
  }
  const id = pciId?.toLowerCase();
  if (id === undefined) return null;
  const sheet = gpuSheets.find((sheet) => sheet.pciIds?.includes(id));
  const byId = namelessNames.has(trimmed) || sheet?.sharedNames?.includes(trimmed);
  return (byId && sheet) || null;
}

function instanceSheet(
  parent: GpuSheet,
  name: string,
  profile: string,
  { smCount, memory, l2 }: MigShare,
): GpuSheet {
  const compute = smCount / parent.smCount;
  // Instances have no NVLink (MIG User Guide, "Application considerations").
  const { peerGbps: _, note: __, ...sharedFigures } = parent;
  return {
    ...sharedFigures,
    names: [name],
    denseTflops: Object.fromEntries(
      Object.entries(parent.denseTflops).map(([dtype, tflops]) => [dtype, tflops * compute]),
    ),
    bandwidthGbps: parent.bandwidthGbps * memory,
    memoryGb: parent.memoryGb * memory,
    smCount,
    l2Bytes: parent.l2Bytes === null ? null : parent.l2Bytes * l2,
    source: { ...parent.source, document: `${parent.source.document}, MIG ${profile}` },
    note: `MIG ${profile}: ${smCount} of ${parent.smCount} SMs and ${formatPercent(memory)} of the memory of the whole GPU; it shares the power limit.`,
  };
}

/** Dense data-sheet peak in FLOP/s (integer dtypes: operations/s) for MFU; otherwise missing with the reason. */
export function gpuPeakFlops(name: string, dtype: PeakDType, pciId: string | null = null): Figure {
  const sheet = gpuSheet(name, pciId);
  if (!sheet) return unknownGpu(name);
  const tflops = sheet.denseTflops[dtype];
  if (tflops === undefined) {
    return missing('no_peak_for_dtype', `the data sheet of ${name} states no dense ${dtype} peak`);
  }
  return figure(tflops * 1e12, 'FLOP/s', sheetCitation(sheet));
}

/** Data-sheet memory bandwidth in B/s for MBU; missing with the reason for an unknown GPU. */
export function gpuPeakBandwidth(name: string, pciId: string | null = null): Figure {
  const sheet = gpuSheet(name, pciId);
  return sheet ? figure(sheet.bandwidthGbps * 1e9, 'B/s', sheetCitation(sheet)) : unknownGpu(name);
}

/** 10^9 bytes per second over 16 lanes, one direction, after line coding (PCIe base specifications). */
const pcieGbps = { 3: 15.75, 4: 31.5, 5: 63, 6: 121 } as const;

/** The link to the host, B/s in one direction. */
export function gpuHostLink(name: string, pciId: string | null = null): Figure {
  const sheet = gpuSheet(name, pciId);
  if (!sheet) return unknownGpu(name);
  const generation = sheet.pcieGeneration;
  return generation === undefined
    ? missing('no_link', `the data sheet of ${name} states no PCIe generation`)
    : figure(pcieGbps[generation] * 1e9, 'B/s', `PCIe ${generation}.0 ×16, ${sheetCitation(sheet)}`);
}

/** NVLink or Infinity Fabric of one GPU to the others, B/s in one direction. */
export function gpuPeerLink(name: string, pciId: string | null = null): Figure {
  const sheet = gpuSheet(name, pciId);
  if (!sheet) return unknownGpu(name);
  return sheet.peerGbps === undefined
    ? missing('no_link', `the data sheet of ${name} states no link between GPUs`)
    : figure(sheet.peerGbps * 1e9, 'B/s', sheetCitation(sheet));
}

export function sheetCitation({ source }: GpuSheet): string {
  return `${source.document} (${source.year})`;
}

function unknownGpu(name: string): Figure {
  return missing(
    'unknown_gpu',
    migInstance(name) && gpuSheet(migInstance(name)!.parent)
      ? `how many SMs the MIG instance "${name}" has is not known; inferscope roofline measures its peaks`
      : `no data sheet is known for a GPU named "${name}"; inferscope roofline measures its peaks`,
  );
}
