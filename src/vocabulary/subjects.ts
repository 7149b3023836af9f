import type { Subject } from '../model/subjects.js';
import { joinWithAnd } from './sentence.js';

/** Label of each subject of a session with its article, and the command that records it. */
export const subjectWords: Readonly<Record<Subject, { label: string; command: string }>> = {
  profile: { label: 'a profile of the embedded engine', command: 'inferscope profile' },
  validation: { label: 'a validation', command: 'inferscope validate' },
  memory: { label: 'a memory profile', command: 'inferscope memory' },
  bench: { label: 'a benchmark', command: 'inferscope bench latency, throughput, sequence or suite' },
  load: { label: 'a load test', command: 'inferscope bench serve' },
  kernels: { label: 'measured kernels', command: 'inferscope kernels' },
  timeline: { label: 'a timeline', command: 'inferscope run --evaluator nsys' },
  steps: { label: 'steps of a program', command: 'inferscope run' },
  counters: { label: 'hardware counters', command: 'inferscope run --evaluator ncu' },
  gemms: { label: 'BLAS calls', command: 'inferscope run --gemm-log' },
  collectives: { label: 'recorded collectives', command: 'inferscope import' },
  results: { label: 'results of another tool', command: 'inferscope import' },
  roofline: { label: 'a measured roofline', command: 'inferscope roofline --record' },
  telemetry: { label: 'hardware samples', command: 'inferscope monitor --record' },
};

/** "a load test and hardware samples"; "nothing that can be analyzed" for none. */
export function subjectList(subjects: readonly Subject[]): string {
  if (subjects.length === 0) return 'nothing that can be analyzed';
  return joinWithAnd(subjects.map((subject) => subjectWords[subject].label));
}
