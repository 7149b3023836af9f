import process from 'node:process';
import { execa } from 'execa';
import { endWithParent } from '../../model/end-with-parent.js';
import { dockerFailure, type DockerAnswer } from './docker-failures.js';

/** Docker's own command line, or a compatible one: INFERSCOPE_DOCKER=podman. */
export function dockerCommand(env: NodeJS.ProcessEnv = process.env): string {
  return env['INFERSCOPE_DOCKER'] || 'docker';
}

/** Starting a process in a container takes a second on a slow disk; importing torch takes some more. */
const timeoutMs = 60_000;

/** Runs one docker command. Never throws: its output is the result. */
export async function docker(
  args: readonly string[],
  { timeout = timeoutMs, input }: { timeout?: number; input?: string } = {},
): Promise<DockerAnswer> {
  const child = endWithParent((mark) =>
    execa(dockerCommand(), args, {
      reject: false,
      env: mark,
      timeout,
      ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
      forceKillAfterDelay: 500,
      maxBuffer: 16 * 2 ** 20,
    }),
  );
  const run = await child;
  return {
    stdout: run.stdout,
    stderr: run.stderr,
    exitCode: run.exitCode ?? null,
    startError: run.exitCode === undefined && !run.timedOut ? (run.code ?? 'unknown') : null,
    timedOut: run.timedOut,
  };
}

/**
 * Runs a docker command that must succeed.
 * @throws the error of dockerFailure
 */
export async function dockerOk(
  args: readonly string[],
  container: string,
  options?: { timeout?: number; input?: string },
): Promise<string> {
  const answer = await docker(args, options);
  if (answer.exitCode === 0) return answer.stdout;
  throw dockerFailure(answer, container, args);
}

/** Whether the daemon in use (DOCKER_HOST, else the context) is reached through a local socket. */
export async function isLocalDocker(): Promise<boolean> {
  const inspect = ['context', 'inspect', '--format', '{{.Endpoints.docker.Host}}'];
  const { exitCode, stdout } = await docker(inspect);
  // Podman has no contexts and no daemon.
  return exitCode !== 0 || /^(?:unix|npipe):/.test(stdout.trim());
}
