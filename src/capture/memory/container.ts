import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fromErrorLine, recordedError } from '../../engines/transformers/process-failure.js';
import { withRootCause } from '../../engines/vllm/root-cause.js';
import type { BenchOrder } from '../../model/bench.js';
import type { Issue } from '../../model/document.js';
import type { EngineLaunch, LaunchControl, PreparedEngine } from '../../model/engine.js';
import { runAfterExit } from '../../model/end-with-parent.js';
import { InferscopeError } from '../../model/errors.js';
import { packageRoot } from '../../model/installation.js';
import { redactText, secretsOfEnvironment } from '../../model/redaction.js';
import { processTree } from '../process-tree.js';
import { openGpus } from '../telemetry-gpus.js';
import { placeContainerModel } from './container-model.js';
import { docker, dockerCommand, isLocalDocker } from './docker.js';
import { dockerFailure } from './docker-failures.js';
import { findInsideTool, insideGpuSource } from './docker-gpus.js';
import { type ContainerFacts, inspectContainer } from './docker-inspect.js';
import { hostPid } from './docker-processes.js';
import { recordTranslator } from './docker-record.js';
import { agentCall, containerPython, copyProbe, followRecord } from './docker-python.js';
import { writeShim } from './docker-shim.js';
import type { RunFile, MemoryTarget, OpenTarget, TargetRequest } from './memory-target.js';
import { isAlive } from '../../model/alive.js';

/** Time for a Python engine to exit after its iteration (engines/transformers/launch.ts). */
const graceMs = 30_000;
/** Time to drain the pipe after the engine has exited. */
const followGraceMs = 10_000;

interface Place {
  container: string;
  facts: ContainerFacts;
  python: string;
  folder: string;
  /** Cancels the cleanup that runs if this command is killed. */
  cancel: () => void;
}

/**
 * Opens a running container: checks it, copies the probe in, and uses the container's Python as the engine's interpreter.
 * @throws E_DOCKER, E_TOOL_FAILED, E_USAGE, E_WORKLOAD_FAILED, E_ENGINE_MISSING, E_MODEL_NOT_FOUND … with docker's own message
 */
export const openContainer: OpenTarget = async (target): Promise<MemoryTarget> => {
  const container = target.container!;
  target.onProgress('looking into the container', container);
  const facts = await inspectContainer(container);
  const { engine, command: python } = await containerPython(container, target.engine, target.request.python);
  refuseServer(target, engine);
  const { folder, others } = await copyProbe(container, python);
  // A killed docker client leaves its process in the container running, which keeps its GPU memory.
  const cancel = runAfterExit([dockerCommand(), ...agentCall(container, python, folder, 'clean')]);
  const place = { container, facts, python, folder, cancel };
  try {
    if (facts.isLocal) await endLeftovers(place, others);
    const prepared = await prepareIn(place, engine, target);
    const { gpus } = await openGpus();
    gpus?.close();
    // A Docker around this process (its socket mounted in) uses other process ids, but has the same GPUs.
    const samplesHere = facts.isLocal || (gpus !== null && (await isLocalDocker()));
    const tool = gpus !== null && samplesHere ? null : await findInsideTool(container);
    return targetOf(place, prepared, tool, samplesHere);
  } catch (error) {
    await clean(place);
    throw error;
  }
};

function refuseServer({ request }: TargetRequest, engine: string): void {
  const via = request.engineArgs['via'];
  if (engine !== 'vllm' || via === undefined || via === 'offline') return;
  throw new InferscopeError('E_USAGE', {
    what: `--engine-arg via=${via} cannot be combined with --container`,
    why: 'In a container the probe steps the engine and reports its memory.',
    fix: 'Leave out via.',
  });
}

/** Runs of a killed inferscope may still use the GPU. */
async function endLeftovers(
  { container, python, folder }: Place,
  others: { folder: string; pid: number }[],
): Promise<void> {
  for (const other of others) {
    if (isAlive(other.pid)) continue;
    // The folder's own agent may be incomplete: use ours.
    const call = agentCall(container, python, folder, 'clean');
    await docker([...call.slice(0, -1), other.folder]);
  }
}

async function prepareIn(
  { container, python, folder }: Place,
  engine: 'vllm' | 'transformers',
  { request, scratch, loadEngine }: TargetRequest,
): Promise<PreparedEngine> {
  const placed = await placeContainerModel(request.model, container, python, scratch);
  const probe = join(packageRoot(), 'python', 'inferscope_probe');
  const shim = join(scratch, 'container-python');
  const places = { [probe]: `${folder}/probe`, [scratch]: `${folder}/files`, ...placed.places };
  writeShim(shim, { container, python, folder, places, scratch, docker: dockerCommand() });
  try {
    const found = await loadEngine(engine);
    const engineArgs = engine === 'vllm' ? request.engineArgs : withoutVllm(request.engineArgs);
    return await found.prepare({ ...request, engineArgs, model: placed.model, python: shim });
  } catch (error) {
    throw withoutShim(error, shim, `docker exec ${container} ${python}`);
  }
}

/**
 * The request for transformers, if the request has the flags of vLLM because the container's engine was not known yet: no reserved share of
 * the GPU, no length limit.
 */
