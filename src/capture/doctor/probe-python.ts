import { statSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { packageVersionScript, pythonCandidates } from '../../engines/transformers/interpreter.js';
import type { DoctorFacts, PythonFacts } from './facts.js';
import { failureLine, runTool } from './run-tool.js';
import { lastJson } from '../../model/last-json.js';

const pythonPackages = ['torch', 'transformers', 'accelerate', 'vllm'] as const;

/**
 * Versions from the packages' metadata, and torch's CUDA or ROCm from torch/version.py: importing torch takes up to
 * 15 s from a cold disk, reading two files takes none.
 */
const versionsScript = `${packageVersionScript}
import json, re, sys
def reported(module):
    name = package(module)
    return None if name is None else version(module) + ('' if name == module else ' (package %s)' % name)
def built_for():
    try:
        text = metadata.distribution('torch').locate_file('torch/version.py').read_text()
    except Exception:
        return {}
    return dict(re.findall(r"^(cuda|hip)\\b[^=\\n]*=\\s*'([^']+)'", text, re.M))
print(json.dumps({'version': '%d.%d.%d' % sys.version_info[:3], 'packages': {name: reported(name) for name in sys.argv[1:]}, 'torch': built_for()}))
`;

const devicesScript = `
import json, torch
available = torch.cuda.is_available()
print(json.dumps({'available': available, 'names': [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if available else []}))
`;

const versionsSchema = z.object({
  version: z.string(),
  packages: z.record(z.string(), z.string().nullable()),
  torch: z.object({ cuda: z.string().optional(), hip: z.string().optional() }),
});
const devicesSchema = z.object({ available: z.boolean(), names: z.array(z.string()) });

interface PythonTimeouts {
  versionsMs: number;
  /** Time limit for importing torch. */
  devicesMs: number;
}

/** The first working interpreter in the engines' order (INFERSCOPE_PYTHON, python3, python); null when none works. */
export async function probePython(timeouts: PythonTimeouts): Promise<PythonFacts | null> {
  for (const command of pythonCandidates(null)) {
    const run = await runTool(command, ['-c', versionsScript, ...pythonPackages], {
      timeoutMs: timeouts.versionsMs,
    });
    const reported = versionsSchema.safeParse(lastJson(run.stdout));
    if (!reported.success) continue;
    const { version, packages, torch } = reported.data;
    return {
      command,
      version,
      packages,
      torchCuda: torch.cuda ?? null,
      torchHip: torch.hip ?? null,
      torchDevices: packages['torch'] ? await probeTorchDevices(command, timeouts.devicesMs) : null,
    };
  }
  return null;
}

async function probeTorchDevices(command: string, timeoutMs: number): Promise<PythonFacts['torchDevices']> {
  const run = await runTool(command, ['-c', devicesScript], { timeoutMs });
  const reported = devicesSchema.safeParse(lastJson(run.stdout));
  return reported.success ? reported.data : { failed: failureLine(run) };
}

/**
 * Whether a Hugging Face token is available, in the search order of huggingface_hub: HF_TOKEN (or its old name), the file
 * HF_TOKEN_PATH, $HF_HOME/token, $XDG_CACHE_HOME/huggingface/token. The file is not opened, the value not read.
 */
export function probeHuggingFace(env: NodeJS.ProcessEnv = process.env): DoctorFacts['huggingFace'] {
  if (env['HF_TOKEN']?.trim() || env['HUGGING_FACE_HUB_TOKEN']?.trim()) return 'environment';
  const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || os.homedir(), '.cache');
  const path = env['HF_TOKEN_PATH'] || join(env['HF_HOME'] || join(cache, 'huggingface'), 'token');
  try {
    return statSync(path).size > 0 ? 'file' : null;
  } catch {
    return null;
  }
}
