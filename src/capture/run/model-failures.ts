import { failure, lineAround, outputMatches, type FailurePattern } from './failure-pattern.js';

/** GPU memory, missing GPUs, and the model hub. */
export const modelFailures: FailurePattern[] = [
  {
    id: 'out_of_memory',
    matches: outputMatches(
      /CUDA out of memory|OutOfMemoryError|HIP out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED/,
    ),
    explain: (ended) => {
      const allocation = /Tried to allocate ([\d.]+ [KMGT]iB)/.exec(ended.output)?.[1];
      const total =
        /total capaci?ty of ([\d.]+ [KMGT]iB)/.exec(ended.output)?.[1] ??
        /([\d.]+ [KMGT]iB) total capacity/.exec(ended.output)?.[1];
      const free = /of which ([\d.]+ (?:[KMGT]iB|bytes)) is free/.exec(ended.output)?.[1];
      const figures = [
        allocation && `it asked for ${allocation} more`,
        total && `the GPU has ${total}`,
        free && `${free} of it was free`,
      ].filter(Boolean);
      const [api, tool] = /HIP out of memory/.test(ended.output)
        ? ['HIP', 'amd-smi']
        : ['CUDA', 'nvidia-smi'];
      return failure(
        'E_OUT_OF_MEMORY',
        'the program ran out of GPU memory',
        figures.length > 0 ? `${api} out of memory: ${figures.join(', ')}.` : `A ${api} allocation failed.`,
        'Lower --batch-size or the lengths, use a smaller dtype (float16, int8, int4) or model, or stop other ' +
          `programs on the GPU (${tool} lists them).`,
      );
    },
  },
  {
    id: 'model_gated',
    matches: outputMatches(
      /GatedRepoError|Cannot access gated repo|You are trying to access a gated repo|is gated\. You must/,
    ),
    explain: (ended) => {
      const model = modelIn(ended.output);
      const name = model ?? 'the model';
      return failure(
        'E_MODEL_ACCESS',
        `${name} is gated on the hub`,
        /403 Client Error|not in the authorized list/.test(ended.output)
          ? 'Your token is valid, but its account has no access (403).'
          : 'No valid token was sent (401).',
        `Ask for access at https://huggingface.co/${model ?? ''} and set HF_TOKEN (or type: hf auth login).\n` +
          'Without a download: --weights random runs the same architecture.',
      );
    },
  },
  {
    id: 'model_missing',
    matches: outputMatches(
      /RepositoryNotFoundError|Repository Not Found for url|is not a valid model identifier|is not a local folder and is not a valid/,
    ),
    explain: (ended) => {
      const model = modelIn(ended.output);
      return failure(
        'E_MODEL_ACCESS',
        `${model ?? 'the model'} was not found on the hub`,
        'It does not exist, or it is private and no token with access was sent (the hub answers 401 or 404 in both cases).',
        'Check the spelling (owner/name). For a private model set HF_TOKEN, or type: hf auth login',
      );
    },
  },
  {
    id: 'hub_refused',
    matches: outputMatches(/\b(401|403|404) Client Error/),
    explain: (ended, match) =>
      failure(
        'E_MODEL_ACCESS',
        `the model hub answered ${match?.[1]}`,
        lineAround(ended, match),
        'Check the name of the model and HF_TOKEN (hf auth whoami shows the account).',
      ),
  },
  {
    id: 'hub_unreachable',
    matches: outputMatches(
      /couldn't connect to '?https:\/\/huggingface|LocalEntryNotFoundError|Temporary failure in name resolution|Connection error, and we cannot find the requested files/,
    ),
    explain: (ended, match) =>
      failure(
        'E_MODEL_ACCESS',
        'the model hub could not be reached',
        lineAround(ended, match),
        'Download the model where there is a network (hf download OWNER/NAME) and pass the folder to --model,\n' +
          'or use --weights random, which downloads nothing.',
      ),
  },
  {
    id: 'cuda_unavailable',
    matches: outputMatches(
      /Torch not compiled with CUDA enabled|Found no NVIDIA driver on your system|No CUDA GPUs are available|CUDA driver version is insufficient/,
    ),
    explain: (ended, match) =>
      failure(
        'E_ENGINE_MISSING',
        'the program found no usable GPU',
        lineAround(ended, match),
        'Type: inferscope doctor – it checks driver, CUDA and torch; CUDA_VISIBLE_DEVICES may hide the GPU.',
      ),
  },
];

/** `…huggingface.co/meta-llama/Llama-2-7b/resolve/main/config.json` or `api/models/org/name`. */
function modelIn(output: string): string | null {
  const found =
    /huggingface\.co\/(?:api\/models\/)?([\w.-]+\/[\w.-]+?)(?:\/(?:resolve|revision|tree)\/|[.\s]*$|\s)/m.exec(
      output,
    ) ??
    /Access to model ([\w.-]+\/[\w.-]+) is restricted/.exec(output) ??
    /^(?:OSError: )?([\w.-]+\/[\w.-]+) is not a local folder/m.exec(output);
  return found?.[1]?.replace(/\.$/, '') ?? null;
}
