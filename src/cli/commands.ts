import type { Command } from 'commander';

export interface CommandEntry {
  name: string;
  alias?: string;
  summary: string;
  /** The module that defines arguments, options and action; loaded only when the command is the one typed. */
  load: () => Promise<{ define: (command: Command) => void }>;
}

/** In the order of --help. */
export const commands: CommandEntry[] = [
  {
    name: 'profile',
    summary: 'run a transformer on this machine and show where its time and memory go',
    load: () => import('./profile.js'),
  },
  {
    name: 'run',
    summary: 'run a program under nsys, ncu or the PyTorch profiler and explain its time',
    load: () => import('./run.js'),
  },
  {
    name: 'import',
    summary: 'read what nsys, ncu, the PyTorch profiler and others recorded',
    load: () => import('./import.js'),
  },
  {
    name: 'explain',
    summary: "where the time beyond the hardware's limit goes, why, and what to change",
    load: () => import('./explain.js'),
  },
  {
    name: 'analyze',
    summary: 'answer a question from a session: a model with checked numbers, or without one',
    load: () => import('./analyze.js'),
  },
  {
    name: 'bench',
    summary: 'how fast a model is and how it scales, on every engine or a server under load',
    load: () => import('./bench.js'),
  },
  {
    name: 'memory',
    summary: 'what a model took: baseline, after warm-up, peak, by component, on any engine',
    load: () => import('./memory.js'),
  },
  {
    name: 'serve',
    summary: 'the embedded model behind an OpenAI-compatible endpoint, to try bench on',
    load: () => import('./serve.js'),
  },
  {
    name: 'monitor',
    summary: 'GPUs and host while something runs: live, recorded, idle and throttled times marked',
    load: () => import('./monitor.js'),
  },
  {
    name: 'roofline',
    summary: "measure this machine's peak FLOP/s and memory bandwidth",
    load: () => import('./roofline.js'),
  },
  {
    name: 'kernels',
    summary: 'time the operations of LLMs, or of one model, and how close each comes to its roof',
    load: () => import('./kernels.js'),
  },
  {
    name: 'estimate',
    summary: 'memory, parameters, FLOPs and bytes of a model that is not run, and what fits a GPU',
    load: () => import('./estimate.js'),
  },
  {
    name: 'validate',
    summary: 'the memory calculator against measured profiles: how far off, and which constant',
    load: () => import('./validate.js'),
  },
  {
    name: 'predict',
    summary: 'prefill and decode times of a model on a device, from its roofs and measured kernels',
    load: () => import('./predict.js'),
  },
  {
    name: 'gemm',
    summary: 'matrix products of a session by shape: time, roof, tiles, and what another size would give',
    load: () => import('./gemm.js'),
  },
  {
    name: 'sweep',
    summary: 'memory and latency of many configurations, or any command over a grid; resumable',
    load: () => import('./sweep.js'),
  },
  { name: 'report', summary: 'write the HTML report of a session', load: () => import('./report.js') },
  { name: 'session', summary: 'list, show, name, move, verify sessions', load: () => import('./session.js') },
  {
    name: 'baseline',
    summary: 'keep figures of a session, and say which later changes are real',
    load: () => import('./baseline.js'),
  },
  { name: 'sql', summary: "query sessions' tables with SQL (read-only)", load: () => import('./sql.js') },
  {
    name: 'export',
    summary: 'write a session for Perfetto, speedscope, a spreadsheet or Prometheus',
    load: () => import('./export.js'),
  },
  {
    name: 'doctor',
    alias: 'setup',
    summary: 'what of this machine inferscope can use, and how to get the rest',
    load: () => import('./doctor.js'),
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of a document inferscope writes',
    load: () => import('./schema.js'),
  },
  {
    name: 'completion',
    summary: 'print the script that completes commands and sessions in bash, zsh or fish',
    load: async () => ({ define: (await import('./completion.js')).defineCompletion(commands) }),
  },
];
