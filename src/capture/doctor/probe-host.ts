import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { dirname, join } from 'node:path';
import { kernelFiles } from '../../hardware/kernel-files.js';
import { messageOf } from '../../model/errors.js';
import { freeBytes } from '../../vocabulary/storage-failure.js';
import type { DoctorFacts, FolderFacts } from './facts.js';

/**
 * Whether sessions can be stored under `path`, which need not exist yet: tested by creating and removing a folder in its
 * nearest existing parent (mode bits say nothing for root or on a read-only mount).
 */
export function probeHome(path: string): FolderFacts {
  let parent = path;
  while (!existsSync(parent) && dirname(parent) !== parent) parent = dirname(parent);
  return { ...probeFolder(parent), path };
}

/** Whether folders can be created in `path`, which must exist. */
export function probeFolder(path: string): FolderFacts {
  const free = freeBytes(path);
  try {
    rmSync(mkdtempSync(join(path, '.inferscope-doctor-')), { recursive: true });
    return { path, writable: true, reason: null, freeBytes: free };
  } catch (error) {
    return { path, writable: false, reason: messageOf(error).replace(/,.*$/, ''), freeBytes: free };
  }
}

export function probeMemoryAvailable(root = '/'): number | null {
  const kib = /^MemAvailable:\s+(\d+) kB/m.exec(kernelFiles(root).text('/proc/meminfo') ?? '')?.[1];
  return kib ? Number(kib) * 1024 : os.freemem();
}

/** Vendor 0x10de is NVIDIA, 0x1002 AMD; class 0x03…. display, 0x1200 processing accelerator (AMD Instinct). */
export function probePciGpus(root = '/'): DoctorFacts['pciGpus'] {
  const files = kernelFiles(root);
  const folder = '/sys/bus/pci/devices';
  if (!files.exists(folder)) return null;
  const gpus = { nvidia: 0, amd: 0 };
  for (const device of files.entries(folder)) {
    const kind = files.text(`${folder}/${device}/class`) ?? '';
    if (!/^0x(03|1200)/.test(kind)) continue;
    const vendor = files.text(`${folder}/${device}/vendor`);
    if (vendor === '0x10de') gpus.nvidia += 1;
    if (vendor === '0x1002') gpus.amd += 1;
  }
  return gpus;
}
