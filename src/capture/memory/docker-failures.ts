import { InferscopeError, type ErrorCode } from '../../model/errors.js';

export interface DockerAnswer {
  stdout: string;
  stderr: string;
  exitCode: number | null;
  /** ENOENT, EACCES, …: docker itself could not be started. */
  startError: string | null;
  timedOut: boolean;
}

interface KnownFailure {
  /** Docker's messages, from older and newer daemons. */
  pattern: RegExp;
  code: ErrorCode;
  what: (container: string) => string;
  why: string;
  fix: (container: string) => string;
}

/** In order; docker's own message follows as the reason. */
const knownFailures: KnownFailure[] = [
  {
    pattern: /permission denied while trying to connect to the (?:Docker daemon socket|docker API)/i,
    code: 'E_DOCKER',
    what: () => 'this user has no access to Docker',
    why: 'The daemon socket denied access',
    fix: () => 'Type: sudo usermod -aG docker $USER – log in again, or run with sudo.',
  },
  {
    pattern:
      /Cannot connect to the Docker daemon|error during connect|dial unix \S+: connect: (?!permission)/i,
    code: 'E_DOCKER',
    what: () => 'Docker does not respond',
    why: 'Its daemon is not running, or DOCKER_HOST names another one',
    fix: () => 'Type: sudo systemctl start docker – check with: docker info.',
  },
  {
    pattern: /No such (?:container|object)/i,
    code: 'E_USAGE',
    what: (container) => `there is no container ${container}`,
    why: 'No container has this name or id',
    fix: () => 'Type: docker ps -a – then start one, or correct the name.',
  },
  {
    pattern: /[Cc]ontainer \S+ is paused/,
    code: 'E_WORKLOAD_FAILED',
    what: (container) => `the container ${container} is paused`,
    why: 'Its processes are frozen and no new ones can start',
    fix: (container) => `Type: docker unpause ${container}`,
  },
  {
    pattern: /[Cc]ontainer \S+ is (?:not running|restarting)/,
    code: 'E_WORKLOAD_FAILED',
    what: (container) => `the container ${container} is not running`,
    why: 'It is stopped, or restarts in a loop',
    fix: (container) => `Type: docker start ${container} – docker logs ${container} shows why it exited.`,
  },
  {
    pattern: /no space left on device/i,
    code: 'E_DISK_FULL',
    what: (container) => `the disk of the container ${container} is full`,
    why: 'There was no space for the files that inferscope copies into it',
    fix: () => 'Type: docker system df, then docker system prune, or free space in its /tmp.',
  },
];

/**
 * Explains a failed docker command.
 * @param args the command, without docker itself
 */
export function dockerFailure(
  answer: DockerAnswer,
  container: string,
  args: readonly string[],
): InferscopeError {
  const { startError, timedOut, exitCode } = answer;
  if (startError !== null) {
    return new InferscopeError('E_DOCKER', {
      what: `docker cannot be started (${startError})`,
      why: 'inferscope starts engines in containers through the docker command.',
      fix: 'Install Docker, or name a compatible command: INFERSCOPE_DOCKER=podman',
    });
  }
  if (timedOut) {
    // A command inside a container may hang by itself; all other commands depend only on the daemon.
    const inContainer = args[0] === 'exec';
    return new InferscopeError(inContainer ? 'E_TIMEOUT' : 'E_DOCKER', {
      what: `docker ${args[0]} timed out`,
      why: inContainer
        ? 'The command in the container hangs, or the daemon.'
        : 'The daemon or its disk hangs.',
      fix: 'Type: docker ps. If the daemon hangs: sudo systemctl restart docker.',
    });
  }
  const reported = errorText(answer);
  const lastLine = reported.split('\n').at(-1) ?? '';
  const found = knownFailures.find((failure) => failure.pattern.test(reported));
  if (found) {
    return new InferscopeError(found.code, {
      what: found.what(container),
      why: `${found.why}: ${lastLine.slice(0, 300)}`,
      fix: found.fix(container),
    });
  }
  return new InferscopeError('E_TOOL_FAILED', {
    what: `docker ${args[0]} failed for the container ${container} (exit code ${exitCode})`,
    why: lastLine === '' ? 'It printed nothing.' : lastLine.slice(0, 300),
    fix: `Run docker ${args.slice(0, 2).join(' ')} … by hand; docker logs ${container} shows the output of the container.`,
  });
}

/** Docker's message: stderr, else stdout, where the runtime reports a program that it could not start. */
function errorText({ stdout, stderr }: DockerAnswer): string {
  return stderr.trim() || stdout.trim();
}

/** Whether an exec failed because the container has no such program. */
export function lacksProgram(answer: DockerAnswer): boolean {
  const { exitCode } = answer;
  if (exitCode !== 126 && exitCode !== 127) return false;
  return exitCode === 127 || /executable file not found|no such file or directory/.test(errorText(answer));
}
