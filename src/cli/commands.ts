import type { Command } from 'commander';

interface CommandEntry {
  name: string;
  group: 'Try' | 'Your program' | 'Captures' | 'Measure' | 'Plan' | 'Look' | 'Setup';
  alias?: string;
  summary: string;
  /** The module that defines arguments, options and action; loaded only when the user typed this command. */
  load: () => Promise<{ define: (command: Command) => void }>;
}

/** In the order of --help, by group. */
export const commands: CommandEntry[] = [
  {
    name: 'profile',
    group: 'Try',
    summary: 'run a small LLM on this machine and show where its time and memory go',
    load: () => import('./profile.js'),
  },
  {
    name: 'run',
    group: 'Your program',
    summary: 'run a program under nsys, ncu or the PyTorch profiler and explain its time',
    load: () => import('./run.js'),
  },
  {
    name: 'explain',
    group: 'Your program',
    summary: 'show where time above the roofline goes, why, and what to change',
    load: () => import('./explain.js'),
  },
  {
    name: 'gemm',
    group: 'Your program',
    summary: 'list GEMMs of a session by shape: time, roofline, tiles, effect of padding',
    load: () => import('./gemm.js'),
  },
  {
    name: 'import',
    group: 'Captures',
    summary: 'import captures of nsys, ncu, the PyTorch profiler and other tools',
    load: () => import('./import.js'),
  },
  {
    name: 'export',
    group: 'Captures',
    summary: 'export a session for Perfetto, speedscope, spreadsheets or Prometheus',
    load: () => import('./export.js'),
  },
  {
    name: 'session',
    group: 'Captures',
    summary: 'list, show, name, compare, export and verify sessions',
    load: () => import('./session.js'),
  },
  {
    name: 'sql',
    group: 'Captures',
    summary: "query sessions' tables with SQL (read-only)",
    load: () => import('./sql.js'),
  },
  {
    name: 'bench',
    group: 'Measure',
    summary: 'benchmark a model on an engine, or load-test a server',
    load: () => import('./bench.js'),
  },
  {
    name: 'serve',
    group: 'Measure',
    summary: 'serve the embedded model at an OpenAI-compatible endpoint, to try bench serve',
    load: () => import('./serve.js'),
  },
  {
    name: 'monitor',
    group: 'Measure',
    summary: 'watch or record GPUs and host, with idle and throttled periods',
    load: () => import('./monitor.js'),
  },
  {
    name: 'roofline',
    group: 'Measure',
    summary: "measure this machine's peak FLOP/s and memory bandwidth",
    load: () => import('./roofline.js'),
  },
  {
    name: 'kernels',
    group: 'Measure',
    summary: 'measure LLM kernels and compare each with its roofline',
    load: () => import('./kernels.js'),
  },
  {
    name: 'memory',
    group: 'Measure',
    summary: 'measure memory of a model: baseline, after warm-up, peak, by component',
    load: () => import('./memory.js'),
  },
  {
    name: 'baseline',
    group: 'Measure',
    summary: 'save figures of a session and test later sessions for regressions',
    load: () => import('./baseline.js'),
  },
  {
    name: 'estimate',
    group: 'Plan',
    summary: 'estimate memory, parameters, FLOPs and bytes of a model, and what fits a GPU',
    load: () => import('./estimate.js'),
  },
  {
    name: 'predict',
    group: 'Plan',
    summary: 'predict prefill and decode time of a model on a device from roofline and measured kernels',
    load: () => import('./predict.js'),
  },
  {
    name: 'sweep',
    group: 'Plan',
    summary: 'measure memory and latency of many configurations, or run any command over a grid',
    load: async () => ({ define: (await import('./sweep.js')).defineSweep(commands) }),
  },
  {
    name: 'validate',
    group: 'Plan',
    summary: 'compare memory estimates with measured memory profiles',
    load: () => import('./validate.js'),
  },
  {
    name: 'ui',
    group: 'Look',
    summary: 'open sessions in the browser: overview, timeline, SQL',
    load: () => import('./ui.js'),
  },
  {
    name: 'report',
    group: 'Look',
    summary: 'write the HTML report of a session',
    load: () => import('./report.js'),
  },
  {
    name: 'analyze',
    group: 'Look',
    summary: 'answer a question about a session, with or without an AI model',
    load: () => import('./analyze.js'),
  },
  {
    name: 'doctor',
    group: 'Setup',
    alias: 'setup',
    summary: 'check what inferscope can use on this machine, and how to get the rest',
    load: () => import('./doctor.js'),
  },
  {
    name: 'completion',
    group: 'Setup',
    summary: 'print the completion script for bash, zsh or fish',
    load: async () => ({ define: (await import('./completion.js')).defineCompletion(commands) }),
  },
  {
    name: 'schema',
    group: 'Setup',
    summary: 'print the JSON Schema of a document that inferscope writes',
    load: () => import('./schema.js'),
  },
];
