/**
 * /proc/cpuinfo: one block per logical CPU, with an empty line between blocks. x86 and ARM use different keys:
 *   x86:  `model name : AMD EPYC`, `flags : fpu … avx2 …`, `physical id`, `core id`, `cpu MHz`
 *   ARM:  `CPU implementer : 0x41`, `CPU part : 0xd40`, `Features : fp asimd …`; no name, no core ids
 */
interface CpuInfo {
  model: string | null;
  logicalCores: number;
  /** Distinct (physical id, core id); null if the kernel does not list them (ARM). */
  physicalCores: number | null;
  sockets: number | null;
  flags: ReadonlySet<string>;
  /** The kernel's value per logical CPU; under most hypervisors the nominal clock. Empty on ARM. */
  clockMhz: number[];
}

/** ARM part numbers of server CPUs (ARM's MIDR_EL1 registry; the kernel prints no name for them). */
const armParts: Record<string, string> = {
  '0x41:0xd0c': 'ARM Neoverse-N1',
  '0x41:0xd40': 'ARM Neoverse-V1',
  '0x41:0xd49': 'ARM Neoverse-N2',
  '0x41:0xd4f': 'ARM Neoverse-V2',
  '0xc0:0xac3': 'Ampere-1',
};

export function parseCpuInfo(text: string): CpuInfo {
  const blocks = text
    .split(/\n\s*\n/)
    .map(readBlock)
    .filter((block) => block.has('processor'));
  const first = blocks[0] ?? new Map<string, string>();
  const cores = new Set<string>();
  const sockets = new Set<string>();
  for (const block of blocks) {
    const socket = block.get('physical id');
    const core = block.get('core id');
    if (socket === undefined || core === undefined) continue;
    sockets.add(socket);
    cores.add(`${socket}:${core}`);
  }
  const armName = armParts[`${first.get('CPU implementer')}:${first.get('CPU part')}`];
  return {
    model: first.get('model name') ?? armName ?? null,
    logicalCores: blocks.length,
    physicalCores: cores.size || null,
    sockets: sockets.size || null,
    flags: new Set((first.get('flags') ?? first.get('Features') ?? '').split(/\s+/).filter(Boolean)),
    clockMhz: blocks.map((block) => Number(block.get('cpu MHz'))).filter((mhz) => mhz > 0),
  };
}

function readBlock(block: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
  }
  return fields;
}

/** Instruction sets that affect transformer speed on a CPU. */
export interface InstructionSets {
  avx2: boolean;
  avx512: boolean;
  /** 8-bit dot products: avx512_vnni or avx_vnni; asimddp on ARM. */
  vnni: boolean;
  amx: boolean;
  neon: boolean;
  /** bfloat16 arithmetic: avx512_bf16, amx_bf16; bf16 on ARM. */
  bf16: boolean;
}

export function instructionSets(flags: ReadonlySet<string>): InstructionSets {
  const any = (...names: string[]) => names.some((name) => flags.has(name));
  return {
    avx2: any('avx2'),
    avx512: any('avx512f'),
    vnni: any('avx512_vnni', 'avx_vnni', 'asimddp'),
    amx: any('amx_tile'),
    neon: any('asimd', 'neon'),
    bf16: any('avx512_bf16', 'amx_bf16', 'bf16'),
  };
}
