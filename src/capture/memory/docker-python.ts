import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { z } from 'zod';
import { packageVersionScript } from '../../engines/transformers/interpreter.js';
import { endWithParent } from '../../model/end-with-parent.js';
import type { EngineName } from '../../model/engine.js';
import { InferscopeError } from '../../model/errors.js';
import { packageRoot } from '../../model/installation.js';
import { docker, dockerCommand, dockerOk } from './docker.js';
import { dockerFailure, lacksProgram } from './docker-failures.js';
import { lastJson } from '../../model/last-json.js';

/** Engines that an image may have, the most common first. */
const engines = { vllm: ['vllm'], transformers: ['torch', 'transformers'] } as const;
type ContainerEngine = keyof typeof engines;

/** PATH first; then the usual places in images of vLLM, ROCm, PyTorch and conda. */
const usualPaths = [
  'python3',
  'python',
  '/opt/venv/bin/python',
  '/usr/local/bin/python3',
  '/opt/conda/bin/python',
  '/usr/bin/python3',
];

interface ContainerPython {
  engine: ContainerEngine;
  /** As docker exec accepts it: a name, or its path in the container. */
  command: string;
  version: string;
  packages: Record<string, string | null>;
}

const script = `${packageVersionScript}
import json, sys
print(json.dumps({'version': '%d.%d.%d' % sys.version_info[:3], 'packages': {n: version(n) for n in ('torch', 'transformers', 'vllm')}}))
`;

const answerSchema = z.object({
  version: z.string(),
  packages: z.record(z.string(), z.string().nullable()),
});

/**
 * The Python in a container that has the engine; if none was requested, vLLM if installed, else transformers.
 * @param requested a path in the container
 * @throws E_ENGINE_MISSING listing what was found; E_USAGE for an engine that runs on the host only; docker's own failures
 */
export async function containerPython(
  container: string,
  engine: EngineName | null,
  requested: string | null,
): Promise<ContainerPython> {
  const requestedEngines = wantedEngines(engine);
  const tried: string[] = [];
  const pythons: Omit<ContainerPython, 'engine'>[] = [];
  for (const command of requested === null ? usualPaths : [requested]) {
    const answer = await docker(['exec', container, command, '-B', '-c', script]);
    if (answer.exitCode !== 0) {
      if (answer.startError === null && !answer.timedOut && lacksProgram(answer)) {
        if (requested !== null) tried.push(`${command} does not exist`);
        continue;
      }
      throw dockerFailure(answer, container, ['exec']);
    }
    const reported = answerSchema.safeParse(lastJson(answer.stdout));
    if (!reported.success) {
      tried.push(`${command} printed no list of packages`);
      continue;
    }
    pythons.push({ command, ...reported.data });
    const has = Object.entries(reported.data.packages).flatMap(([name, version]) =>
      version === null ? [] : `${name} ${version}`,
    );
    tried.push(`${command} (${reported.data.version}) has ${has.join(', ') || 'none of them'}`);
  }
  for (const name of requestedEngines) {
    const python = pythons.find(({ packages }) => engines[name].every((required) => packages[required]));
    if (python) return { engine: name, ...python };
  }
  throw new InferscopeError('E_ENGINE_MISSING', {
    what: `the container ${container} has no ${requestedEngines.map((name) => engines[name].join(' with ')).join(' and no ')}`,
    why: tried.length > 0 ? `In it: ${tried.join('; ')}.` : 'It has no Python.',
    fix: `Use a container of an image with the engine (vllm/vllm-openai, rocm/vllm, pytorch/pytorch), name its Python with --python PATH, or type: docker exec ${container} ${pythons[0]?.command ?? 'python3'} -m pip install ${engines[requestedEngines[0]!].join(' ')}`,
  });
}

const copiedSchema = z.object({ folder: z.string(), others: z.array(z.string()) });

