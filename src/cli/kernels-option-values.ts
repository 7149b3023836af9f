/** Options as typed. */
export interface KernelsOptions {
  fromModel?: string;
  batchSize?: number[];
  seqLen?: number[];
  contextLen?: number[];
  hiddenSize?: number[];
  dtype?: string[];
  backend?: string[];
  runs: number;
  maxSeconds: number;
  device?: string;
  engine?: 'torch' | 'onnx';
  threads?: number;
  check: boolean;
  graph: boolean;
  trace?: boolean;
  seed: number;
  python?: string;
  name?: string;
  tag: string[];
  output: string;
  json?: boolean;
  quiet?: boolean;
}
