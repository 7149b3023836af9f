import { basename } from 'node:path';
import { InferscopeError } from '../../model/errors.js';
import { findNsys } from '../tools/nsight.js';
import { type Evaluator, evaluators } from './run-options.js';

/** @throws E_USAGE for an unknown evaluator */
export function parseEvaluators(words: readonly string[]): Evaluator[] {
  const names = words.flatMap((word) => word.split(',')).filter(Boolean);
  for (const word of names) {
    if ((evaluators as readonly string[]).includes(word)) continue;
    throw new InferscopeError('E_USAGE', {
      what: `unknown evaluator "${word}"`,
      why: `Evaluators are ${evaluators.join(', ')}.`,
      fix: 'Example: inferscope run --evaluator nsys,ncu -- python script.py',
    });
  }
  return [...new Set(names)] as Evaluator[];
}

/** Default without `--evaluator`: nsys if installed, else torch for a Python program, else none. */
export async function defaultEvaluators(
  command: readonly string[],
): Promise<{ evaluators: Evaluator[]; because: string }> {
  const nsys = await findNsys(10_000);
  if (nsys) return { evaluators: ['nsys'], because: `nsys ${nsys.version ?? ''} is installed`.trim() };
  if (runsPython(command)) {
    return { evaluators: ['torch'], because: 'nsys was not found and the program is Python' };
  }
  return { evaluators: ['none'], because: 'nsys was not found and the program is not Python' };
}

/**
 * python, python3.12, /x/bin/python; also after env, uv run, torchrun and similar; and inferscope commands with an engine that
 * runs in Python: inferscope bench … --engine transformers.
 */
export function runsPython(command: readonly string[]): boolean {
  const engine = engineOption(command);
  if (engine !== null) return ['transformers', 'vllm', 'torch'].includes(engine);
  return command.some(
    (word) =>
      /^(python(\d+(\.\d+)*)?|torchrun|accelerate|vllm|ipython)$/.test(basename(word)) ||
      word.endsWith('.py'),
  );
}

/** --engine of an inferscope command, '' without one; null for other programs. */
function engineOption(command: readonly string[]): string | null {
  // Only node, npx or similar may precede it.
  const isInferscope = command
    .slice(0, 2)
    .some((word) => basename(word) === 'inferscope' || word.endsWith('dist/cli.js'));
  if (!isInferscope) return null;
  const flag = command.findIndex((word) => /^--engine(=|$)/.test(word));
  if (flag < 0) return '';
  return command[flag]!.split('=')[1] ?? command[flag + 1] ?? '';
}
