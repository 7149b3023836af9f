import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { transformersEngine } from '../../engines/transformers/engine.js';
import { launchPython } from '../../engines/transformers/launch.js';
import { readArchitecture } from '../../llm/read-architecture.js';
import { countParameters } from '../../llm/parameters.js';
import { type BenchOrder, type BenchProgress, benchPoint } from '../../model/bench.js';
import type { EngineName, EngineRequest } from '../../model/engine.js';
import { packageRoot } from '../../model/installation.js';
import { openContainer } from './container.js';
import { dockerCommand } from './docker.js';
import { inspectContainer } from './docker-inspect.js';
import { hostPid } from './docker-processes.js';
import { agentCall, containerPython, copyProbe, followRecord } from './docker-python.js';
import { writeShim } from './docker-shim.js';
import type { MemoryTarget, TargetRequest } from './memory-target.js';

// Needs a Docker engine and a running container: npm run test:docker creates both and names them here.
const container = process.env['INFERSCOPE_TEST_CONTAINER'] ?? '';
const torch = process.env['INFERSCOPE_TEST_CONTAINER_TORCH'] ?? '';

const root = mkdtempSync(join(tmpdir(), 'inferscope-container-'));
afterAll(() => rmSync(root, { recursive: true }));
const docker = (...args: string[]) => spawnSync('docker', args, { encoding: 'utf8' });
const runInside = (...args: string[]) =>
  execFileSync('docker', ['exec', container, ...args], { encoding: 'utf8' });
const leftoverFolders = () =>
  runInside('ls', '/tmp')
    .split('\n')
    .filter((name) => name.startsWith('inferscope-memory-'));
const commands = () => docker('top', container, '-eo', 'pid,args').stdout;

