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
  name: string;
  /** Process id of its first process on the machine of the daemon. */
  pid: number;
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
  return {
    name: found!.Name.replace(/^\//, ''),
    pid: State.Pid,
    gpus: gpusOf(Config.Env ?? [], HostConfig),
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

/**
 * GPUs of `--gpus all`, `--gpus '"device=1,3"'` or NVIDIA_VISIBLE_DEVICES of the nvidia runtime, by number. Null for /dev/kfd of AMD's
 * runtime, which has all GPUs.
 */
export function gpusOf(
  env: readonly string[],
  { DeviceRequests, Devices }: Pick<HostConfig, 'DeviceRequests' | 'Devices'>,
): ContainerFacts['gpus'] {
  const request = (DeviceRequests ?? []).find(({ Driver = '' }) => Driver === '' || Driver === 'nvidia');
  if (request) return numbersOf(request.DeviceIDs ?? []);
  if ((Devices ?? []).some(({ PathOnHost }) => PathOnHost.startsWith('/dev/kfd'))) return null;
  const visible = env.find((variable) => variable.startsWith('NVIDIA_VISIBLE_DEVICES='))?.split('=')[1];
  return visible === undefined ? null : numbersOf(visible.split(','));
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
