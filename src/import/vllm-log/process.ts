/** The process that wrote a line. vLLM prefixes lines with nothing, `(Worker_TP0_EP0 pid=770)`, `(VllmWorker rank=3 pid=53006)`, … */
export interface LogProcess {
  /** Without rank= and pid=; '' where the line has no name. */
  name: string;
  pid: number | null;
  /** Rank in the tensor/pipeline group, if the prefix has it. */
  rank: number | null;
  data_parallel_rank: number;
  /** The engine's own process, which with one GPU also runs the worker. */
  isEngineCore: boolean;
}

const prefix =
  /\((?<name>(?:VllmWorkerProcess|VllmWorker|RayWorkerWrapper|RayWorkerVllm|Worker|EngineCore|APIServer|ApiServer|Process)[\w-]*)(?: rank=(?<rank>\d+))?(?:,? pid=(?<pid>\d+))?(?:, ip=[\d.]+)?\)/g;

const unnamedProcess: LogProcess = {
  name: '',
  pid: null,
  rank: null,
  data_parallel_rank: 0,
  isEngineCore: false,
};

/**
 * The process that wrote the text at `index`: the last one named before it. Lines of several ranks are interleaved, and
 * container runtimes add names and times before the prefix.
 */
export function processAt(text: string, index: number): LogProcess {
  let process: LogProcess = unnamedProcess;
  for (const match of text.slice(0, index).matchAll(prefix)) {
    const { name = '', rank, pid } = match.groups ?? {};
    const dp = /DP(\d+)/.exec(name)?.[1] ?? /^EngineCore_(\d+)$/.exec(name)?.[1];
    process = {
      name,
      pid: pid === undefined ? null : Number(pid),
      rank: rank === undefined ? null : Number(rank),
      data_parallel_rank: Number(dp ?? 0),
      isEngineCore: name.startsWith('EngineCore'),
    };
  }
  return process;
}

/**
 * Rank of Worker_TP1, Worker_PP1_TP0, Worker_DP2_TP1_EP9: the tensor group is innermost, as in vLLM. Null if the name has
 * neither.
 */
export function groupRank(process: LogProcess, tensorParallelSize: number): number | null {
  if (process.rank !== null) return process.rank;
  const tp = /TP(\d+)/.exec(process.name)?.[1];
  const pp = /PP(\d+)/.exec(process.name)?.[1];
  if (tp === undefined && pp === undefined) return null;
  return Number(pp ?? 0) * tensorParallelSize + Number(tp ?? 0);
}
