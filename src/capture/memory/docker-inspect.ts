import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { InferscopeError } from '../../model/errors.js';
import { dockerOk } from './docker.js';

const inspectSchema = z.looseObject({
  Id: z.string(),
  Name: z.string(),
  Image: z.string(),
  Created: z.string(),
  State: z.looseObject({
    Status: z.string(),
    Running: z.boolean(),
    Paused: z.boolean().optional(),
    Restarting: z.boolean().optional(),
    Pid: z.number(),
    ExitCode: z.number(),
    OOMKilled: z.boolean().optional(),
    StartedAt: z.string(),
  }),
  Config: z.looseObject({
    Image: z.string(),
    Env: z.array(z.string()).nullable().optional(),
  }),
  HostConfig: z.looseObject({
    DeviceRequests: z
      .array(
        z.looseObject({
          Driver: z.string().optional(),
          Count: z.number().optional(),
          DeviceIDs: z.array(z.string()).nullable().optional(),
        }),
      )
      .nullable()
      .optional(),
    Devices: z
      .array(z.looseObject({ PathOnHost: z.string() }))
      .nullable()
      .optional(),
    ShmSize: z.number().optional(),
    Memory: z.number().optional(),
    IpcMode: z.string().optional(),
    PidMode: z.string().optional(),
  }),
});

/** Docker's data about a running container. */
export interface ContainerFacts {
  id: string;
  name: string;
  image: string;
  /** Process id of its first process on the machine of the daemon. */
  pid: number;
  /** nvidia, amd or null: vendor of the GPUs that it was given, if known. */
  vendor: 'nvidia' | 'amd' | null;
  /** The GPUs that it may use, by the driver's numbers; null: all, or not named by numbers. */
  gpus: number[] | null;
  /** Whether its processes are visible in this machine's /proc. */
  isLocal: boolean;
  /** The part to store: no environment, no command line, no volume paths. */
  stored: Record<string, unknown>;
}

/**
 * Checks that a container is running.
 * @throws E_DOCKER, E_TOOL_FAILED, E_USAGE, E_WORKLOAD_FAILED with what to type
 */
export async function inspectContainer(container: string): Promise<ContainerFacts> {
  const text = await dockerOk(['inspect', '--type', 'container', container], container);
  const parsed = z.array(inspectSchema).min(1).safeParse(JSON.parse(text));
  if (!parsed.success) {
    throw new InferscopeError('E_TOOL_FAILED', {
      what: `cannot parse the docker inspect output for the container ${container}`,
      why: z.prettifyError(parsed.error),
      fix: `Type: docker inspect ${container}`,
    });
  }
  const [found] = parsed.data;
  const { State, Config, HostConfig } = found!;
  checkState(container, State);
  const { vendor, gpus } = devicesOf(Config.Env ?? [], HostConfig);
  return {
    id: found!.Id,
    name: found!.Name.replace(/^\//, ''),
    image: Config.Image,
    pid: State.Pid,
    vendor,
    gpus,
    isLocal: isHere(found!.Id, State.Pid),
    stored: {
      name: found!.Name.replace(/^\//, ''),
      image: Config.Image,
      image_id: found!.Image,
      created: found!.Created,
      started: State.StartedAt,
      gpus: HostConfig.DeviceRequests ?? [],
      shm_bytes: HostConfig.ShmSize ?? null,
      memory_limit_bytes: HostConfig.Memory || null,
      ipc: HostConfig.IpcMode ?? null,
    },
  };
}

type State = z.infer<typeof inspectSchema>['State'];

function checkState(container: string, state: State): void {
  if (state.Running && !state.Paused && !state.Restarting) return;
  const oom = state.OOMKilled ? ', killed for lack of memory' : '';
  const how = state.Paused
    ? { what: 'is paused', why: 'Its processes are frozen.', fix: `docker unpause ${container}` }
    : state.Restarting
      ? {
          what: 'restarts in a loop',
          why: `Docker restarts it because its process exits (exit code ${state.ExitCode}${oom}).`,
          fix: `docker logs ${container}`,
        }
      : {
          what: 'is not running',
          why: `Docker reports: ${state.Status}, exit code ${state.ExitCode}${oom}.`,
          fix: `docker start ${container}`,
        };
  throw new InferscopeError('E_WORKLOAD_FAILED', {
    what: `the container ${container} ${how.what}`,
    why: how.why,
    fix: `Type: ${how.fix}`,
  });
}

type HostConfig = z.infer<typeof inspectSchema>['HostConfig'];

/** `--gpus all`, `--gpus '"device=1,3"'`, NVIDIA_VISIBLE_DEVICES of the nvidia runtime, /dev/kfd of AMD's. */
export function devicesOf(
  env: readonly string[],
  { DeviceRequests, Devices }: Pick<HostConfig, 'DeviceRequests' | 'Devices'>,
): Pick<ContainerFacts, 'vendor' | 'gpus'> {
  const request = (DeviceRequests ?? []).find(({ Driver = '' }) => Driver === '' || Driver === 'nvidia');
  if (request) return { vendor: 'nvidia', gpus: numbersOf(request.DeviceIDs ?? []) };
  if ((Devices ?? []).some(({ PathOnHost }) => PathOnHost.startsWith('/dev/kfd')))
    return { vendor: 'amd', gpus: null };
  const visible =
    env.find((variable) => variable.startsWith('NVIDIA_VISIBLE_DEVICES='))?.split('=')[1] ?? 'none';
  if (visible === '' || visible === 'none' || visible === 'void') return { vendor: null, gpus: null };
  return { vendor: 'nvidia', gpus: visible === 'all' ? null : numbersOf(visible.split(',')) };
}

function numbersOf(ids: readonly string[]): number[] | null {
  return ids.length > 0 && ids.every((id) => /^\d+$/.test(id)) ? ids.map(Number) : null;
}

/** Whether the container's process is on this machine: a daemon elsewhere, or one around this machine, uses other process ids. */
function isHere(id: string, pid: number): boolean {
  if (pid <= 0) return false;
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(id.slice(0, 12)) || namespaced(pid);
  } catch {
    return false;
  }
}

/** Under cgroup v2 with a private namespace the path does not name the container; a nested pid does. */
function namespaced(pid: number): boolean {
  const line = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return (line?.[1]?.split(/\s+/).length ?? 0) > 1;
}