const engineRequest = (change: Partial<EngineRequest> = {}): EngineRequest => ({
  model: 'llama-24m',
  weights: null,
  dtype: 'float32',
  device: 'cpu',
  threads: 1,
  engineArgs: {},
  url: null,
  python: null,
  ...change,
});
let scratches = 0;
const target = (change: Partial<TargetRequest> = {}): TargetRequest => {
  const scratch = join(root, `scratch-${scratches++}`);
  mkdirSync(join(scratch, 'launch'), { recursive: true });
  return {
    engine: null,
    request: engineRequest(),
    container,
    url: null,
    scratch,
    signal: new AbortController().signal,
    onProgress: () => {},
    loadEngine: async () => transformersEngine,
    ...change,
  };
};
const order = (change: Partial<BenchOrder> = {}): BenchOrder => ({
  v: 1,
  execution_id: 'memory',
  launch: 0,
  first_iteration: 0,
  model: 'llama-24m',
  weights: 'random',
  dtype: 'float32',
  device: 'cpu',
  engine_args: {},
  points: [benchPoint(['latency'], 1, 16, 4)],
  repeats: 1,
  warmup: { min: 1, max: 1, within: 1 },
  device_work: false,
  seed: 1,
  memory: { snapshot: false },
  ...change,
});
const records = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe.skipIf(container === '')('a container of a real Docker engine', { timeout: 240_000 }, () => {
  test.each([
    [{ container: 'inferscope-no-such-container' }, 'E_USAGE', 'there is no container'],
    [{ container: `${container}-stopped` }, 'E_WORKLOAD_FAILED', 'is not running'],
    [
      { request: engineRequest({ python: '/no/such/python' }) },
      'E_ENGINE_MISSING',
      'has no vllm and no torch',
    ],
    [{ engine: 'vllm' as EngineName }, 'E_ENGINE_MISSING', 'has no vllm'],
    [{ engine: 'onnx' as EngineName }, 'E_USAGE', 'does not run in a container'],
  ])('%j is refused before anything is copied', async (change, code, what) => {
    await expect(openContainer(target(change))).rejects.toMatchObject({
      code,
      parts: { what: expect.stringContaining(what), fix: expect.any(String) },
    });
    expect(leftoverFolders()).toEqual([]);
  });

  test('paused container', async () => {
    docker('pause', container);
    try {
      await expect(openContainer(target())).rejects.toMatchObject({
        parts: { what: `the container ${container} is paused`, fix: `Type: docker unpause ${container}` },
      });
    } finally {
      docker('unpause', container);
    }
  });

  test('docker that does not answer', async () => {
    const before = process.env['DOCKER_HOST'];
    process.env['DOCKER_HOST'] = `unix://${join(root, 'none.sock')}`;
    try {
      await expect(openContainer(target())).rejects.toMatchObject({ code: 'E_DOCKER' });
    } finally {
      if (before === undefined) delete process.env['DOCKER_HOST'];
      else process.env['DOCKER_HOST'] = before;
    }
  });

  test('a Python program: its files are copied in, its record comes out, its memory is sampled from outside; then nothing is left', async () => {
    const { scratch } = target();
    const facts = await inspectContainer(container);
    expect(facts).toMatchObject({ name: container, isLocal: true, gpus: null });
    await expect(containerPython(container, 'transformers', 'python3')).rejects.toThrow(
      /has no torch with transformers/,
    );
    const { folder, others } = await copyProbe(container, 'python3');
    expect(others).toEqual([]);
    const probe = join(packageRoot(), 'python', 'inferscope_probe');
    const shim = join(scratch, 'container-python');
    const places = { [probe]: `${folder}/probe`, [scratch]: `${folder}/files` };
    writeShim(shim, { container, python: 'python3', folder, places, scratch, docker: dockerCommand() });
    // 64 MiB that the program touches, reported in a line of the record.
    const program = join(scratch, 'launch', 'program.py');
    writeFileSync(
      program,
      [
        'import json, os, sys, time',
        `sys.path.insert(0, ${JSON.stringify(probe)})`.replace(probe, `${folder}/probe`),
        'from inferscope_record import recorder',
        'order = json.load(open(sys.argv[1]))',
        'held = bytearray(os.urandom(1 << 20) * 64)',
        'r = recorder()',
        'r.clock()',
        'r.add_line("telemetry", None, scope="process", metric="held_bytes", value=len(held))',
        'r.add_line("telemetry", None, scope="process", metric="place", value=1 if order["place"] == os.path.join(os.getcwd(), "launch") else 0)',
        'r.flush()',
        'print("talk", file=sys.stderr)',
        'time.sleep(3)',
      ].join('\n'),
    );
    const recordPath = join(scratch, 'record.jsonl');
    let pid: number | null = null;
    const lines: string[] = [];
    const following = followRecord(agentCall(container, 'python3', folder, 'follow'), {
      onPid: (innerPid) => (pid = hostPid(innerPid, facts.pid)),
      onLine: (line) => lines.push(line),
    });
    process.env['HF_TOKEN'] = 'hf_passedonbyname0123456789';
    const launched = launchPython(
      {
        command: shim,
        script: program,
        order: { ...order(), place: join(scratch, 'launch') },
      },
      {
        recordPath,
        scratch: join(scratch, 'launch'),
        signal: new AbortController().signal,
        onProgress: () => {},
      },
    );
    delete process.env['HF_TOKEN'];
    while (lines.length < 3) await sleep(50);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const rss = Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * 1024;
    expect(rss).toBeGreaterThan(64 * 2 ** 20);
    expect(rss).toBeLessThan(128 * 2 ** 20);
    // The token is in its environment, and on no command line of this machine.
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toContain('hf_passedonbyname');
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain('hf_passedonbyname');
    const ended = await launched.ended;
    expect(ended.failure).toBeNull();
    expect(ended.log).toContain('talk');
    await following.ended;
    const reported = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(reported.find(({ metric }) => metric === 'held_bytes')).toMatchObject({ value: 64 * 2 ** 20 });
    // Paths in JSON files are those of the container.
    expect(reported.find(({ metric }) => metric === 'place')).toMatchObject({ value: 1 });
    expect(readFileSync(join(scratch, 'launch', 'order.json'), 'utf8')).toContain(scratch);
    expect(docker(...agentCall(container, 'python3', folder, 'clean')).status).toBe(0);
    expect(leftoverFolders()).toEqual([]);
  });

  describe.skipIf(torch === '')('PyTorch in it', () => {
    let open: MemoryTarget | null = null;
    afterEach(async () => {
      await open?.close();
      open = null;
      expect(leftoverFolders()).toEqual([]);
      expect(commands()).not.toContain('inferscope_');
    });
    const start = async (
      change: Partial<BenchOrder>,
      signal: AbortSignal,
      onProgress: (progress: BenchProgress) => void,
    ) => {
      const request = target({ request: engineRequest({ python: torch }) });
      open = await openContainer(request);
      const recordPath = join(request.scratch, 'record.jsonl');
      const launched = open.prepared.launch(order(change), {
        recordPath,
        scratch: join(request.scratch, 'launch'),
        signal,
        onProgress,
      });
      return { target: open, launched, recordPath };
    };

    test('transformers runs with weights that match the dimensions, seen from both sides', async () => {
      const pids = new Set<number>();
      let maxBytes = 0;
      const {
        target: place,
        launched,
        recordPath,
      } = await start({}, new AbortController().signal, () => {
        for (const pid of place.pids!()) pids.add(pid);
        // Its pid is known a moment after its start.
        if (launched.pid === null) return;
        const hwm = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${launched.pid}/status`, 'utf8'));
        maxBytes = Number(hwm![1]) * 1024;
      });
      expect(place).toMatchObject({ where: 'container', containerName: container, samplesHere: true });
      expect(place.prepared.workload.engine.options).toMatchObject({ torch: expect.any(String) });
      const { failure } = await launched.ended;
      expect(failure).toBeNull();
      const lines = records(recordPath);
      const weights = lines.find(({ kind }) => String(kind).startsWith('weights:load'));
      const config = lines.find(({ type }) => type === 'model')!['config'] as Record<string, unknown>;
      expect(weights!['bytes']).toBe(countParameters(readArchitecture(config)).total * 4);
      expect(lines.filter(({ type, warmup }) => type === 'request' && warmup === false)).toHaveLength(1);
      // The record and the driver use the same process ids.
      expect(lines.map(({ pid }) => pid)).toEqual(lines.map(() => [...pids][0]));
      const rss = lines
        .filter(({ kind }) => String(kind).startsWith('rss:'))
        .map(({ bytes }) => Number(bytes));
      expect(maxBytes / Math.max(...rss)).toBeGreaterThan(0.9);
      expect(maxBytes / Math.max(...rss)).toBeLessThan(1.3);
      const leftovers = await place.readLeftovers();
      expect(leftovers[0]).toMatchObject({ kind: 'container-inspect' });
      expect(JSON.parse(leftovers[0]!.text)).toMatchObject({ name: container });
    });

    test('leftovers of an earlier killed inferscope are stopped first', async () => {
      const folder = '/tmp/inferscope-memory-4194303-left';
      runInside('sh', '-c', `mkdir -p ${folder}/files`);
      docker(
        'exec',
        '-d',
        '-w',
        `${folder}/files`,
        container,
        'sh',
        '-c',
        'echo $$ > ../child.pid; sleep 1000 & wait',
      );
      while (!commands().includes('sleep 1000')) await sleep(50);
      open = await openContainer(target({ request: engineRequest({ python: torch }) }));
      expect(commands()).not.toContain('sleep 1000');
      expect(leftoverFolders()).toHaveLength(1);
    });

    test('Ctrl-C ends the engine in the container, and its records stay', async () => {
      const controller = new AbortController();
      const { launched, recordPath } = await start({ repeats: 500 }, controller.signal, ({ type }) => {
        if (type === 'iteration') controller.abort();
      });
      await launched.ended;
      expect(commands()).not.toContain('inferscope_engine.py');
      expect(records(recordPath).some(({ type }) => type === 'request')).toBe(true);
    });

    test('a container that is stopped during the run', async () => {
      const { launched, recordPath } = await start(
        { repeats: 500 },
        new AbortController().signal,
        ({ type }) => {
          if (type === 'iteration') docker('kill', container);
        },
      );
      const { failure } = await launched.ended;
      docker('start', container);
      expect(failure).toMatchObject({
        code: 'E_WORKLOAD_FAILED',
        parts: { what: `the container ${container} stopped during the run` },
      });
      expect(records(recordPath).length).toBeGreaterThan(0);
    });
  });
});
