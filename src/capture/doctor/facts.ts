import type { Cpu } from '../../hardware/cpu.js';
import type { NvmlReason } from '../nvml.js';

/** Results of probing, before judgement. Null means unknown; there are no secrets. */
export interface DoctorFacts {
  platform: NodeJS.Platform;
  nodeVersion: string;
  engine: PackageCheck;
  duckdb: PackageCheck;
  home: FolderFacts;
  /** The system's folder for temporary files ($TMPDIR). */
  temporary: FolderFacts;
  cpu: Cpu;
  memoryAvailableBytes: number | null;
  /** Display and compute controllers on the PCI bus, by vendor; null if the bus cannot be listed. */
  pciGpus: { nvidia: number; amd: number } | null;
  nvidia: NvidiaFacts;
  nsys: ToolFacts | null;
  ncu: ToolFacts | null;
  python: PythonFacts | null;
  /** INFERSCOPE_PYTHON; null if it is not set. */
  pythonSetting: string | null;
  huggingFace: 'environment' | 'file' | null;
  docker: DockerFacts | null;
  amd: AmdFacts;
  slurm: SlurmFacts | null;
}

/** A package with native code, tested in its own process. */
export interface PackageCheck {
  version: string | null;
  works: boolean;
  /** Its result, e.g. "ran a model", or its error, one line. */
  detail: string;
}

export interface FolderFacts {
  path: string;
  writable: boolean;
  reason: string | null;
  freeBytes: number | null;
}

export interface NvidiaFacts {
  nvml: NvmlFacts | null;
  nvmlReason: NvmlReason | null;
  /** Version in /proc/driver/nvidia/version: the kernel module's, whether or not the library loads. */
  kernelModule: string | null;
  /** RmProfilingAdminOnly of /proc/driver/nvidia/params; null if not listed. */
  countersAdminOnly: boolean | null;
  /** Whether this process has CAP_SYS_ADMIN. Root in a container usually does not. */
  sysAdmin: boolean;
  perfEventParanoid: number | null;
}

export interface NvmlFacts {
  driverVersion: string | null;
  cudaVersion: string | null;
  devices: {
    name: string | null;
    memoryTotalBytes: number | null;
    computeCapability: string | null;
    migEnabled: boolean | null;
    computeProcesses: number | null;
  }[];
}

export interface ToolFacts {
  path: string;
  /** Whether the tool is on PATH. */
  onPath: boolean;
  /** Null if the tool does not print one. */
  version: string | null;
}

export interface PythonFacts {
  /** INFERSCOPE_PYTHON if set, else python3 or python. */
  command: string;
  version: string;
  packages: Record<string, string | null>;
  /** Read from torch/version.py, without importing torch. */
  torchCuda: string | null;
  torchHip: string | null;
  /** The GPUs that torch sees, or why it did not answer; null when it is not installed. */
  torchDevices: { available: boolean; names: string[] } | { failed: string } | null;
}

export interface DockerFacts {
  clientVersion: string | null;
  serverVersion: string | null;
  /** First line of the reason why the daemon does not respond. */
  reason: string | null;
  nvidiaRuntime: boolean;
}

export interface SlurmFacts {
  version: string | null;
  /** Seconds from a job's time limit or cancellation to SIGKILL. */
  killWaitS: number | null;
  nodes: number | null;
  /** Why the controller could not be queried; null if it answered. */
  reason: string | null;
  /** Whether the session folder is on a file system that other hosts cannot read. */
  homeOfOneHost: boolean;
}

export interface AmdFacts {
  /** Whether /dev/kfd, the kernel's compute interface, exists. */
  kfd: boolean;
  names: string[];
  rocmSmi: ToolFacts | null;
  amdSmi: ToolFacts | null;
  rocminfo: ToolFacts | null;
}
