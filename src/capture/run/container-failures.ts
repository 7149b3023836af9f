import { failure, outputMatches, type FailurePattern } from './failure-pattern.js';

/** Docker's errors when the program runs in a container. */
export const containerFailures: FailurePattern[] = [
  {
    id: 'container_missing',
    matches: outputMatches(/No such container: ?(\S+)/),
    explain: (_, match) =>
      failure(
        'E_WORKLOAD_FAILED',
        `there is no container ${match?.[1] ?? ''}`.trim(),
        'No container has this name or id.',
        'Type: docker ps -a – then start one, or correct the name.',
      ),
  },
  {
    id: 'container_stopped',
    matches: outputMatches(/[Cc]ontainer (\S+) is not running/),
    explain: (_, match) =>
      failure(
        'E_WORKLOAD_FAILED',
        `the container ${match?.[1] ?? ''} is not running`.replace('  ', ' '),
        'It is stopped.',
        `Type: docker start ${match?.[1] ?? 'NAME'}`,
      ),
  },
  {
    id: 'container_lacks_program',
    matches: outputMatches(
      /OCI runtime (?:exec|create) failed.*?exec: \\*"([^"\\]+)\\*": (?:executable file not found|stat)/,
    ),
    explain: (_, match) =>
      failure(
        'E_ENGINE_MISSING',
        `${match?.[1]} is not installed in the container`,
        'The PATH of the container has no such program; the PATH of the host does not apply there.',
        `Use an image that has it, or its path inside the container (docker exec NAME which ${match?.[1]}).`,
      ),
  },
  {
    id: 'container_paused',
    matches: outputMatches(/[Cc]ontainer (\S+) is paused/),
    explain: (_, match) =>
      failure(
        'E_WORKLOAD_FAILED',
        `the container ${match?.[1] ?? ''} is paused`.replace('  ', ' '),
        'Its processes are frozen and no new ones can start.',
        `Type: docker unpause ${match?.[1] ?? 'NAME'}`,
      ),
  },
  {
    id: 'docker_silent',
    matches: outputMatches(/Cannot connect to the Docker daemon|error during connect: .*docker/i),
    explain: () =>
      failure(
        'E_TOOL_FAILED',
        'Docker does not respond',
        'Its daemon is not running, or DOCKER_HOST names another one.',
        'Type: sudo systemctl start docker – check with: docker info.',
      ),
  },
  {
    id: 'docker_forbidden',
    matches: outputMatches(
      /permission denied while trying to connect to the (?:Docker daemon socket|docker API)/i,
    ),
    explain: () =>
      failure(
        'E_PERMISSION',
        'this user has no access to Docker',
        'The daemon socket denied access.',
        'Type: sudo usermod -aG docker $USER – log in again, or run with sudo.',
      ),
  },
];
