import type { DoctorFacts, ToolFacts } from './facts.js';
import { type Verdict, rowsOf, runWith } from './row.js';
import { formatBytes, plural } from '../../vocabulary/format.js';

const { ok, warning, missing, notApplicable } = rowsOf('nvidia');

/** nsys samples CPU call stacks at 2 and below (Nsight Systems user guide, requirements); CUDA tracing needs none. */
const paranoidLimit = 2;

export function hasNvidiaGpu(facts: DoctorFacts): boolean {
  return (facts.nvidia.nvml?.devices.length ?? 0) > 0;
}

export function judgeNvidia(facts: DoctorFacts): Verdict[] {
  const rows = [gpu(facts), driver(facts), nvml(facts), cuda(facts)];
  return [...rows, nsys(facts), nsysSampling(facts), ncu(facts), ncuCounters(facts)];
}

/** No NVIDIA GPU according to NVML, the kernel and the PCI bus. */
function noGpu({ nvidia, pciGpus }: DoctorFacts): boolean {
  return !nvidia.nvml?.devices.length && !nvidia.kernelModule && !pciGpus?.nvidia;
}

function gpu(facts: DoctorFacts): Verdict {
  const devices = facts.nvidia.nvml?.devices ?? [];
  if (devices.length > 0) {
    const first = devices[0]!;
    const same = devices.every((device) => device.name === first.name);
    const names = same
      ? (first.name ?? 'unnamed')
      : devices.map((device) => device.name ?? 'unnamed').join(', ');
    const busy = devices.reduce((sum, device) => sum + (device.computeProcesses ?? 0), 0);
    const found = [
      `${same && devices.length > 1 ? `${devices.length} × ` : ''}${names}`,
      first.memoryTotalBytes === null ? null : formatBytes(first.memoryTotalBytes),
      first.computeCapability === null ? null : `compute capability ${first.computeCapability}`,
      devices.some((device) => device.migEnabled) ? 'MIG enabled' : null,
      busy > 0 ? `${busy} compute process${busy > 1 ? 'es' : ''} running` : null,
    ].filter((part) => part !== null);
    return ok('gpu', 'GPU', found.join(', '));
  }
  if (facts.pciGpus?.nvidia) {
    return missing('gpu', 'GPU', `${facts.pciGpus.nvidia} on the PCI bus, none usable`, driverFix(facts));
  }
  const fix = 'Needs a machine with an NVIDIA GPU; in a container: docker run --gpus all';
  return missing('gpu', 'GPU', 'no GPU found', fix);
}

function driverFix({ nvidia }: DoctorFacts): string {
  const code = nvidia.nvmlReason?.text ?? '';
  if (code.includes('LIB_RM_VERSION_MISMATCH')) return 'Driver and library differ after an update: reboot';
  if (nvidia.kernelModule) return 'In a container: docker run --gpus all; else reinstall the driver';
  return 'Install the NVIDIA driver (sudo apt install nvidia-driver-580), then reboot';
}

function driver(facts: DoctorFacts): Verdict {
  const version = facts.nvidia.nvml?.driverVersion ?? facts.nvidia.kernelModule;
  if (version) return ok('driver', 'Driver', version);
  return noGpu(facts)
    ? notApplicable('driver', 'Driver', 'no NVIDIA GPU', driverFix(facts))
    : missing('driver', 'Driver', 'not loaded', driverFix(facts));
}

function nvml(facts: DoctorFacts): Verdict {
  const { nvml: library, nvmlReason } = facts.nvidia;
  if (library) return ok('nvml', 'NVML', `answers, ${plural(library.devices.length, 'device')}`);
  if (noGpu(facts)) return notApplicable('nvml', 'NVML', 'no NVIDIA GPU', driverFix(facts));
  return missing('nvml', 'NVML', nvmlReason?.text ?? 'not opened', driverFix(facts));
}