function wantedEngines(engine: EngineName | null): ContainerEngine[] {
  if (engine === null) return ['vllm', 'transformers'];
  if (engine === 'vllm' || engine === 'transformers') return [engine];
  throw new InferscopeError('E_USAGE', {
    what: `--engine ${engine} does not run in a container`,
    why:
      engine === 'onnx'
        ? 'The embedded engine is part of inferscope and runs on this machine.'
        : 'A server is measured from outside.',
    fix:
      engine === 'onnx'
        ? 'Leave out --container, or use --engine vllm or transformers.'
        : 'Use --url URL without --container.',
  });
}

/** Folder of runs in a container; the number is the pid of the inferscope that created it. */
const prefix = 'inferscope-memory-';

/**
 * Makes a folder in the container and copies the probe into it. Not with `docker cp`: files that it writes below a tmpfs are
 * not visible inside.
 * @returns the folder, and those of other runs
 * @throws E_TOOL_FAILED if the Python does not report the folder; docker's own failures
 */
export async function copyProbe(
  container: string,
  python: string,
): Promise<{ folder: string; others: { folder: string; pid: number }[] }> {
  const probe = join(packageRoot(), 'python', 'inferscope_probe');
  const files = readdirSync(probe).filter((name) => name.endsWith('.py'));
  const payload = JSON.stringify(
    Object.fromEntries(files.map((name) => [name, readFileSync(join(probe, name), 'utf8')])),
  );
  const script = [
    'import glob, json, os, sys, tempfile',
    'root = tempfile.gettempdir()',
    `others = glob.glob(os.path.join(root, ${JSON.stringify(prefix)} + "*"))`,
    `folder = tempfile.mkdtemp(prefix=${JSON.stringify(`${prefix}${process.pid}-`)})`,
    'os.makedirs(os.path.join(folder, "probe"))',
    'os.makedirs(os.path.join(folder, "files"))',
    'for name, text in json.load(sys.stdin).items():',
    '    open(os.path.join(folder, "probe", name), "w", encoding="utf-8").write(text)',
    'print(json.dumps({"folder": folder, "others": others}))',
  ].join('\n');
  const reported = await dockerOk(['exec', '-i', container, python, '-B', '-c', script], container, {
    input: payload,
  });
  const copied = copiedSchema.safeParse(lastJson(reported));
  if (!copied.success)
    throw new InferscopeError('E_TOOL_FAILED', {
      what: `the probe could not be copied into the container ${container}`,
      why: `${python} in it printed: ${reported.trim().slice(-300) || 'nothing'}`,
      fix: 'Name another Python of the container with --python PATH.',
    });
  const { folder, others } = copied.data;
  return {
    folder,
    others: others.flatMap((line) => {
      const pid = new RegExp(`${prefix}(\\d+)-`).exec(line)?.[1];
      return pid === undefined ? [] : [{ folder: line, pid: Number(pid) }];
    }),
  };
}

/** Runs the agent in the container (inferscope_container.py). */
export function agentCall(
  container: string,
  python: string,
  folder: string,
  verb: 'ready' | 'follow' | 'stop' | 'clean',
  ...args: string[]
): string[] {
  return ['exec', container, python, '-B', `${folder}/probe/inferscope_container.py`, verb, folder, ...args];
}

/**
 * Streams the record of a run: whole lines, and the process id of the engine inside.
 * @returns a promise that resolves at the end of the run
 */
export function followRecord(
  call: readonly string[],
  { onPid, onLine }: { onPid: (pid: number) => void; onLine: (line: string) => void },
): { ended: Promise<void>; kill(): void } {
  const child = endWithParent((mark) =>
    execa(dockerCommand(), call, {
      reject: false,
      env: mark,
      buffer: false,
      stdin: 'ignore',
      stderr: 'ignore',
      // The terminal's Ctrl-C reaches the engine through its own stop.
      detached: true,
    }),
  );
  const read = async () => {
    for await (const line of child.iterable({ from: 'stdout' })) {
      const pid = /^#pid (\d+)$/.exec(line)?.[1];
      if (pid !== undefined) onPid(Number(pid));
      else if (line !== '') onLine(line);
    }
    await child;
  };
  return { ended: read().catch(() => {}), kill: () => void child.kill('SIGKILL') };
}
