import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import process from 'node:process';
import type { SlurmFacts } from './facts.js';
import { findOnPath } from './find-tool.js';
import { failureLine, runTool } from './run-tool.js';

/** f_type of local file systems (linux/magic.h): ext, XFS, Btrfs, tmpfs, overlay, ZFS. */
const localFileSystems: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1,
]);

/** Without a configuration file, Slurm's commands look up the controller by DNS; doctor must not contact other machines unasked. */
const configFiles = [
  process.env['SLURM_CONF'],
  '/etc/slurm/slurm.conf',
  '/etc/slurm-llnl/slurm.conf',
  '/run/slurm/conf/slurm.conf',
];

/** Facts reported by Slurm; null if it is not installed. @param homePath need not exist yet */
export async function probeSlurm(homePath: string, timeoutMs: number): Promise<SlurmFacts | null> {
  if (!findOnPath('sbatch')) return null;
  if (!configFiles.some((file) => file !== undefined && existsSync(file)))
    return {
      ...parseSlurm('', ''),
      reason: 'no slurm.conf on this machine (SLURM_CONF names it)',
      homeOfOneHost: isOfOneHost(homePath),
    };
  const [config, nodes] = await Promise.all([
    runTool('scontrol', ['show', 'config'], { timeoutMs }),
    runTool('sinfo', ['--noheader', '--format', '%D'], { timeoutMs }),
  ]);
  return {
    ...parseSlurm(config.stdout, nodes.stdout),
    reason: config.ok ? null : `its controller does not answer: ${failureLine(config)}`,
    homeOfOneHost: isOfOneHost(homePath),
  };
}

export function parseSlurm(
  config: string,
  nodes: string,
): Pick<SlurmFacts, 'version' | 'killWaitS' | 'nodes'> {
  const setting = (name: string) => new RegExp(`^${name}\\s*=\\s*(\\S+)`, 'm').exec(config)?.[1] ?? null;
  const wait = setting('KillWait');
  const counts = nodes.split('\n').filter(Boolean).map(Number);
  return {
    version: setting('SLURM_VERSION'),
    killWaitS: wait === null ? null : Number(wait),
    nodes: counts.length === 0 ? null : counts.reduce((sum, n) => sum + n, 0),
  };
}

function isOfOneHost(path: string): boolean {
  let parent = path;
  while (!existsSync(parent) && dirname(parent) !== parent) parent = dirname(parent);
  try {
    return localFileSystems.has(statfsSync(parent).type);
  } catch {
    return false;
  }
}
