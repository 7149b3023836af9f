import type { Capability, DoctorData, DoctorRow } from '../../model/documents/doctor.js';
import type { DoctorFacts } from './facts.js';
import { judgeMachine } from './judge-machine.js';
import { judgeNvidia } from './judge-nvidia.js';
import { hasAmdGpu, judgeAmd, judgeContainers, judgeSlurm } from './judge-other.js';
import { judgePython, torchBuild } from './judge-python.js';
import type { Verdict } from './row.js';

/** Required by every command; `--require` adds more. The embedded engine is an optional package that only its own runs need. */
export const alwaysRequired: readonly string[] = ['node', 'duckdb', 'home', 'tmp', 'disk'];

/** All ids for --require, in table order. */
export const doctorIds: readonly string[] = [
  'node engine duckdb home tmp disk memory cpu',
  'gpu driver nvml cuda nsys nsys_sampling ncu ncu_counters',
  'python torch torch_gpu transformers accelerate vllm hf_login',
  'docker docker_gpu',
  'amd_gpu rocm_smi amd_smi rocminfo',
  'slurm slurm_home',
].flatMap((group) => group.split(' '));

/**
 * Judges the facts: a pure function from facts to rows.
 * @param required ids in addition to alwaysRequired
 */
export function judge(facts: DoctorFacts, required: readonly string[] = []): DoctorData {
  const verdicts = [judgeMachine, judgeNvidia, judgePython, judgeContainers, judgeAmd, judgeSlurm].flatMap(
    (judgeFacts) => judgeFacts(facts),
  );
  const requiredIds = new Set([...alwaysRequired, ...required]);
  const rows = verdicts.map((verdict): DoctorRow => ({ ...verdict, required: requiredIds.has(verdict.id) }));
  const capabilities = capabilitiesOf(facts, verdicts);
  return {
    ok: rows.every((row) => !row.required || row.status === 'ok'),
    summary: capabilities.map(({ label, text }) => `${label}: ${text}`).join('; '),
    capabilities,
    rows,
  };
}

function capabilitiesOf(facts: DoctorFacts, verdicts: Verdict[]): Capability[] {
  const isOk = (id: string) => verdicts.some((verdict) => verdict.id === id && verdict.status === 'ok');
  const capability = (id: Capability['id'], label: string, usable: boolean, text: string): Capability => ({
    id,
    label,
    usable,
    text,
  });
  const lacking = verdicts.filter(
    ({ id, status }) => (id === 'engine' || alwaysRequired.includes(id)) && status !== 'ok',
  );
  const engine = capability(
    'embedded_engine',
    'embedded CPU engine',
    lacking.length === 0,
    lacking.length === 0 ? 'yes' : `no (${lacking.map((verdict) => verdict.label).join(', ')})`,
  );
  const nvidia = nvidiaText(facts, isOk);
  const python = facts.python;
  const devices = python?.torchDevices;
  const torch =
    python && devices
      ? 'failed' in devices
        ? 'no, torch did not respond'
        : devices.available
          ? `yes, ${torchBuild(python)}`
          : 'yes, on the CPU'
      : python
        ? 'not installed'
        : 'no Python';
  return [
    engine,
    capability('nvidia_capture', 'NVIDIA capture', nvidia.usable, nvidia.text),
    capability('pytorch', 'PyTorch', isOk('torch') && !(devices && 'failed' in devices), torch),
    ...(hasAmdGpu(facts)
      ? [capability('amd', 'AMD', isOk('amd_smi') || isOk('rocm_smi'), facts.amd.names[0] ?? 'GPU found')]
      : []),
  ];
}

function nvidiaText(facts: DoctorFacts, isOk: (id: string) => boolean): { usable: boolean; text: string } {
  if (!isOk('gpu'))
    return { usable: false, text: facts.pciGpus?.nvidia ? 'no, the GPU is not usable' : 'no GPU found' };
  const tools = [
    isOk('nsys') ? 'nsys' : null,
    isOk('ncu') ? (isOk('ncu_counters') ? 'ncu' : 'ncu without counters') : null,
    'telemetry',
  ].filter((tool) => tool !== null);
  return {
    usable: tools.length > 1,
    text: tools.length > 1 ? tools.join(' + ') : 'telemetry only (no nsys, no ncu)',
  };
}
