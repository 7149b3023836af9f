import { InferscopeError, type ErrorCode } from '../../model/errors.js';

export interface DockerAnswer {
  stdout: string;
  stderr: string;
  exitCode: number | null;
  /** ENOENT, EACCES, …: docker itself could not be started. */
  startError: string | null;
  timedOut: boolean;
}

interface Known {
  /** What docker says; older and newer daemons. */
  words: RegExp;
  code: ErrorCode;
  what: (container: string) => string;
  why: string;
  fix: (container: string) => string;
}

/** In order; docker's own words follow as the reason. */
const known: Known[] = [
  {
    words: /permission denied while trying to connect to the (?:Docker daemon socket|docker API)/i,
    code: 'E_DOCKER',
    what: () => 'this user may not talk to Docker',
    why: 'The daemon socket refuses it',
    fix: () => 'Type: sudo usermod -aG docker $USER – log in again, or run with sudo.',
  },
  {
    words: /Cannot connect to the Docker daemon|error during connect|dial unix \S+: connect: (?!permission)/i,
    code: 'E_DOCKER',
    what: () => 'Docker does not answer',
    why: 'Its daemon is not running, or DOCKER_HOST names another one',
    fix: () => 'Type: sudo systemctl start docker – docker info says when it is up.',
  },
  {
    words: /No such (?:container|object): ?(\S+)/i,
    code: 'E_USAGE',
    what: (container) => `there is no container ${container}`,
    why: 'Docker knows none of this name or id',
    fix: () => 'Type: docker ps -a – and start one, or correct the name.',
  },
  {
    words: /[Cc]ontainer \S+ is paused/,
    code: 'E_WORKLOAD_FAILED',
    what: (container) => `the container ${container} is paused`,
    why: 'Its processes are frozen, and nothing can be started in it',
    fix: (container) => `Type: docker unpause ${container}`,
  },
  {
    words: /[Cc]ontainer \S+ is (?:not running|restarting)/,
    code: 'E_WORKLOAD_FAILED',
    what: (container) => `the container ${container} is not running`,
    why: 'It exists but was stopped, or starts again and again',
    fix: (container) => `Type: docker start ${container} – docker logs ${container} says why it ended.`,
  },
  {
    words: /no space left on device/i,
    code: 'E_DISK_FULL',
    what: (container) => `the disk of the container ${container} is full`,
    why: 'What inferscope copies in did not fit',
    fix: () => 'Type: docker system df – and docker system prune, or free space in its /tmp.',
  },
];

/**
 * Why a docker command did not work.
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
      why: 'The engine of a container is reached through the docker command.',
      fix: 'Install Docker, or name one that speaks as it does: INFERSCOPE_DOCKER=podman',
    });
  }
  if (timedOut) {
    // What runs inside a container may hang by itself; every other command is the daemon's own.
    return new InferscopeError(args[0] === 'exec' ? 'E_TIMEOUT' : 'E_DOCKER', {
      what: `docker ${args[0]} did not answer`,
      why: 'The daemon or the disk below it hangs.',
      fix: 'Type: docker ps – a daemon that hangs is restarted with sudo systemctl restart docker.',
    });
  }
  const told = wordsOf(answer);
  const words = told.split('\n').at(-1) ?? '';
  const found = known.find((one) => one.words.test(told));
  if (found) {
    return new InferscopeError(found.code, {
      what: found.what(container),
      why: `${found.why}: ${words.slice(0, 300)}`,
      fix: found.fix(container),
    });
  }
  return new InferscopeError('E_TOOL_FAILED', {
    what: `docker ${args[0]} failed for the container ${container} (exit code ${exitCode})`,
    why: words === '' ? 'It said nothing.' : words.slice(0, 300),
    fix: `Type: docker ${args.slice(0, 2).join(' ')} … by hand; docker logs ${container} shows what it says itself.`,
  });
}

/** What the runtime says of a program that it cannot start comes on stdout, where the program's own output would. */
function wordsOf({ stdout, stderr }: DockerAnswer): string {
  return stderr.trim() || stdout.trim();
}

/** Whether an exec failed because the container has no such program. */
export function lacksProgram(answer: DockerAnswer): boolean {
  const { exitCode } = answer;
  if (exitCode !== 126 && exitCode !== 127) return false;
  return exitCode === 127 || /executable file not found|no such file or directory/.test(wordsOf(answer));
}
