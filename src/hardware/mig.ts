/** A GPU partition from its name: `NVIDIA H100 80GB HBM3 MIG 1g.10gb`. */
interface MigInstance {
  /** Name of the whole GPU. */
  parent: string;
  /**
   * 1g.10gb; extensions (+me, +gfx) add media engines, not compute. 1c.3g.40gb: a compute instance within a 3g.40gb.
   */
  profile: string;
}

/**
 * Parses a MIG device name as NVML and torch.cuda.get_device_name report it (NVIDIA MIG User Guide, "MIG Device
 * Names"); null for a whole GPU.
 */
export function migInstance(name: string): MigInstance | null {
  const match = /^(.+?) MIG ((?:\d+c\.)?\d+g\.\d+gb)(?:\+\S+)*$/.exec(name.trim());
  return match && { parent: match[1]!, profile: match[2]! };
}

/** An instance's share of its GPU. */
export interface MigShare {
  smCount: number;
  /** Share of memory and its bandwidth, in eighths (A30: quarters). */
  memory: number;
  /** Share of the L2: an instance of one compute slice has one slice of it, even with more memory. */
  l2: number;
}

type Profiles = Readonly<Record<string, readonly [smCount: number, memory: number]>>;

/**
 * GPU instance profiles: memory from the NVIDIA MIG User Guide ("Supported MIG Profiles"), SMs from the column that
 * `nvidia-smi mig -lgip` prints. Products or profiles without an entry, and parts of a GPU instance's compute, stay
 * unknown: the numbers in a name are not shares (a 3g of an H100 has 60 of 132 SMs and half the memory).
 */
const profiles: readonly [parent: RegExp, Profiles][] = [
  [/^NVIDIA A30$/, { '1g.6gb': [14, 1 / 4], '2g.12gb': [28, 2 / 4], '4g.24gb': [56, 1] }],
  [/A100-(SXM4|PCIE)-40GB$/, ga100(['1g.5gb', '1g.10gb', '2g.10gb', '3g.20gb', '4g.20gb', '7g.40gb'])],
  [
    /A100-SXM4-80GB$|A100 80GB PCIe$/,
    ga100(['1g.10gb', '1g.20gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb']),
  ],
  [/H100 80GB HBM3$/, gh100(['1g.10gb', '1g.20gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'])],
  [/H200$/, gh100(['1g.18gb', '1g.35gb', '2g.35gb', '3g.71gb', '4g.71gb', '7g.141gb'])],
];

type Names = readonly [string, string, string, string, string, string];

function ga100([one, wide, two, three, four, seven]: Names): Profiles {
  return {
    [one]: [14, 1 / 8],
    [wide]: [14, 2 / 8],
    [two]: [28, 2 / 8],
    [three]: [42, 4 / 8],
    [four]: [56, 4 / 8],
    [seven]: [98, 1],
  };
}

function gh100([one, wide, two, three, four, seven]: Names): Profiles {
  return {
    [one]: [16, 1 / 8],
    [wide]: [26, 2 / 8],
    [two]: [32, 2 / 8],
    [three]: [60, 4 / 8],
    [four]: [64, 4 / 8],
    [seven]: [132, 1],
  };
}

/** Null for an unknown product or profile. */
export function migShare({ parent, profile }: MigInstance): MigShare | null {
  const productProfiles = profiles.find(([product]) => product.test(parent))?.[1];
  const entry = productProfiles?.[profile];
  if (!productProfiles || !entry) return null;
  const [smCount, memory] = entry;
  const minShare = Math.min(...Object.values(productProfiles).map(([, share]) => share));
  return { smCount, memory, l2: profile.startsWith('1g.') ? minShare : memory };
}
