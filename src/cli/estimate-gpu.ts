import { chosenGpuWords, findGpuSheet } from '../hardware/find-gpu.js';
import { gpuSheets } from '../hardware/gpu-sheets.js';
import { allocatableGib, allocatableShare } from '../llm/memory-constants.js';
import type { KnownGpu } from '../facts/estimate/known-gpu.js';
import { InferscopeError } from '../model/errors.js';
import { nearest, nearestNames } from '../model/nearest.js';
import { notify } from './output.js';
import type { GpuSheet } from '../hardware/gpu-sheet.js';
import { formatSetting, formatPercent } from '../vocabulary/format.js';

const gib = 2 ** 30;

/**
 * Resolves a GPU name (A10G, h100-pcie, "RTX 4090", the driver's name) or a memory size (24GB, 24GiB). An ambiguous
 * name means the common variant (H100: SXM), which is printed.
 * @throws E_USAGE for an unknown or ambiguous name
 */
export function findGpu(name: string): KnownGpu {
  const size = /^(\d+(?:\.\d+)?)\s*(GB|GiB)$/i.exec(name.trim());
  if (size) {
    const unit = size[2]!.toLowerCase() === 'gib' ? gib : 1e9;
    return { name: null, totalBytes: Math.round(Number(size[1]) * unit), source: 'as given' };
  }
  const found = findGpuSheet(name);
  if (Array.isArray(found)) throw found.length > 0 ? ambiguousGpu(name, found) : unknownGpu(name);
  const chosen = chosenGpuWords(name, found);
  if (chosen !== null) notify(`--gpu ${chosen}`);
  return capacityOf(found.sheet, found.name);
}

function capacityOf(sheet: GpuSheet, name: string): KnownGpu {
  const knownGib = sheet.names
    .map((alias) => allocatableGib[alias])
    .find((capacity) => capacity !== undefined);
  return {
    name,
    architecture: sheet.architecture,
    totalBytes: Math.round(knownGib === undefined ? sheet.memoryGb * gib * allocatableShare : knownGib * gib),
    source:
      knownGib === undefined
        ? `${formatPercent(allocatableShare)} of the ${formatSetting(sheet.memoryGb, 'GB')} in its data sheet`
        : 'capacity reported by torch',
  };
}

function ambiguousGpu(name: string, candidates: readonly GpuSheet[]): InferscopeError {
  const names = candidates.map(({ names: [name], memoryGb }) => `${name} (${formatSetting(memoryGb, 'GB')})`);
  return new InferscopeError('E_USAGE', {
    what: `--gpu ${name} matches several GPUs`,
    why: `Candidates: ${names.join(', ')}.`,
    fix: `Type for example: --gpu "${candidates[0]!.names[0]}"`,
  });
}

function unknownGpu(name: string): InferscopeError {
  const names = gpuSheets.flatMap(({ names: [name] }) =>
    name === undefined ? [] : [name.replace(/^(NVIDIA|AMD|Tesla) /, '')],
  );
  const suggestion = nearest(name, names);
  return new InferscopeError('E_USAGE', {
    what: `unknown GPU "${name}"`,
    why: `It is none of the ${names.length} known GPUs: ${nearestNames(names, name)}.`,
    fix: `Give its memory instead, e.g. --gpu 24GiB${suggestion === null ? '' : ` (nearest name: "${suggestion}")`}.`,
  });
}