function withoutVllm({
  gpu_memory_utilization: _share,
  max_model_len: _length,
  ...args
}: Record<string, string>): Record<string, string> {
  if (args['kv_cache_dtype'] === undefined) return args;
  throw new InferscopeError('E_USAGE', {
    what: `--kv-cache-dtype ${args['kv_cache_dtype']} cannot be used with transformers`,
    why: 'The container has no vLLM, and transformers stores the cache in the dtype of the model.',
    fix: 'Leave out --kv-cache-dtype, or use a container with vLLM.',
  });
}

/** Replaces the shim by the interpreter in messages, since it is a command the user can type. */
function withoutShim(error: unknown, shim: string, words: string): unknown {
  if (!(error instanceof InferscopeError)) return error;
  const { what, why, fix } = error.parts;
  const replaced = (text: string) => text.replaceAll(shim, words);
  return new InferscopeError(
    error.code,
    { what: replaced(what), why: replaced(why), fix: replaced(fix) },
    { cause: error },
  );
}

function targetOf(
  place: Place,
  prepared: PreparedEngine,
  tool: Awaited<ReturnType<typeof findInsideTool>>,
  samplesHere: boolean,
): MemoryTarget {
  const { container, facts, python, folder } = place;
  const run = { pid: null as number | null };
  const issues: Issue[] = [];
  if (!facts.isLocal) {
    issues.push({
      code: 'container_elsewhere',
      severity: 'warning',
      text: `The processes of the container ${container} are not visible on this machine (remote or nested Docker): memory per process is unknown from outside.`,
    });
  }
  return {
    where: 'container',
    containerName: facts.name,
    prepared: { ...prepared, launch: (order, control) => launchIn(place, prepared, run, order, control) },
    gpus: facts.gpus,
    samplesHere,
    pids: () => (run.pid === null || !facts.isLocal ? [] : processTree(run.pid)),
    sources: tool === null ? [] : [insideGpuSource(container, tool, facts.gpus)],
    issues,
    async readLeftovers(): Promise<RunFile[]> {
      const script = 'import sys; sys.stdout.write(open(sys.argv[1], errors="replace").read())';
      const log = await docker(['exec', container, python, '-B', '-c', script, `${folder}/engine.log`]);
      const secrets = secretsOfEnvironment(process.env);
      return [
        { kind: 'container-inspect', name: 'container.json', text: JSON.stringify(facts.stored, null, 2) },
        ...(log.exitCode === 0 && log.stdout !== ''
          ? [{ kind: 'log' as const, name: 'engine.log', text: redactText(log.stdout, secrets) }]
          : []),
      ];
    },
    close: () => clean(place),
  };
}

async function clean({ container, python, folder, cancel }: Place): Promise<void> {
  await docker(agentCall(container, python, folder, 'clean'));
  cancel();
}

function launchIn(
  place: Place,
  prepared: PreparedEngine,
  run: { pid: number | null },
  order: BenchOrder,
  control: LaunchControl,
): EngineLaunch {
  const { container, facts, python, folder } = place;
  const call = (verb: 'ready' | 'follow' | 'stop', ...args: string[]) =>
    agentCall(container, python, folder, verb, ...args);
  run.pid = null;
  return {
    get pid() {
      return facts.isLocal ? run.pid : null;
    },
    ended: waitForEnd(),
  };

  async function waitForEnd(): Promise<{ failure: unknown; log: string | null }> {
    const ready = await docker(call('ready'));
    if (ready.exitCode !== 0) return { failure: dockerFailure(ready, container, ['exec']), log: null };
    const pidHere = (inside: number) => (facts.isLocal ? hostPid(inside, facts.pid) : null);
    const translate = recordTranslator({ pid: pidHere, gpus: facts.gpus });
    const following = followRecord(call('follow'), {
      onPid: (inside) => (run.pid = pidHere(inside)),
      onLine: (line) => appendFileSync(control.recordPath, `${translate(line)}\n`),
    });
    let kill: NodeJS.Timeout | undefined;
    const stop = () => {
      void docker(call('stop', 'INT'));
      kill = setTimeout(() => void docker(call('stop', 'KILL')), graceMs);
    };
    if (control.signal.aborted) stop();
    else control.signal.addEventListener('abort', stop, { once: true });

    const ended = await prepared.launch(order, control).ended;
    clearTimeout(kill);
    control.signal.removeEventListener('abort', stop);
    if (ended.failure !== null) await docker(call('stop', 'KILL'));
    const late = setTimeout(() => following.kill(), followGraceMs);
    await following.ended;
    clearTimeout(late);
    run.pid = null;
    return { failure: await failureOf(ended), log: ended.log };
  }

  /** The engine's own message first, then docker's; its process ids are those of the container. */
  async function failureOf({ failure, log }: { failure: unknown; log: string | null }): Promise<unknown> {
    if (failure === null) return null;
    const reported = await recordedError(control.recordPath, 'any');
    if (reported) return withRootCause(fromErrorLine(reported), log);
    if (control.signal.aborted) return failure;
    const now = await docker(['inspect', '--type', 'container', '--format', '{{.State.Running}}', container]);
    if (now.exitCode === 0 && now.stdout.trim() === 'true') return failure;
    if (now.exitCode !== 0) return dockerFailure(now, container, ['inspect']);
    return new InferscopeError('E_WORKLOAD_FAILED', {
      what: `the container ${container} stopped during the run`,
      why: log?.trim().split('\n').at(-1) ?? 'Its processes were stopped with it.',
      fix: `Type: docker logs ${container} – and docker start ${container}; measurements until then were saved.`,
    });
  }
}
