/** One of several processes started by a launcher. */
export interface LaunchedRank {
  rank: number;
  /** Number of processes of the job; null if unknown. */
  worldSize: number | null;
  /** Rank among the processes of its host. */
  localRank: number | null;
  /** Whether the launcher reported that all ranks are on this host. */
  allHere: boolean;
  /** Name of the start, equal for all its ranks and different for another start; null if the launcher has none. */
  job: string | null;
  /** The launcher's command line, if it cannot be read from a process; null if several launchers set these variables. */
  command: string[] | null;
}

interface Launcher {
  command?: (worldSize: number) => string[];
  rank: string;
  size: string;
  local: string;
  /** Number of ranks on this host. */
  localSize?: string;
  /** Variables that together name the start; the first is required. */
  job: readonly string[];
  /** Without this variable it is a shell that starts ranks, not a rank: Slurm's batch script, a shell of salloc. */
  needs?: string;
}

/** The innermost launcher first: torchrun is started by srun, not the other way round. */
const launchers: readonly Launcher[] = [
  {
    rank: 'RANK',
    size: 'WORLD_SIZE',
    local: 'LOCAL_RANK',
    job: ['MASTER_PORT', 'MASTER_ADDR', 'TORCHELASTIC_RUN_ID', 'SLURM_JOB_ID', 'SLURM_STEP_ID'],
  },
  {
    rank: 'OMPI_COMM_WORLD_RANK',
    size: 'OMPI_COMM_WORLD_SIZE',
    local: 'OMPI_COMM_WORLD_LOCAL_RANK',
    job: ['PMIX_NAMESPACE'],
    command: (size) => ['mpirun', '-n', `${size}`],
  },
  {
    rank: 'SLURM_PROCID',
    size: 'SLURM_STEP_NUM_TASKS',
    local: 'SLURM_LOCALID',
    job: ['SLURM_JOB_ID', 'SLURM_STEP_ID'],
    needs: 'SLURM_STEP_ID',
    command: (size) => ['srun', `--ntasks=${size}`],
  },
  // MPICH, Intel MPI.
  {
    rank: 'PMI_RANK',
    size: 'PMI_SIZE',
    local: 'MPI_LOCALRANKID',
    localSize: 'MPI_LOCALNRANKS',
    job: ['PMI_JOBID'],
    command: (size) => ['mpiexec', '-n', `${size}`],
  },
];

/** The rank that torchrun, mpirun, srun or mpiexec passes in the environment; null without a launcher. */
export function launchedRank(env: Readonly<Record<string, string | undefined>>): LaunchedRank | null {
  const numberOf = (name: string): number | null => {
    const value = env[name];
    return value !== undefined && /^\d{1,7}$/.test(value) ? Number(value) : null;
  };
  for (const { rank: name, size, local, localSize, job, needs, command: commandFor } of launchers) {
    const rank = numberOf(name);
    if (rank === null || (needs !== undefined && env[needs] === undefined)) continue;
    const worldSize = numberOf(size);
    return {
      rank,
      worldSize,
      localRank: numberOf(local),
      allHere: localSize !== undefined && worldSize !== null && numberOf(localSize) === worldSize,
      job: env[job[0]!] === undefined ? null : job.flatMap((variable) => env[variable] ?? []).join('-'),
      command: commandFor === undefined || worldSize === null ? null : commandFor(worldSize),
    };
  }
  return null;
}
