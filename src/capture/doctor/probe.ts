import { tmpdir } from 'node:os';
import { detectCpu } from '../../hardware/cpu.js';
import type { DoctorFacts } from './facts.js';
import { probeAmd, probeDocker } from './probe-containers.js';
import { probeFolder, probeHome, probeMemoryAvailable, probePciGpus } from './probe-host.js';
import { findNcu, findNsys } from '../tools/nsight.js';
import { probeNvidia } from './probe-nvidia.js';
import { probeSlurm } from './probe-slurm.js';
import { checkDuckdb, checkEngine } from './probe-packages.js';
import { probeHuggingFace, probePython } from './probe-python.js';

/** Time for a tool's --version on a cold disk or a loaded machine; loading a package first reads 100 MB. */
const toolMs = 4_000;
const packageMs = 20_000;
const torchImportMs = 30_000;

/**
 * Probes everything in parallel. Takes as long as the slowest probe: under a second on most machines, up to half a minute
 * when torch is imported from a cold disk. Writes and changes nothing.
 * @param homePath folder of sessions; need not exist
 */
export async function probeMachine(homePath: string): Promise<DoctorFacts> {
  const processes = [
    checkEngine(packageMs),
    checkDuckdb(packageMs),
    findNsys(toolMs),
    findNcu(toolMs),
    probePython({ versionsMs: 2 * toolMs, devicesMs: torchImportMs }),
    probeDocker(toolMs),
    probeAmd(toolMs),
    probeSlurm(homePath, toolMs),
  ] as const;
  // NVML blocks this thread while the driver starts up (seconds without persistence mode): the other probes run in parallel.
  const nvidia = await probeNvidia();
  const [engine, duckdb, nsys, ncu, python, docker, amd, slurm] = await Promise.all(processes);
  return {
    platform: process.platform,
    nodeVersion: process.versions.node,
    engine,
    duckdb,
    home: probeHome(homePath),
    temporary: probeFolder(tmpdir()),
    cpu: detectCpu(),
    memoryAvailableBytes: probeMemoryAvailable(),
    pciGpus: probePciGpus(),
    nvidia,
    nsys,
    ncu,
    python,
    pythonSetting: process.env['INFERSCOPE_PYTHON'] || null,
    huggingFace: probeHuggingFace(),
    docker,
    amd,
    slurm,
  };
}
