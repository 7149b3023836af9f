import { type KvTransfer, kvTransfersSql } from '../../../facts/collectives/transfers.js';
import { rankRanges } from '../../../model/ranks.js';
import { formatBytes, formatQuantity } from '../../../vocabulary/format.js';
import { gainOf } from '../gain.js';
import { type JobCauses, jobCauses, kvExposedMs } from '../job-causes.js';
import { programOf } from '../framework.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { everyInstance, instanceWord, ms, part, plural } from '../words.js';

/** In disaggregated serving a rank computes nothing while a KV cache moves from prefill to decode. */
export const kvTransfer = stageRule(
  {
    id: 'kv_transfer',
    title: 'Exposed transfer of KV caches',
    docs: {
      finds:
        'In disaggregated serving a rank computes nothing while it sends or receives a KV cache, or waits for the other end.',
      needs:
        "the timelines of all ranks of a job (import --ranks) that name the other rank of sends and receives: PyTorch traces, or nsys reports with NCCL's payloads",
      gain: "The exposed time, at most the stage's own compute time, which can hide it (low: half).",
      change:
        'Send each layer while later layers compute; receive before the decode step that needs the cache.',
      withheld:
        'no rank that only computes prefills sends to one that decodes, or less than 5 % of the stage',
    },
    references: [
      {
        title: 'vLLM: disaggregated prefilling',
        url: 'https://docs.vllm.ai/en/latest/features/disagg_prefill.html',
      },
      { title: 'Splitwise: KV cache sent layer by layer', url: 'https://arxiv.org/abs/2311.18677' },
    ],
  },
  async (context, stage) => {
    const causes = await jobCauses(context, stage);
    if (!causes) return 'the calls of several ranks are not recorded';
    if (causes.kvTransfers.length === 0) return 'this rank neither sends nor receives KV caches';
    const exposed = kvExposedMs(causes);
    if (exposed < minShare * stage.wall_ms)
      return `exposed transfers of KV caches take ${part(exposed, stage.wall_ms)}`;
    return finding(context, stage, causes);
  },
);

async function finding(
  context: FindingContext,
  { kind, instances, wall_ms: wall, compute_ms }: StageFacts,
  causes: JobCauses,
): Promise<FoundDraft> {
  const { captures, kvTransfers } = causes;
  const { evidence } = await context.evidence<KvTransfer>(kvTransfersSql(captures, kind, instances), (rows) =>
    rows
      .slice(0, 4)
      .map(
        (row) => `rank ${row.sender} to ${row.receiver}: ${ms(row.exposed_ms)} exposed on rank ${row.rank}`,
      )
      .join('; '),
  );
  const exposed = kvExposedMs(causes);
  const total = (column: 'bytes' | 'wire_ms' | 'waiting_ms' | 'transfers') =>
    kvTransfers.reduce((sum, row) => sum + row[column], 0);
  const sends = kvTransfers.every(({ rank, sender }) => rank === sender);
  const others = new Set(kvTransfers.map(({ sender, receiver }) => (sends ? receiver : sender)));
  const numbers = rankRanges([...others].toSorted((a, b) => a - b));
  const otherRanks = others.size > 1 ? `ranks ${numbers}` : `rank ${numbers}`;
  const waitingMs = total('waiting_ms');
  const rate = formatQuantity(total('bytes') / (total('wire_ms') / 1e3), 'B/s');
  const { framework } = await programOf(context);
  return {
    stage: kind,
    title: (share) =>
      `Exposed transfer of KV caches: ${share} of ${everyInstance(kind)} while nothing computes`,
    at_stake_ms: exposed,
    cause: `In ${instanceWord(kind)} this rank ${sends ? 'sends' : 'receives'} ${plural(total('transfers'), 'KV cache')} of ${formatBytes(total('bytes') / total('transfers'))} ${sends ? 'to' : 'from'} ${otherRanks} at ${rate}.${waitingMs > 0 ? ` ${ms(waitingMs)} of the exposed time is waiting for the other rank.` : ''}`,
    change: {
      kind: 'config',
      text: sends
        ? 'Send the KV cache of each layer on a stream of its own while later layers compute, and check that the transfer uses NVLink or RDMA.'
        : 'Receive KV caches on a stream of their own, and add a request to the batch once its cache is here, so that no decode step waits for a prefill.',
      example:
        framework === 'vllm'
          ? `--kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'`
          : 'with torch.cuda.stream(transfers): work = dist.irecv(cache, src); …  # decode the other requests; work.wait()',
    },
    gain: gainOf(
      wall,
      Math.min(exposed, compute_ms),
      'The transfer runs while the stage computes (low: half of it).',
      { low_ms: 0.5 * Math.min(exposed, compute_ms) },
    ),
    confidence: 'medium',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence],
    check: checkAgain,
  };
}
