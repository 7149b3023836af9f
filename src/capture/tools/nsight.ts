import type { ToolFacts } from '../doctor/facts.js';
import { findTool } from '../doctor/find-tool.js';

const versionOf = { versionArgs: ['--version'], version: /version\s+(\d+(?:\.\d+)+)/i };

/** Nsight Systems: `NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0`. On PATH, else the newest in the first folder that has one. */
export function findNsys(timeoutMs: number): Promise<ToolFacts | null> {
  return findTool({
    name: 'nsys',
    patterns: [
      '/opt/nvidia/nsight-systems/*/bin/nsys',
      '/opt/nvidia/nsight-systems-cli/*/bin/nsys',
      '/opt/nvidia/nsight-systems/*/target-linux-*/nsys',
      '/usr/local/cuda*/bin/nsys',
      '/usr/lib/nsight-systems/bin/nsys',
      // Nsight Compute includes one, e.g. in NVIDIA's containers without Nsight Systems.
      '/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys',
    ],
    ...versionOf,
    timeoutMs,
  });
}

/** Nsight Compute: three lines, the last `Version 2025.3.1.0 (build 36398880) (public-release)`. */
export function findNcu(timeoutMs: number): Promise<ToolFacts | null> {
  return findTool({
    name: 'ncu',
    patterns: [
      '/opt/nvidia/nsight-compute/*/ncu',
      '/usr/local/cuda*/bin/ncu',
      '/usr/local/cuda*/nsight-compute-*/ncu',
      '/usr/lib/nsight-compute/ncu',
    ],
    ...versionOf,
    timeoutMs,
  });
}
