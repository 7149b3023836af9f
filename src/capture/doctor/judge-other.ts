import type { DoctorFacts, ToolFacts } from './facts.js';
import { hasNvidiaGpu } from './judge-nvidia.js';
import { type Verdict, rowsOf } from './row.js';
import { formatSetting } from '../../vocabulary/format.js';

export function judgeContainers(facts: DoctorFacts): Verdict[] {
  const { ok, missing, notApplicable } = rowsOf('containers');
  const { docker } = facts;
  const toolkit =
    'Install nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker';
  const install = 'sudo apt install docker.io   (only needed to profile engines in containers)';
  if (!docker) {
    return [
      missing('docker', 'Docker', 'not installed', install),
      notApplicable('docker_gpu', 'Docker with GPUs', 'no Docker', toolkit),
    ];
  }
  const client = docker.clientVersion ? `client ${docker.clientVersion}` : 'client';
  const start = 'sudo systemctl start docker; sudo usermod -aG docker $USER, then log in again';
  return [
    docker.serverVersion
      ? ok('docker', 'Docker', `${client}, daemon ${docker.serverVersion}`)
      : missing('docker', 'Docker', `${client}; ${docker.reason ?? 'no daemon'}`, start),
    !hasNvidiaGpu(facts)
      ? notApplicable('docker_gpu', 'Docker with GPUs', 'no NVIDIA GPU', toolkit)
      : docker.nvidiaRuntime
        ? ok('docker_gpu', 'Docker with GPUs', 'nvidia runtime')
        : missing('docker_gpu', 'Docker with GPUs', 'no nvidia runtime configured', toolkit),
  ];
}

export function hasAmdGpu({ amd, pciGpus }: DoctorFacts): boolean {
  return amd.names.length > 0 || (amd.kfd && (pciGpus?.amd ?? 0) > 0);
}

export function judgeAmd(facts: DoctorFacts): Verdict[] {
  const { ok, warning, missing, notApplicable } = rowsOf('amd');
  const { amd, pciGpus } = facts;
  const rocm = 'Install ROCm: rocm.docs.amd.com';
  const tool = (id: string, name: string, found: ToolFacts | null): Verdict => {
    if (found?.version)
      return ok(id, name, found.onPath ? found.version : `${found.version}, not on PATH: ${found.path}`);
    // rocminfo has no version of its own
    if (found && id === 'rocminfo') return ok(id, name, found.path);
    if (found) return warning(id, name, `${found.path} does not report its version`, `Try: ${found.path}`);
    return hasAmdGpu(facts)
      ? missing(id, name, 'not on PATH, not in /opt/rocm*', rocm)
      : notApplicable(id, name, 'not installed', rocm);
  };
  const gpu = hasAmdGpu(facts)
    ? ok('amd_gpu', 'GPU', amd.names.join(', ') || `${pciGpus?.amd} on the PCI bus`)
    : pciGpus?.amd
      ? missing(
          'amd_gpu',
          'GPU',
          `${pciGpus.amd} on the PCI bus, no /dev/kfd`,
          'sudo modprobe amdgpu, or install amdgpu-dkms',
        )
      : notApplicable('amd_gpu', 'GPU', 'no GPU found', 'Needs a machine with an AMD GPU');
  return [
    gpu,
    tool('rocm_smi', 'rocm-smi', amd.rocmSmi),
    tool('amd_smi', 'amd-smi', amd.amdSmi),
    tool('rocminfo', 'rocminfo', amd.rocminfo),
  ];
}

/** Common problems of jobs with many ranks: reports lost at the end of a job, and sessions that other nodes cannot read. */
export function judgeSlurm({ slurm, home }: DoctorFacts): Verdict[] {
  const { ok, warning, missing, notApplicable } = rowsOf('jobs');
  const use = 'Only for clusters: import --ranks and sweep take --on slurm there';
  if (slurm === null)
    return [
      notApplicable('slurm', 'Slurm', 'sbatch is not on PATH', use),
      notApplicable('slurm_home', 'Sessions of all nodes', 'no Slurm', use),
    ];
  const { version, killWaitS, nodes, reason, homeOfOneHost } = slurm;
  const wait =
    killWaitS === null
      ? ''
      : `; SIGKILL ${formatSetting(killWaitS, 's')} after a job's time limit or cancellation: unwritten profiler reports are lost`;
  const local = homeOfOneHost && nodes !== null && nodes > 1;
  return [
    reason === null
      ? ok('slurm', 'Slurm', `${version ?? 'version unknown'}${wait}`)
      : missing('slurm', 'Slurm', reason, 'SLURM_CONF=/path/to/slurm.conf, then: scontrol ping'),
    local
      ? warning(
          'slurm_home',
          'Sessions of all nodes',
          `${home.path} is on a disk of this host; ${nodes} nodes`,
          'INFERSCOPE_HOME=/a/shared/folder, on a file system that all nodes mount under the same path',
        )
      : ok('slurm_home', 'Sessions of all nodes', nodes === 1 ? 'one node' : home.path),
  ];
}
