import { type Unit, unitOfKey } from './units.js';

const plain: Unit = { dimension: 'plain', scale: 1 };
const ratio: Unit = { dimension: 'ratio', scale: 1 };

/**
 * The units of a query's columns, from their expressions: avg(dur_ns) / 1e6 is milliseconds whatever it is called. Other expressions keep
 * the unit in the column's name.
 * @returns the unit of a column by its name; null if unknown
 */
export function sqlUnits(sql: string): (column: string) => Unit | null {
  const known = new Map<string, Unit>();
  const aliases = aliasedExpressions(withoutTexts(sql));
  // A second pass for expressions with columns that a later subquery defines.
  for (let pass = 0; pass < 2; pass++) {
    for (const { name, expression } of aliases) {
      const unit = unitOfExpression(expression, known);
      if (unit) known.set(name.toLowerCase(), unit);
    }
  }
  return (column) =>
    known.get(column.toLowerCase()) ?? unitOfKey(column) ?? unitOfExpression(column.toLowerCase(), known);
}

/** Replaces strings and comments of a query by spaces: they contain names, not numbers. */
export const withoutTexts = (sql: string): string =>
  sql.replaceAll(/'(?:[^']|'')*'|--[^\n]*|\/\*[^]*?\*\//g, (text) => ' '.repeat(text.length));

/** All "expression AS name": the expression starts after a comma or bracket, or its SELECT. */
function aliasedExpressions(sql: string): { name: string; expression: string }[] {
  return [...sql.matchAll(/\bAS\s+"?(\w+)"?/gi)].map(({ index, 1: name }) => {
    let depth = 0;
    let position = index - 1;
    for (; position >= 0; position--) {
      const character = sql[position]!;
      if (character === ')') depth++;
      else if (character === '(' && depth-- === 0) break;
      else if (character === ',' && depth === 0) break;
    }
    const text = sql.slice(position + 1, index);
    const select = [...text.matchAll(/\bselect\s+(?:distinct\s+)?/gi)].findLast(
      (match) => depthAt(text, match.index) === 0,
    );
    const expression = select ? text.slice(select.index + select[0].length) : text;
    return { name: name!, expression: expression.trim() };
  });
}

const depthAt = (text: string, index: number): number =>
  text.slice(0, index).replaceAll(/[^(]/g, '').length - text.slice(0, index).replaceAll(/[^)]/g, '').length;

const sameUnit =
  /^(?:sum|avg|mean|median|min|max|any_value|first|last|abs|coalesce|quantile|quantile_cont|quantile_disc|approx_quantile|mode|stddev|stddev_samp|stddev_pop|arg_max|arg_min|round|floor|ceil)\(\s*(?:distinct\s+)?(.*)\)$/i;

function unitOfExpression(text: string, known: ReadonlyMap<string, Unit>): Unit | null {
  const stripped = unwrapped(
    text
      .trim()
      .replace(/::\w+(?:\(\d+(?:,\s*\d+)?\))?$/, '')
      .replace(/\s+over\s*\([^()]*\)$/i, '')
      .replace(/\s+filter\s*\([^()]*\)$/i, ''),
  );
  if (/^count(?:_star)?\s*\([^]*\)$/i.test(stripped) && closes(stripped)) return plain;
  const [left, operator, right] = lastOperator(stripped) ?? [];
  if (operator === '*' || operator === '/') {
    const [a, b] = [numberIn(left!), numberIn(right!)];
    const [leftUnit, rightUnit] = [unitOfExpression(left!, known), unitOfExpression(right!, known)];
    if (b !== null) return leftUnit && scaledBy(leftUnit, operator === '/' ? b : 1 / b);
    if (a !== null) return operator === '*' ? rightUnit && scaledBy(rightUnit, 1 / a) : null;
    if (operator === '/' && leftUnit && rightUnit && leftUnit.dimension === rightUnit.dimension)
      return { ...ratio, scale: leftUnit.scale / rightUnit.scale };
    return null;
  }
  if (operator === '+' || operator === '-') {
    const [leftUnit, rightUnit] = [unitOfExpression(left!, known), unitOfExpression(right!, known)];
    return leftUnit &&
      rightUnit &&
      leftUnit.dimension === rightUnit.dimension &&
      leftUnit.scale === rightUnit.scale
      ? leftUnit
      : null;
  }
  const inner = closes(stripped) ? sameUnit.exec(stripped)?.[1] : undefined;
  if (inner !== undefined) return unitOfExpression(firstArgument(inner), known);
  const name = /^(?:"?\w+"?\.)?"?(\w+)"?$/.exec(stripped)?.[1]?.toLowerCase();
  if (name === undefined || /^\d/.test(name)) return null;
  return known.get(name) ?? unitOfKey(name);
}

const scaledBy = (unit: Unit, factor: number): Unit => ({ ...unit, scale: unit.scale * factor });

function numberIn(text: string): number | null {
  const stripped = unwrapped(text.trim());
  const power = /^pow(?:er)?\(\s*(\d+)\s*,\s*(\d+)\s*\)$|^(\d+)\s*(?:\*\*|\^)\s*(\d+)$/i.exec(stripped);
  if (power) return Number(power[1] ?? power[3]) ** Number(power[2] ?? power[4]);
  return /^[\d_.]+(?:e[+-]?\d+)?$/i.test(stripped) ? Number(stripped.replaceAll('_', '')) : null;
}

/** Whether the last character closes the first bracket of "f(…)". */
function closes(text: string): boolean {
  let depth = 0;
  for (const [index, character] of [...text].entries()) {
    if (character === '(') depth++;
    else if (character === ')' && --depth === 0) return index === text.length - 1;
  }
  return false;
}

const unwrapped = (text: string): string =>
  text.startsWith('(') && closes(text) ? unwrapped(text.slice(1, -1).trim()) : text;

function firstArgument(text: string): string {
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '(') depth++;
    else if (text[index] === ')') depth--;
    else if (text[index] === ',' && depth === 0) return text.slice(0, index);
  }
  return text;
}

/** The operator that is evaluated last, outside brackets: + and − before * and /, the rightmost of its kind. */
function lastOperator(text: string): [string, string, string] | null {
  for (const kind of ['+-', '*/']) {
    let depth = 0;
    for (let index = text.length - 1; index > 0; index--) {
      const character = text[index]!;
      if (character === ')') depth++;
      else if (character === '(') depth--;
      else if (depth === 0 && kind.includes(character)) {
        const before = text.slice(0, index).trimEnd();
        // Skips the sign of an exponent (1e-6), a sign after another operator, and a power.
        if (/\d[eE]$/.test(text.slice(0, index)) || /[-+*/(,]$/.test(before) || text[index + 1] === '*')
          continue;
        return [before, character, text.slice(index + 1).trim()];
      }
    }
  }
  return null;
}
