import { z } from 'zod';
import { kernelFiles } from '../../hardware/kernel-files.js';
import type { AmdFacts, DockerFacts } from './facts.js';
import { findTool, findOnPath } from './find-tool.js';
import { runTool } from './run-tool.js';

/** Fields used from `docker info --format '{{json .}}'`; the client answers even when the daemon does not. */
const dockerInfoSchema = z.object({
  ServerVersion: z.string().nullish(),
  ServerErrors: z.array(z.string()).nullish(),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
  ClientInfo: z.object({ Version: z.string().nullish() }).nullish(),
});

export async function probeDocker(timeoutMs: number): Promise<DockerFacts | null> {
  const docker = findOnPath('docker');
  if (!docker) return null;
  const run = await runTool(docker, ['info', '--format', '{{json .}}'], { timeoutMs });
  return parseDockerInfo(run.stdout, run.timedOut ? 'docker timed out' : run.stderr);
}

export function parseDockerInfo(stdout: string, stderr: string): DockerFacts {
  const info = dockerInfoSchema.safeParse(jsonOf(stdout));
  const data = info.success ? info.data : {};
  const serverVersion = data.ServerVersion || null;
  const reason = data.ServerErrors?.[0] ?? stderr.trim().split('\n')[0] ?? '';
  return {
    clientVersion: data.ClientInfo?.Version || null,
    serverVersion,
    reason: serverVersion ? null : reason || 'the daemon did not respond',
    nvidiaRuntime: 'nvidia' in (data.Runtimes ?? {}),
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** ROCm's own tools; rocminfo lists the devices. */
export async function probeAmd(timeoutMs: number, root = '/'): Promise<AmdFacts> {
  const search = (name: string, versionArgs: string[]) =>
    findTool({
      name,
      patterns: [`/opt/rocm*/bin/${name}`],
      versionArgs,
      version: /version:?\s+v?(\d+(?:\.\d+)+)/i,
      timeoutMs,
    });
  const [rocmSmi, amdSmi, rocminfo] = await Promise.all([
    search('rocm-smi', ['--version']),
    search('amd-smi', ['version']),
    search('rocminfo', ['--version']),
  ]);
  const listing = rocminfo ? await runTool(rocminfo.path, [], { timeoutMs }) : null;
  return {
    kfd: kernelFiles(root).exists('/dev/kfd'),
    names: parseRocminfo(listing?.stdout ?? ''),
    rocmSmi,
    amdSmi,
    rocminfo,
  };
}

/** Marketing names of the agents with Device Type GPU; CPUs are agents too. */
export function parseRocminfo(listing: string): string[] {
  return listing
    .split(/\*{7}\s*\nAgent \d+/)
    .filter((agent) => /Device Type:\s+GPU/.test(agent))
    .map((agent) => /Marketing Name:[ \t]+(\S.*?)\s*$/m.exec(agent)?.[1] ?? 'unnamed GPU');
}
