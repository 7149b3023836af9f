import { opClasses } from '../../model/classes.js';
import type { Workbench } from '../../model/workbench.js';
import { opClassOf } from '../kernel-classes/op-classes.js';

/** By the code of the operator's name: index in opClasses, NaN for other codes. */
interface OperatorClasses {
  classes: Float64Array;
  /**
   * Class that an operator gives to kernels launched inside it when the kernel's name gives none; NaN: none. Only names
   * with a namespace count, because `LlamaAttention.forward` launches everything.
   */
  kernelClasses: Float64Array;
}

/** Each distinct name is classified once. */
export async function classifyOperators(workbench: Workbench): Promise<OperatorClasses> {
  const names = await workbench.query<{ code: number; text: string }>(
    `SELECT code, text::VARCHAR AS text FROM trace_names
     SEMI JOIN (SELECT DISTINCT name FROM trace_ops) o ON o.name = code ORDER BY code`,
  );
  const classByCode = new Float64Array((names.at(-1)?.code ?? -1) + 1).fill(Number.NaN);
  const kernelClasses = classByCode.slice();
  for (const { code, text } of names) {
    const opClass = opClassOf(text);
    classByCode[code] = opClasses.indexOf(opClass);
    if (opClass !== 'other' && text.includes('::')) kernelClasses[code] = classByCode[code]!;
  }
  return { classes: classByCode, kernelClasses };
}
