// npm run test:slurm [-- FILE]: `import --ranks --on slurm` and `sweep --on slurm` on a real Slurm with one host, started for the tests
// without systemd and munge. Debian's slurm-wlm is installed if the user is root and apt has it; without Slurm the tests are skipped with a
// message.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { skipTests } from '../skip.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const scratch = mkdtempSync(join(tmpdir(), 'inferscope-slurm-'));
const conf = join(scratch, 'slurm.conf');
const env = { ...process.env, SLURM_CONF: conf };
const runQuietly = (...command) => spawnSync(command[0], command.slice(1), { env, encoding: 'utf8' });

function skip(reason) {
  stop();
  skipTests('the tests of --on slurm need Slurm.', reason, 'INFERSCOPE_REQUIRE_SLURM');
}

function install() {
  const isInstalled = () =>
    ['slurmctld', 'slurmd', 'sbatch'].every((name) => runQuietly('which', name).status === 0);
  if (isInstalled()) return;
  if (process.platform !== 'linux')
    skip(`Slurm is not installed, and is not available for ${process.platform}.`);
  if (process.getuid() !== 0)
    skip('Slurm is not installed (Debian: apt-get install slurm-wlm), and installing it requires root.');
  process.stderr.write('Installing slurm-wlm for the tests, once…\n');
  const aptEnv = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const networkOptions = ['-o', 'Acquire::Retries=1', '-o', 'Acquire::http::Timeout=20'];
  for (const args of [
    ['update', '-qq', ...networkOptions],
    ['install', '-y', '-qq', '--no-install-recommends', ...networkOptions, 'slurm-wlm'],
  ]) {
    const run = spawnSync('apt-get', args, { env: aptEnv, encoding: 'utf8', timeout: 4 * 60_000 });
    if (run.status !== 0)
      skip(`apt-get ${args[0]}: ${(run.stderr || String(run.error)).trim().split('\n').at(-1)}`);
  }
  if (!isInstalled()) skip('slurm-wlm was installed, but slurmctld, slurmd or sbatch is not on PATH.');
}

/** A controller and one node with two cores, both run by the current user. */
async function start() {
  if (process.getuid() !== 0) skip('This script starts the daemons of Slurm as root.');
  const name = hostname().split('.')[0];
  const paths = {
    StateSaveLocation: 'state',
    SlurmdSpoolDir: 'spool',
    SlurmctldPidFile: 'slurmctld.pid',
    SlurmdPidFile: 'slurmd.pid',
    SlurmctldLogFile: 'slurmctld.log',
    SlurmdLogFile: 'slurmd.log',
  };
  const lines = [
    'ClusterName=inferscope',
    `SlurmctldHost=${name}(127.0.0.1)`,
    `SlurmctldPort=${16_817 + (process.pid % 1000)}`,
    `SlurmdPort=${17_817 + (process.pid % 1000)}`,
    'AuthType=auth/none',
    'CredType=cred/none',
    'SlurmUser=root',
    'SlurmdUser=root',
    ...Object.entries(paths).map(([key, file]) => `${key}=${join(scratch, file)}`),
    'ProctrackType=proctrack/linuxproc',
    'TaskPlugin=task/none',
    'SwitchType=switch/none',
    'MpiDefault=none',
    'ReturnToService=2',
    'SchedulerType=sched/builtin',
    'SelectType=select/cons_tres',
    'SelectTypeParameters=CR_Core',
    'JobAcctGatherType=jobacct_gather/none',
    'AccountingStorageType=accounting_storage/none',
    `NodeName=${name} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN`,
    'PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP',
  ];
  writeFileSync(conf, `${lines.join('\n')}\n`);
  for (const folder of ['state', 'spool']) mkdirSync(join(scratch, folder));
  for (const daemon of ['slurmctld', 'slurmd']) {
    const run = runQuietly(daemon, ...(daemon === 'slurmctld' ? ['-c'] : []));
    if (run.status !== 0) skip(`${daemon} does not start: ${run.stderr.trim().split('\n').at(-1)}`);
    await sleep(500);
  }
  for (let tries = 0; tries < 60; tries++) {
    if (/idle/.test(runQuietly('sinfo', '--noheader', '--format', '%T').stdout)) return checkJobs();
    await sleep(500);
  }
  skip(`The node is not ready after 30 s: ${runQuietly('sinfo', '-R', '--noheader').stdout.trim()}`);
}

/** Skips the tests on machines where Slurm starts but runs no job. */
function checkJobs() {
  const job = spawnSync('srun', ['--time=1', 'true'], { env, encoding: 'utf8', timeout: 60_000 });
  if (job.status !== 0)
    skip(`Slurm runs no job here: ${(job.stderr || String(job.error)).trim().split('\n').at(-1)}`);
}

/** Stops the daemons and waits for them, because they write into the folder until they exit. */
function stop() {
  for (const daemon of ['slurmd', 'slurmctld']) {
    try {
      const pid = Number(readFileSync(join(scratch, `${daemon}.pid`), 'utf8'));
      process.kill(pid);
      for (let tries = 0; tries < 100; tries++) {
        process.kill(pid, 0);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      }
    } catch {
      // The daemon is not running, or has exited.
    }
  }
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
}

for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    stop();
    process.exit(1);
  });
install();
let status = 1;
try {
  await start();
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
  const tests = spawnSync('npx', ['vitest', 'run', '--project', 'slurm', ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
    env,
    timeout: 15 * 60_000,
  });
  status = tests.status ?? 1;
} finally {
  runQuietly('scancel', '--user=root');
  stop();
}
process.exitCode = status;
