import type { EngineName } from '../model/engine.js';

/** Options as typed. */
export interface BenchOptions {
  engine: EngineName;
  model?: string;
  weights?: 'random' | 'trained';
  dtype?: string;
  device?: string;
  threads?: number;
  batchSize?: number[];
  inputLen?: number[];
  outputLen?: number[];
  grid?: boolean;
  engineArg?: string[];
  url?: string;
  python?: string;
  runs: number;
  launches: number;
  seed: number;
  deviceWork: boolean;
  freshRoofline?: boolean;
  name?: string;
  tag: string[];
  output: string;
  json?: boolean;
  quiet?: boolean;
}
