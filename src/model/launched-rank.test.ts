import { expect, test } from 'vitest';
import { launchedRank } from './launched-rank.js';

// Variables set by torchrun 2.11, Open MPI 4.1, Slurm 22.05 and MPICH.
const slurm = { SLURM_JOB_ID: '7', SLURM_PROCID: '3', SLURM_LOCALID: '1', SLURM_NTASKS: '4' };
const step = { SLURM_STEP_ID: '0', SLURM_STEP_NUM_TASKS: '4' };

test('reads rank, size and start from each launcher', () => {
  expect(launchedRank({ ...slurm, ...step })).toMatchObject({
    rank: 3,
    worldSize: 4,
    localRank: 1,
    job: '7-0',
  });
  const torchrun = {
    RANK: '9',
    LOCAL_RANK: '1',
    WORLD_SIZE: '16',
    MASTER_ADDR: 'node1',
    MASTER_PORT: '29500',
    TORCHELASTIC_RUN_ID: 'none',
  };
  expect(launchedRank(torchrun)).toMatchObject({
    rank: 9,
    worldSize: 16,
    localRank: 1,
    job: '29500-node1-none',
  });
  expect(
    launchedRank({
      OMPI_COMM_WORLD_RANK: '0',
      OMPI_COMM_WORLD_SIZE: '2',
      OMPI_COMM_WORLD_LOCAL_RANK: '0',
      PMIX_NAMESPACE: '1955069953',
    }),
  ).toEqual({
    rank: 0,
    worldSize: 2,
    localRank: 0,
    allHere: false,
    job: '1955069953',
    command: ['mpirun', '-n', '2'],
  });
  const mpich = { PMI_RANK: '1', PMI_SIZE: '2', MPI_LOCALRANKID: '1' };
  expect(launchedRank({ ...mpich, MPI_LOCALNRANKS: '2' })).toMatchObject({
    rank: 1,
    localRank: 1,
    allHere: true,
    job: null,
  });
  expect(launchedRank({ ...mpich, MPI_LOCALNRANKS: '1' })).toMatchObject({ allHere: false });
});

test("torchrun under srun: the rank is torchrun's, and two steps of a job are two starts", () => {
  const inner = { RANK: '5', WORLD_SIZE: '8', MASTER_PORT: '29500', MASTER_ADDR: 'node1' };
  expect(launchedRank({ ...slurm, ...step, ...inner })).toMatchObject({ rank: 5, job: '29500-node1-7-0' });
});

test("a batch script and a shell of salloc are not ranks, although they have Slurm's variables", () => {
  expect(launchedRank(slurm)).toBeNull();
  expect(launchedRank({})).toBeNull();
  expect(launchedRank({ RANK: 'first', WORLD_SIZE: '2' })).toBeNull();
});
