import { knownEngine } from '../../../llm/memory-request.js';
import { doubt } from '../doubt.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { benchOf } from '../session-analyses.js';

/** A program ran on the CPU although the machine has a GPU. */
export const cpuByAccident: Rule = {
  id: 'cpu_by_accident',
  title: 'CPU by accident',
  docs: {
    finds: 'A program computed on the CPU although the machine has a GPU.',
    needs: 'a session of a machine with a known GPU',
    gain: "None: the GPU's time was not measured.",
    change: 'Check that the framework finds the GPU, and move model and inputs to it.',
    withheld: 'the CPU was requested',
  },
  references: [],
  async find(context) {
    const bench = await benchOf(context);
    if (bench) {
      const flag = bench.data.variants
        .flatMap(({ flags }) => flags)
        .find(({ code }) => code === 'cpu_by_accident');
      return flag
        ? { outcome: 'fired', findings: [await finding(context, flag.text)] }
        : { outcome: 'not_fired', why: 'The benchmark ran on the device it was given.' };
    }
    const { workload, hardware } = context.manifest;
    const gpu = hardware['gpu_name'] ?? hardware['gpu0_name'] ?? null;
    if (typeof gpu !== 'string') return { outcome: 'not_applicable', why: 'The machine has no known GPU.' };
    if (!workload || !workload.device.startsWith('cpu')) {
      return context.has('kernels') || workload
        ? { outcome: 'not_fired', why: `It computed on ${workload?.device ?? 'the GPU'}.` }
        : { outcome: 'not_applicable', why: 'The session does not record the device.' };
    }
    if (knownEngine(workload.engine.name) === 'onnx' || isCpuRequested(context))
      return { outcome: 'not_fired', why: 'The CPU was requested.' };
    return {
      outcome: 'fired',
      findings: [
        await finding(
          context,
          `${workload.engine.name} computed on the CPU although this machine has ${gpu}`,
        ),
      ],
    };
  },
};

/** `--device cpu`, `device="cpu"`, or GPUs hidden on the command line. */
const isCpuRequested = ({ manifest }: FindingContext): boolean =>
  [...manifest.command, ...manifest.executions.flatMap(({ command }) => command)].some((word) =>
    /^cpu$|\bdevice["']?[=:]\s*["']?cpu\b|CUDA_VISIBLE_DEVICES=(-1)?$/.test(word),
  );

/** GPU activity during the program: none expected. */
const onGpusSql = `SELECT 'kernels on a GPU' AS what, count(*)::DOUBLE AS value FROM kernels
   UNION ALL SELECT 'stages of the program', count(*) FROM stages
   UNION ALL SELECT 'repeats of the program', count(*) FROM iterations
   UNION ALL SELECT 'maximum utilization of ' || scope || ', %', max(value) FROM telemetry
     WHERE scope LIKE 'gpu%' AND metric = 'utilization_percent' GROUP BY scope ORDER BY what`;

async function finding(context: FindingContext, text: string): Promise<FoundDraft> {
  const { evidence } = await context.evidence(onGpusSql, () => text);
  return doubt({
    title: `CPU by accident: ${text}`,
    cause:
      'A framework that finds no GPU falls back to the CPU silently: a build without CUDA, a driver that is too old, hidden devices, or a model that was never moved.',
    change: {
      kind: 'environment',
      text: 'Check that the framework finds the GPU, and move model and inputs to it; --device cpu states that the CPU is intended.',
      example: 'python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"',
    },
    evidence: [evidence],
    check: 'inferscope doctor, then repeat the run',
  });
}
