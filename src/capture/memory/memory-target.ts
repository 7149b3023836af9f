import type { Issue } from '../../model/document.js';
import type { Engine, EngineName, EngineRequest, PreparedEngine } from '../../model/engine.js';
import type { Row } from '../../model/tables.js';

/** Where the engine of `inferscope memory` runs. */
type MemoryPlace = 'host' | 'container' | 'url';

export interface TargetRequest {
  /** Null uses the installed engine of a container. */
  engine: EngineName | null;
  request: EngineRequest;
  container: string | null;
  /** Base URL of a server. */
  url: string | null;
  /** Folder on this machine for logs and copies. */
  scratch: string;
  signal: AbortSignal;
  onProgress: (step: string, detail: string) => void;
  /** Loads an engine on this machine (cli/bench-engines.ts); for a URL it is `openai`. */
  loadEngine: (name: EngineName) => Promise<Engine>;
}

/** Rows of one source; t_ns is CLOCK_MONOTONIC of this machine. */
export interface SourceRows {
  memory: Row<'memory'>[];
  telemetry: Row<'telemetry'>[];
  issues: Issue[];
}

/**
 * A memory source in addition to this machine's samplers: the processes inside a container, or the page
 * `/metrics` of a server.
 */
export interface MemorySource {
  /** `container`, `metrics`: the suffix of its capture id. */
  name: string;
  /** Tool and version of the capture in the session. */
  tool: { name: string; version: string | null };
  /** Starts before the engine is launched. `stop` is called after its process has exited and never rejects. */
  start(keys: Pick<Row<'memory'>, 'execution_id' | 'capture_id' | 'host'>): { stop(): Promise<SourceRows> };
}

/** A file of the run, stored as an artifact: the engine's log, results copied out of a container. */
export interface RunFile {
  kind: 'log' | 'metrics' | 'container-inspect';
  name: string;
  text: string;
}

/**
 * Where one profile is measured. `prepared.launch` starts the engine there and appends its record lines to
 * `control.recordPath` on this machine; a container copies them out continuously, so that an aborted run
 * keeps them.
 */
export interface MemoryTarget {
  where: MemoryPlace;
  containerName: string | null;
  prepared: PreparedEngine;
  /** GPUs of this machine that the engine can use, by NVML's index; null: all, or unknown. */
  gpus: readonly number[] | null;
  /** Whether the engine uses the GPUs and processes of this machine: false for a server elsewhere. */
  samplesHere: boolean;
  /** Process ids of this machine that belong to the engine, to separate its memory from that of others; called while it runs. */
  pids?(): readonly number[];
  sources: readonly MemorySource[];
  issues: Issue[];
  /** Text to store in the session; called after the launch has ended. */
  readLeftovers(): Promise<RunFile[]>;
  /** Removes the copied files. Never rejects. */
  close(): Promise<void>;
}

/**
 * Finds the place, checks that it can run the engine, and prepares it.
 * @throws E_USAGE, E_ENGINE_MISSING, E_TOOL_MISSING, E_SERVER_UNREACHABLE, … before anything is measured
 */
export type OpenTarget = (request: TargetRequest) => Promise<MemoryTarget>;
