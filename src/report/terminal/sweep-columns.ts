import type { SweepResult } from '../../model/documents/sweep.js';
import { nbsp, noValue } from '../format.js';
import { parameterName, shownParameters, shownValue } from '../sweep-words.js';
import { hanging, inert, textWidth } from './text.js';

export interface SweepColumns {
  parameters: string[];
  /** What was taken out of the table: what follows from the model, once a model, and what there is no room for. */
  lines: string[];
}

export const fitsWithin = (table: string, width: number): boolean =>
  table.split('\n').every((line) => textWidth(line) <= width);

/**
 * The parameters of a table that is to fit `width`. Those that follow from the model go first, then the last ones: the first are
 * what sweeps are mostly over. `where` has all of them.
 */
export function columnsWithin(
  data: SweepResult,
  width: number,
  { table, where }: { table: (parameters: readonly string[]) => string; where: string },
): SweepColumns {
  const all = shownParameters(data);
  const fits = (parameters: readonly string[]) => fitsWithin(table(parameters), width);
  if (fits(all)) return { parameters: all, lines: [] };
  const byModel = ofModels(data, all);
  const parameters = all.filter((name) => !byModel.names.has(name));
  const dropped: string[] = [];
  while (parameters.length > 1 && !fits(parameters)) dropped.unshift(parameterName(parameters.pop()!));
  const missing = `Not shown for want of room: ${dropped.join(', ')}; ${where} has all.`;
  return {
    parameters,
    lines: [
      ...byModel.lines.flatMap((text) => hanging('  ', text, width)),
      ...(dropped.length > 0 ? hanging('  ', missing, width) : []),
    ],
  };
}

/** Parameters of which each model has one value, in words. */
function ofModels({ runs }: SweepResult, shown: readonly string[]) {
  const names = new Set<string>();
  const values = new Map<string, Map<string, string>>();
  if (!shown.includes('model_id')) return { names, lines: [] };
  for (const { parameters } of runs) values.set(shownValue('model_id', parameters['model_id']), new Map());
  for (const name of shown) {
    if (name === 'model_id') continue;
    const found = runs.map(({ parameters }) => ({
      model: shownValue('model_id', parameters['model_id']),
      value: shownValue(name, parameters[name]),
    }));
    const first = new Map(found.toReversed().map(({ model, value }) => [model, value]));
    if (found.some(({ model, value }) => first.get(model) !== value)) continue;
    names.add(name);
    for (const [model, value] of first) values.get(model)!.set(parameterName(name), value);
  }
  const lines = [...values].map(([model, of]) => {
    const told = [...of].filter(([, value]) => value !== noValue);
    return inert(`${model}: ${told.map(([name, value]) => `${name}${nbsp}${value}`).join(', ')}`);
  });
  return { names, lines: names.size > 0 ? lines : [] };
}
