// npm run test:docker: the container path of `inferscope memory` with a real Docker engine. A running engine is used; else dockerd is
// started for the tests if it is installed and the user is root. Without either, the tests are skipped with a message. The image has only a
// few empty folders: the container mounts this machine's /usr with its Python, and PyTorch from the environment of `npm run test:torch` if
// there is one.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  lstatSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { skipTests } from '../skip.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const scratch = mkdtempSync(join(tmpdir(), 'inferscope-docker-'));
const env = { ...process.env };
const name = `inferscope-test-${process.pid}`;
const docker = (...args) => spawnSync('docker', args, { env, encoding: 'utf8' });
const runDocker = (...args) => execFileSync('docker', args, { env, encoding: 'utf8' }).trim();

function skip(reason) {
  rmSync(scratch, { recursive: true, force: true });
  skipTests(
    'the tests of inferscope memory --container need a Docker engine.',
    reason,
    'INFERSCOPE_REQUIRE_DOCKER',
  );
}

async function startDaemon() {
  if (process.platform !== 'linux') skip(`dockerd is not started on ${process.platform}.`);
  if (process.getuid() !== 0) skip('No engine answers, and starting dockerd requires root.');
  if (spawnSync('dockerd', ['--version']).status !== 0)
    skip('No engine answers, and dockerd is not installed (Debian: apt-get install docker.io).');
  const socket = `unix://${join(scratch, 'docker.sock')}`;
  const log = openSync(join(scratch, 'dockerd.log'), 'w');
  const daemon = spawn(
    'dockerd',
    ['--bridge=none', '--iptables=false', '--storage-driver=vfs', `--host=${socket}`].concat(
      ['data-root', 'exec-root', 'pidfile'].map((flag) => `--${flag}=${join(scratch, flag)}`),
    ),
    { stdio: ['ignore', log, log] },
  );
  closeSync(log);
  daemon.on('error', () => {});
  env.DOCKER_HOST = socket;
  for (let i = 0; i < 100 && daemon.exitCode === null; i++) {
    if (docker('info').status === 0) return daemon;
    await sleep(200);
  }
  daemon.kill();
  const logTail = readFileSync(join(scratch, 'dockerd.log'), 'utf8')
    .trim()
    .split('\n')
    .slice(-3)
    .join('\n*** ');
  skip(`dockerd does not start here:\n*** ${logTail}`);
}

/** Imports an image that has only empty folders, the links of a merged /usr, and an entry for root in /etc/passwd. */
function makeImage() {
  const tree = join(scratch, 'tree');
  for (const folder of ['dev', 'etc', 'proc', 'root', 'run', 'sys', 'tmp', 'usr', 'var'])
    mkdirSync(join(tree, folder), { recursive: true });
  for (const link of ['bin', 'sbin', 'lib', 'lib64'])
    if (existsSync(`/${link}`) && lstatSync(`/${link}`).isSymbolicLink())
      symlinkSync(readlinkSync(`/${link}`), join(tree, link));
  writeFileSync(join(tree, 'etc', 'passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  const tar = execFileSync('tar', ['-C', tree, '-cf', '-', '.']);
  execFileSync('docker', ['import', '-', name], { env, input: tar, stdio: ['pipe', 'ignore', 'inherit'] });
}

/** The virtual environment of npm run test:torch if it is complete, and its Python. */
function torchPython() {
  const cache = join(root, 'node_modules', '.cache');
  const names = existsSync(cache)
    ? readdirSync(cache).filter((name) => name.startsWith('inferscope-torch-'))
    : [];
  // test/python-environment.mjs creates the file `complete` when everything is installed.
  const venv = names.map((name) => join(cache, name)).find((folder) => existsSync(join(folder, 'complete')));
  if (!venv) return null;
  const python = join(venv, 'bin', 'python');
  const base = execFileSync(python, ['-c', 'import sys; print(sys.base_prefix)'], {
    encoding: 'utf8',
  }).trim();
  return { python, mounts: [venv, base].filter((folder) => !folder.startsWith('/usr')) };
}

let daemon = null;
let status = 1;
let unusable = null;
try {
  if (spawnSync('docker', ['--version']).status !== 0)
    skip('The docker command is not installed (Debian: apt-get install docker.io).');
  if (docker('info').status !== 0) daemon = await startDaemon();
  const torch = torchPython();
  if (!torch)
    process.stderr.write(
      '*** npm run test:torch has not installed PyTorch: the container runs a plain Python instead of an engine.\n',
    );
  const mounts = [
    '/usr',
    ...(existsSync('/etc/ld.so.cache') ? ['/etc/ld.so.cache'] : []),
    ...(torch?.mounts ?? []),
  ];
  const volumes = mounts.flatMap((path) => ['-v', `${path}:${path}:ro`]);
  // An engine that answers may not be able to start containers, or be on another machine without these folders. The tests cannot use such
  // an engine.
  try {
    makeImage();
    // The probe is in a tmpfs, which `docker cp` cannot reach.
    runDocker(
      'run',
      '-d',
      '--name',
      name,
      '--network=none',
      '--tmpfs=/tmp:exec',
      ...volumes,
      name,
      'sleep',
      '3600',
    );
    runDocker('create', '--name', `${name}-stopped`, name, 'true');
    runDocker('exec', name, torch?.python ?? 'python3', '-c', 'import os; os.kill(1, 0)');
  } catch (error) {
    unusable = `The Docker engine cannot start a container with this machine's folders:\n*** ${String(error.stderr || error.message).trim()}`;
  }
  const retry = process.env.CI ? ['--retry', '1'] : [];
  if (!unusable)
    status =
      spawnSync(
        'npx',
        ['vitest', 'run', '--project', 'unit', ...retry, 'src/capture/memory/container.test.ts'],
        {
          cwd: root,
          stdio: 'inherit',
          timeout: 15 * 60_000,
          env: {
            ...env,
            INFERSCOPE_TEST_CONTAINER: name,
            INFERSCOPE_TEST_CONTAINER_TORCH: torch?.python ?? '',
          },
        },
      ).status ?? 1;
} finally {
  docker('rm', '-f', name, `${name}-stopped`);
  docker('rmi', '-f', name);
  if (daemon) {
    const exited = new Promise((resolve) => daemon.once('exit', resolve));
    daemon.kill();
    await exited;
  }
  rmSync(scratch, { recursive: true, force: true });
}
if (unusable) skip(unusable);
process.exitCode = status;
