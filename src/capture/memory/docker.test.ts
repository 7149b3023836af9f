import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { dockerFailure, lacksProgram, type DockerAnswer } from './docker-failures.js';
import { insideGpuSource, insideTools, readNvidiaSmi } from './docker-gpus.js';
import { gpusOf } from './docker-inspect.js';
import { hostPid } from './docker-processes.js';
import { containerPython, copyProbe } from './docker-python.js';
import { recordTranslator } from './docker-record.js';
import { writeShim } from './docker-shim.js';

// The container path itself runs against a real Docker engine in test/docker/.

const answer = (change: Partial<DockerAnswer>): DockerAnswer => ({
  stdout: '',
  stderr: '',
  exitCode: 1,
  startError: null,
  timedOut: false,
  ...change,
});

/** As printed by Docker 20.10 and 28.2. */
const words = {
  missing: 'Error response from daemon: No such container: nope',
  stopped:
    'Error response from daemon: Container f2e79dd79147a767b3f51a169b4122c007bc3a6d5e80b11492c183653d966110 is not running',
  paused: 'Error response from daemon: Container m2-up is paused, unpause the container before exec',
  forbidden:
    'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.50/containers/up/json": dial unix /var/run/docker.sock: connect: permission denied',
  down: 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
  noProgram:
    'OCI runtime exec failed: exec failed: unable to start container process: exec: "vllm": executable file not found in $PATH: unknown',
  noPath:
    'OCI runtime exec failed: exec failed: unable to start container process: exec: "/no/python": stat /no/python: no such file or directory: unknown',
};

describe('docker errors, with what to type', () => {
  test.each([
    [words.missing, 'E_USAGE', 'there is no container c', 'docker ps -a'],
    [words.stopped, 'E_WORKLOAD_FAILED', 'the container c is not running', 'docker start c'],
    [words.paused, 'E_WORKLOAD_FAILED', 'the container c is paused', 'docker unpause c'],
    [words.forbidden, 'E_DOCKER', 'this user has no access to Docker', 'usermod -aG docker'],
    [words.down, 'E_DOCKER', 'Docker does not respond', 'systemctl start docker'],
  ])('%s', (stderr, code, what, fix) => {
    const failure = dockerFailure(answer({ stderr }), 'c', ['exec']);
    expect(failure).toMatchObject({ code, parts: { what } });
    expect(failure.parts.fix).toContain(fix);
    // Docker's message is part of the reason.
    expect(failure.parts.why).toContain(stderr.slice(0, 60));
  });

  test('no docker, a docker that hangs, an unknown message', () => {
    expect(
      dockerFailure(answer({ exitCode: null, startError: 'ENOENT' }), 'c', ['inspect']).parts.fix,
    ).toContain('INFERSCOPE_DOCKER=podman');
    expect(dockerFailure(answer({ exitCode: null, timedOut: true }), 'c', ['exec']).code).toBe('E_TIMEOUT');
    // The daemon hangs: E_DOCKER keeps a sweep from starting other runs in containers.
    expect(dockerFailure(answer({ exitCode: null, timedOut: true }), 'c', ['inspect']).code).toBe('E_DOCKER');
    expect(dockerFailure(answer({ stderr: 'hm' }), 'c', ['exec']).parts.why).toBe('hm');
  });

  test('a program that the container lacks is not a docker failure', () => {
    expect(lacksProgram(answer({ exitCode: 126, stdout: words.noProgram }))).toBe(true);
    expect(lacksProgram(answer({ exitCode: 126, stderr: words.noPath }))).toBe(true);
    expect(lacksProgram(answer({ exitCode: 1, stderr: words.missing }))).toBe(false);
  });
});

test('a Python that prints other text than asked for', async () => {
  // Prints its arguments.
  vi.stubEnv('INFERSCOPE_DOCKER', 'echo');
  await expect(containerPython('c', 'transformers', 'python3')).rejects.toMatchObject({
    code: 'E_ENGINE_MISSING',
    parts: { why: 'In it: python3 printed no list of packages.' },
  });
  await expect(copyProbe('c', 'python3')).rejects.toMatchObject({
    code: 'E_TOOL_FAILED',
    parts: { why: expect.stringContaining('python3 in it printed: ') },
  });
  vi.unstubAllEnvs();
});

test('reads the GPUs of a container from docker inspect', () => {
  const hostConfig = (DeviceIDs: string[] | null) => ({
    DeviceRequests: [{ Driver: '', Count: DeviceIDs ? 0 : -1, DeviceIDs, Capabilities: [['gpu']] }],
  });
  expect(gpusOf([], hostConfig(null))).toBeNull();
  expect(gpusOf([], hostConfig(['1', '3']))).toEqual([1, 3]);
  expect(gpusOf([], hostConfig(['GPU-3a23c669']))).toBeNull();
  const amd = { Devices: [{ PathOnHost: '/dev/kfd' }, { PathOnHost: '/dev/dri' }] };
  expect(gpusOf(['PATH=/bin'], amd)).toBeNull();
  expect(gpusOf(['NVIDIA_VISIBLE_DEVICES=2'], {})).toEqual([2]);
  expect(gpusOf(['NVIDIA_VISIBLE_DEVICES=void'], {})).toBeNull();
});

