import { InferscopeError, messageOf } from '../model/errors.js';
import { stageKinds, type StageKind } from '../model/record.js';
import type { StageNameRule } from './stage-name-rules.js';

/**
 * Stage names of inferscope.yaml:
 *
 *     stages:
 *       - pattern: 'llm\.forward\[(?<batch_size>\d+)\]'
 *         kind: decode
 *
 * @param value the value of `stages:`
 * @param file name for the message
 * @throws E_CONFIG_FILE
 */
export function stageNameRulesFrom(value: unknown, file: string): StageNameRule[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw failure(file, 'stages', `it is ${typeof value}, not a list`);
  return value.map((entry: unknown, i) => parseRule(entry, file, `stages[${i}]`));
}

function parseRule(entry: unknown, file: string, where: string): StageNameRule {
  if (typeof entry !== 'object' || entry === null) throw failure(file, where, 'it has no pattern and kind');
  const unknown = Object.keys(entry).filter((key) => key !== 'pattern' && key !== 'kind');
  if (unknown.length > 0) throw failure(file, where, `the key ${unknown.join(', ')} is unknown`);
  const { pattern, kind } = entry as { pattern?: unknown; kind?: unknown };
  if (typeof pattern !== 'string' || pattern === '')
    throw failure(file, `${where}.pattern`, 'it is not a string');
  if (!stageKinds.includes(kind as StageKind))
    throw failure(file, `${where}.kind`, `${JSON.stringify(kind)} is not one of ${stageKinds.join(', ')}`);
  try {
    return { pattern: new RegExp(pattern, 'i'), kind: kind as StageKind, source: file, sample: pattern };
  } catch (error) {
    throw failure(file, `${where}.pattern`, messageOf(error));
  }
}

function failure(file: string, where: string, why: string): InferscopeError {
  return new InferscopeError('E_CONFIG_FILE', {
    what: `${file}: ${where} is invalid`,
    why: `${why[0]?.toUpperCase()}${why.slice(1)}.`,
    fix: `Write each entry as {pattern: 'my decode (?<step_index>\\d+)', kind: decode}; kinds are ${stageKinds.join(', ')}.`,
  });
}
