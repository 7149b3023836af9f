import type { DoctorFacts, PythonFacts } from './facts.js';
import { hasNvidiaGpu } from './judge-nvidia.js';
import { type Verdict, rowsOf, runWith } from './row.js';

const { ok, warning, missing, notApplicable } = rowsOf('python');

export function judgePython(facts: DoctorFacts): Verdict[] {
  const { python, pythonSetting } = facts;
  const [found, fix] =
    pythonSetting === null
      ? ['neither python3 nor python runs', 'sudo apt install python3 python3-venv']
      : [
          `INFERSCOPE_PYTHON names ${pythonSetting}, which does not run`,
          'unset INFERSCOPE_PYTHON, or set it to a Python that starts',
        ];
  return [
    python
      ? ok('python', 'Python', `${python.version} (${python.command})`)
      : missing('python', 'Python', found!, fix!),
    torch(python),
    torchGpu(facts),
    judgePackage('transformers', python),
    judgePackage('accelerate', python),
    judgePackage('vllm', python, 'vLLM'),
    login(facts),
  ];
}

const pip = (python: PythonFacts, packages: string): string => `${python.command} -m pip install ${packages}`;

/** A package is installed into a Python that runs. */
const noPython = (id: string, label: string): Verdict =>
  notApplicable(id, label, 'no Python', 'Needs a Python that runs: see the row Python');

function judgePackage(name: string, python: PythonFacts | null, label = name): Verdict {
  if (!python) return noPython(name, label);
  const version = python.packages[name];
  return version ? ok(name, label, version) : missing(name, label, 'not installed', pip(python, name));
}

function torch(python: PythonFacts | null): Verdict {
  if (!python) return noPython('torch', 'torch');
  const version = python.packages['torch'];
  if (!version)
    return missing(
      'torch',
      'torch',
      'not installed',
      `${pip(python, 'torch')}   (then: ${runWith('torch')})`,
    );
  return ok('torch', 'torch', `${version} (${torchBuild(python)})`);
}

export const torchBuild = (python: PythonFacts): string => gpuBuildOf(python) ?? 'CPU only';

/** Null: torch was built for the CPU only. */
function gpuBuildOf({ torchCuda, torchHip }: PythonFacts): string | null {
  if (torchCuda) return `CUDA ${torchCuda}`;
  return torchHip ? `ROCm ${torchHip}` : null;
}

function torchGpu(facts: DoctorFacts): Verdict {
  const [id, label] = ['torch_gpu', 'torch sees a GPU'] as const;
  const { python } = facts;
  if (!python) return noPython(id, label);
  const anyGpu = hasNvidiaGpu(facts) || facts.amd.kfd;
  const gpuBuild = hasNvidiaGpu(facts)
    ? pip(python, '--force-reinstall torch')
    : 'Install torch for ROCm: pytorch.org/get-started';
  if (!python.torchDevices) return notApplicable(id, label, 'torch is not installed', pip(python, 'torch'));
  if ('failed' in python.torchDevices) {
    const fix = `${python.command} -c "import torch; print(torch.cuda.is_available())"   shows the full message`;
    return warning(id, label, `torch did not respond: ${python.torchDevices.failed}`, fix);
  }
  const { available, names } = python.torchDevices;
  if (available) {
    const same = names.every((name) => name === names[0]);
    return ok(id, label, same ? `${names.length} × ${names[0]}` : names.join(', '));
  }
  if (!anyGpu) return notApplicable(id, label, 'no GPU: models run on the CPU', 'Needs a machine with a GPU');
  const build = gpuBuildOf(python);
  return build === null
    ? missing(id, label, 'no: this torch is a CPU build, models would run on the CPU', gpuBuild)
    : missing(
        id,
        label,
        `no, though it is built for ${build}: models would run on the CPU`,
        driverHint(facts, build),
      );
}

function driverHint(facts: DoctorFacts, build: string): string {
  const runs = facts.nvidia.nvml?.cudaVersion;
  return runs
    ? `The driver supports up to CUDA ${runs}, torch needs ${build}; also check CUDA_VISIBLE_DEVICES`
    : 'Check CUDA_VISIBLE_DEVICES / HIP_VISIBLE_DEVICES and the driver';
}

function login({ huggingFace }: DoctorFacts): Verdict {
  const where = huggingFace === 'environment' ? 'a token in the environment' : 'a token file';
  return huggingFace
    ? ok('hf_login', 'Hugging Face login', where)
    : missing(
        'hf_login',
        'Hugging Face login',
        'no token (needed for gated models only)',
        'hf auth login   (or export HF_TOKEN=…)',
      );
}
