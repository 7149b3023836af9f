import type { Rule } from '../rule.js';
import { kvCacheConcat } from './kv-cache-concat.js';
import { noKvCache } from './no-kv-cache.js';
import { promptLogits } from './prompt-logits.js';
import { rebuiltTensors } from './rebuilt-tensors.js';
import { castsAndLayoutCopies } from './casts-and-layout-copies.js';
import { elementwiseNormOverhead } from './elementwise-norm-overhead.js';
import { eagerAttention } from './eager-attention.js';
import { halfPrecision } from './half-precision.js';
import { copiedExpertWeights } from './copied-expert-weights.js';
import { gemmPerSequence } from './gemm-per-sequence.js';
import { gemmShape } from './gemm-shape.js';
import { smallBatchMemoryBound } from './small-batch-memory-bound.js';
import { hostCopies } from './host-copies.js';
import { logitsToHost } from './logits-to-host.js';
import { allocatorChurn } from './allocator-churn.js';
import { recompilation } from './recompilation.js';
import { dataLoading } from './data-loading.js';
import { requestsQueue } from './requests-queue.js';
import { gpuIdleBetweenRequests } from './gpu-idle-between-requests.js';
import { serializedStreams } from './serialized-streams.js';
import { kvTransfer } from './kv-transfer.js';
import { pipelineBubbles } from './pipeline-bubbles.js';
import { expertImbalance } from './expert-imbalance.js';
import { slowLinkRule } from './slow-link.js';
import { exposedCommunication } from './exposed-communication.js';
import { collectiveLateRank } from './collective-late-rank.js';
import { preemptedHost } from './preempted-host.js';
import { rankStragglers } from './rank-stragglers.js';
import { hostBound } from './host-bound.js';
import { launchBound } from './launch-bound.js';
import { synchronizationEveryStep } from './synchronization-every-step.js';
import { idleCores } from './idle-cores.js';
import { operatorCopies } from './operator-copies.js';
import { runtimeOverhead } from './runtime-overhead.js';
import { weightsEachStep } from './weights-each-step.js';
import { idleRecording } from './idle-recording.js';
import { benchmarkFlags } from './benchmark-flags.js';
import { cpuByAccident } from './cpu-by-accident.js';
import { profilerOverhead } from './profiler-overhead.js';
import { fewRepeats } from './few-repeats.js';
import { answersNotAsRequested } from './answers-not-as-requested.js';
import { clientBound } from './client-bound.js';
import { prefixCacheArtifact } from './prefix-cache-artifact.js';
import { kvPoolSmall } from './kv-pool-small.js';
import { allocatorFragmentation } from './allocator-fragmentation.js';
import { anotherProcess } from './another-process.js';
import { throttling } from './throttling.js';
import { l2HitRate } from './l2-hit-rate.js';
import { bankConflicts } from './bank-conflicts.js';
import { padding } from './padding.js';
import { vocabularySort } from './vocabulary-sort.js';
import { unmergedAdapters } from './unmerged-adapters.js';
import { uncoalescedAccess } from './uncoalesced-access.js';
import { lowOccupancy } from './low-occupancy.js';

/** All rules; the order only determines `rules` in the document. */
export const rules: readonly Rule[] = [
  launchBound,
  synchronizationEveryStep,
  hostBound,
  preemptedHost,
  rankStragglers,
  collectiveLateRank,
  slowLinkRule,
  expertImbalance,
  pipelineBubbles,
  kvTransfer,
  exposedCommunication,
  serializedStreams,
  gpuIdleBetweenRequests,
  dataLoading,
  requestsQueue,
  recompilation,
  allocatorChurn,
  logitsToHost,
  hostCopies,
  smallBatchMemoryBound,
  gemmShape,
  halfPrecision,
  eagerAttention,
  unmergedAdapters,
  copiedExpertWeights,
  elementwiseNormOverhead,
  castsAndLayoutCopies,
  kvCacheConcat,
  noKvCache,
  padding,
  promptLogits,
  gemmPerSequence,
  vocabularySort,
  rebuiltTensors,
  lowOccupancy,
  uncoalescedAccess,
  bankConflicts,
  l2HitRate,
  throttling,
  anotherProcess,
  allocatorFragmentation,
  kvPoolSmall,
  prefixCacheArtifact,
  clientBound,
  answersNotAsRequested,
  fewRepeats,
  profilerOverhead,
  cpuByAccident,
  benchmarkFlags,
  idleRecording,
  weightsEachStep,
  operatorCopies,
  runtimeOverhead,
  idleCores,
];
