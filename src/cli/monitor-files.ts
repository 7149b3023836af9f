import { basename } from 'node:path';
import { InferscopeError } from '../model/errors.js';
import { importCaptures } from './import-captures.js';
import { interruptible } from './interrupt.js';
import { recordMonitor, type MonitorCommandOptions } from './monitor-session.js';

/** Summarizes nvidia-smi recordings. @throws E_TRACE_FILE, E_FORMAT_UNKNOWN, E_USAGE */
export async function monitorFiles(paths: string[], options: MonitorCommandOptions): Promise<void> {
  await recordMonitor(options.name ?? 'nvidia-smi', options, async ({ files, redact }) => {
    const imported = await interruptible((signal) =>
      importCaptures(
        files,
        paths.map((path) => ({ path })),
        { stageNames: [], redact, keepRaw: true, signal },
      ),
    );
    const foreign = imported.captures.findIndex(({ importer }) => !importer.startsWith('nvidia-smi'));
    if (foreign >= 0) throw notARecording(paths[foreign]!, imported.captures[foreign]!.importer);
    const zeroNs = imported.zeroRealtimeNs;
    const name = imported.hardware['gpu_name'];
    return {
      title: `${paths.map((path) => basename(path)).join(', ')}${typeof name === 'string' ? ` · ${name}` : ''}`,
      status: 'complete',
      elsewhere: { startedAt: zeroNs === null ? new Date() : new Date(Number(zeroNs / 1_000_000n)) },
      hardware: imported.hardware,
      software: imported.software,
      executions: imported.executions,
      captures: imported.captures,
      issues: imported.issues,
      result: {},
    };
  });
}

function notARecording(path: string, importer: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `${path} is not an nvidia-smi recording`,
    why: `Its format is ${importer}.`,
    fix: `Type: inferscope import ${path}`,
  });
}