describe('GPU memory by the tool of the image', () => {
  test('nvidia-smi reports MiB', () => {
    expect(readNvidiaSmi('0, 1234, 17\n1, [N/A], [N/A]\n')).toEqual([
      { gpu: 0, usedBytes: 1234 * 2 ** 20, utilizationPercent: 17 },
      { gpu: 1, usedBytes: null, utilizationPercent: null },
    ]);
  });
  test("rows have this machine's GPU numbers", async () => {
    vi.stubEnv('INFERSCOPE_DOCKER', 'true');
    const tool = { name: 'nvidia-smi', args: [], read: () => readNvidiaSmi('0, 1, 17') };
    const source = insideGpuSource('c', tool, [3]);
    const sampling = source.start({ execution_id: 'memory', capture_id: 'memory-container', host: 'h' });
    const { memory, telemetry } = await sampling.stop();
    vi.unstubAllEnvs();
    expect(memory[0]).toMatchObject({ device: 3, bytes: 2 ** 20 });
    expect(telemetry[0]).toMatchObject({ scope: 'gpu3', value: 17 });
  });
  test('reads amd-smi and rocm-smi with the parsers of the sampler', () => {
    const readingOf = (name: string, file: string) =>
      insideTools
        .find((tool) => tool.name === name)!
        .read(readFileSync(join('test/fixtures/amd-smi-from-docs', file), 'utf8'));
    expect(readingOf('amd-smi', 'metric-mi300x.json')[0]).toMatchObject({ gpu: 0, usedBytes: 2 ** 30 });
    expect(readingOf('rocm-smi', 'rocm-smi.json')[0]).toMatchObject({ gpu: 0, usedBytes: 27_856_896 });
  });
});

test.runIf(process.platform === 'linux')('a process of this namespace has one id', () => {
  expect(hostPid(process.pid, process.pid)).toBe(process.pid);
  expect(hostPid(2 ** 30, process.pid)).toBeNull();
});

test("translates a record to this machine's process ids, also of exited processes, and GPUs", () => {
  const alive = new Map([[77, 18_340]]);
  const translated = recordTranslator({ pid: (inside) => alive.get(inside) ?? null, gpus: [2, 5] });
  // As Python writes them: readers of the record search for "type": "error".
  expect(
    translated('{"v": 1, "type": "memory", "pid": 77, "device": 1, "kind": "allocated", "bytes": 9}'),
  ).toBe('{"v": 1, "type": "memory", "pid": 18340, "device": 5, "kind": "allocated", "bytes": 9}');
  alive.clear();
  expect(translated('{"type": "error", "pid": 77, "text": "x"}')).toBe(
    '{"type": "error", "pid": 18340, "text": "x"}',
  );
  const model = '{"type": "model", "pid": 78, "device": "cuda:0", "config": {"device": 1}}';
  expect(translated(model)).toBe(model);
  expect(translated('{"cut off')).toBe('{"cut off');
});

describe('the Python shim for engines', () => {
  const root = mkdtempSync(join(tmpdir(), "inferscope-it's-"));
  afterAll(() => rmSync(root, { recursive: true }));
  const reported = join(root, 'reported');
  const echo = join(root, 'docker');
  // Prints how it was called; a real docker is used in test/docker/.
  writeFileSync(echo, `#!/bin/sh\nprintf '%s\\n' "$@" > '${reported.replaceAll("'", `'\\''`)}'\n`);
  chmodSync(echo, 0o755);
  const scratch = join(root, 'scratch');
  mkdirSync(join(scratch, 'launch'), { recursive: true });
  writeFileSync(join(scratch, 'launch', 'order.json'), '{}');
  const shim = join(scratch, 'python');
  writeShim(shim, {
    container: "o'brien",
    python: '/opt/venv/bin/python',
    folder: '/tmp/x',
    places: { [scratch]: '/tmp/x/files' },
    scratch,
    docker: echo,
  });
  const call = (args: string[]) => {
    execFileSync(shim, args, {
      env: { PATH: process.env['PATH'], HF_TOKEN: 'hf_secret', VLLM_LOGGING_LEVEL: 'INFO', HF_HOME: '/h' },
    });
    return readFileSync(reported, 'utf8').split('\n').slice(0, -1);
  };

  test('a query passes variables by name, never their values', () => {
    const args = call(['-B', '-c', 'print("it\'s")\nx', '']);
    expect(args.join(' ')).not.toContain('hf_secret');
    const names = args.slice(1, args.indexOf("o'brien"));
    expect(names.filter((name) => name !== '-e').sort()).toEqual(['HF_TOKEN', 'VLLM_LOGGING_LEVEL']);
    expect(args).toContain('/opt/venv/bin/python');
    expect(args.slice(args.indexOf('--') + 1)).toEqual(['-B', '-c', 'print("it\'s")', 'x', '']);
    expect(args).not.toContain('--files');
    expect(args).not.toContain('HF_HOME');
  });

  test('a launch sends its folder as a tar, and keeps stdin open', () => {
    const args = call(['-u', '/probe/x.py', join(scratch, 'launch', 'order.json')]);
    expect(args.slice(0, 2)).toEqual(['exec', '-i']);
    expect(args).toContain('--files');
  });
});
