/** A process of several that a launcher started. */
export interface LaunchedRank {
  rank: number;
  /** Processes of the job; null where the launcher does not say. */
  worldSize: number | null;
  /** Among the processes of its host. */
  localRank: number | null;
  /** The same for all ranks of one start, different for another start; null where the launcher has no such name. */
  job: string | null;
  /** How its start is typed, where it is not seen; null where the variables can be of anything. */
  typed: string[] | null;
}

interface Launcher {
  typed?: (worldSize: number) => string[];
  rank: string;
  size: string;
  local: string;
  /** Variables that name the start together; the first must be there. */
  job: readonly string[];
  /** Without it these are the variables of a shell that starts ranks, not of a rank: Slurm's batch script, a shell of salloc. */
  needs?: string;
}

/** The innermost launcher comes first: torchrun is started below srun, not the other way round. */
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
    typed: (size) => ['mpirun', '-n', `${size}`],
  },
  {
    rank: 'SLURM_PROCID',
    size: 'SLURM_STEP_NUM_TASKS',
    local: 'SLURM_LOCALID',
    job: ['SLURM_JOB_ID', 'SLURM_STEP_ID'],
    needs: 'SLURM_STEP_ID',
    typed: (size) => ['srun', `--ntasks=${size}`],
  },
  // MPICH, Intel MPI.
  {
    rank: 'PMI_RANK',
    size: 'PMI_SIZE',
    local: 'MPI_LOCALRANKID',
    job: ['PMI_JOBID'],
    typed: (size) => ['mpiexec', '-n', `${size}`],
  },
];

/** What torchrun, mpirun, srun or mpiexec tell a process through its environment; null for a process of its own. */
export function launchedRank(env: Readonly<Record<string, string | undefined>>): LaunchedRank | null {
  const numberOf = (name: string): number | null => {
    const value = env[name];
    return value !== undefined && /^\d{1,7}$/.test(value) ? Number(value) : null;
  };
  for (const { rank: name, size, local, job, needs, typed } of launchers) {
    const rank = numberOf(name);
    if (rank === null || (needs !== undefined && env[needs] === undefined)) continue;
    const worldSize = numberOf(size);
    return {
      rank,
      worldSize,
      localRank: numberOf(local),
      job: env[job[0]!] === undefined ? null : job.flatMap((variable) => env[variable] ?? []).join('-'),
      typed: typed === undefined || worldSize === null ? null : typed(worldSize),
    };
  }
  return null;
}