function cuda(facts: DoctorFacts): Verdict {
  const version = facts.nvidia.nvml?.cudaVersion;
  if (version) return ok('cuda', 'CUDA', `the driver supports up to CUDA ${version}`);
  return noGpu(facts)
    ? notApplicable('cuda', 'CUDA', 'no NVIDIA GPU', driverFix(facts))
    : missing('cuda', 'CUDA', 'the driver does not report its CUDA version', driverFix(facts));
}

function toolRow(id: 'nsys' | 'ncu', label: string, tool: ToolFacts): Verdict {
  if (tool.version === null) {
    const fix = `Try: ${tool.path} --version   (used by ${runWith(id)})`;
    return warning(id, label, `${tool.path} does not report its version`, fix);
  }
  return ok(id, label, tool.onPath ? tool.version : `${tool.version}, not on PATH: ${tool.path}`);
}

function nsys(facts: DoctorFacts): Verdict {
  if (facts.nsys) return toolRow('nsys', 'nsys', facts.nsys);
  const fix =
    'sudo apt install nsight-systems-cli   (or developer.nvidia.com/nsight-systems), ' +
    `then: ${runWith('nsys')}`;
  return noGpu(facts)
    ? notApplicable('nsys', 'nsys', 'not installed', fix)
    : missing('nsys', 'nsys', 'not on PATH, not in /opt/nvidia, not in /usr/local/cuda*', fix);
}

function nsysSampling(facts: DoctorFacts): Verdict {
  const [id, label] = ['nsys_sampling', 'nsys CPU sampling'];
  const { perfEventParanoid: level, sysAdmin } = facts.nvidia;
  const fix =
    `sudo sysctl kernel.perf_event_paranoid=${paranoidLimit}   ` +
    `(CUDA tracing works without it: ${runWith('nsys')})`;
  if (!facts.nsys) return notApplicable(id, label, 'nsys is not installed', fix);
  if (level === null)
    return warning(id, label, 'this kernel has no perf events; CUDA tracing works without them', fix);
  return level <= paranoidLimit || sysAdmin
    ? ok(
        id,
        label,
        `perf_event_paranoid ${level}${level > paranoidLimit ? ', and this process is privileged' : ''}`,
      )
    : warning(id, label, `perf_event_paranoid ${level} forbids it`, fix);
}

function ncu(facts: DoctorFacts): Verdict {
  if (facts.ncu) return toolRow('ncu', 'ncu', facts.ncu);
  const fix =
    'sudo apt install nsight-compute   (or developer.nvidia.com/nsight-compute), ' +
    `then: ${runWith('nsys', 'ncu')}`;
  return noGpu(facts)
    ? notApplicable('ncu', 'ncu', 'not installed', fix)
    : missing('ncu', 'ncu', 'not on PATH, not in /opt/nvidia, not in /usr/local/cuda*', fix);
}

/** ERR_NVGPUCTRPERM: by default the driver lets only administrators read performance counters. */
function ncuCounters(facts: DoctorFacts): Verdict {
  const [id, label] = ['ncu_counters', 'ncu counters'];
  const { countersAdminOnly, sysAdmin } = facts.nvidia;
  const fix =
    'Run as root (in a container: docker run --cap-add=SYS_ADMIN), or ask an administrator for the line ' +
    '"options nvidia NVreg_RestrictProfilingToAdminUsers=0" in /etc/modprobe.d/nvidia.conf and a reboot. ' +
    `Without it: ${runWith('nsys')}, or --evaluator torch`;
  if (noGpu(facts)) return notApplicable(id, label, 'no NVIDIA GPU', fix);
  if (countersAdminOnly === false) return ok(id, label, 'readable by all users');
  if (sysAdmin) return ok(id, label, 'this process has the rights of an administrator');
  if (countersAdminOnly === null) {
    return warning(
      id,
      label,
      'the driver does not report who may read them (/proc/driver/nvidia/params)',
      fix,
    );
  }
  return missing(id, label, 'administrators only: ncu would fail with ERR_NVGPUCTRPERM', fix);
}
