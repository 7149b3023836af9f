import {
  formatCount,
  formatFigure,
  formatFigureWithInterval,
  formatFigureWithSpread,
  formatPartOf,
  formatQuantity,
  formatSigned,
  formatUtilization,
  isOverRoof,
  nbsp,
  noValue,
  keepUnits,
  withUnit,
} from '../vocabulary/format.js';
import type { Text, Value } from '../views/block.js';

/** The text of a value, used for every medium. */
export function valueText(value: Value): string {
  if ('figure' in value) {
    const { figure, spread, utilization } = value;
    if (!spread) return keepUnits(utilization ? formatUtilization(figure) : formatFigure(figure));
    const text = spread === 'interval' ? formatFigureWithInterval(figure) : formatFigureWithSpread(figure);
    return keepUnits(utilization && isOverRoof(figure) ? `${text} (invalid)` : text);
  }
  if ('n' in value) {
    const text = numberText(value);
    return (value.bare ? text.slice(0, text.lastIndexOf(' ')) : text).replaceAll(' ', nbsp);
  }
  if ('count' in value)
    return value.unit ? withUnit(formatCount(value.count), value.unit, nbsp) : formatCount(value.count);
  if ('missing' in value) return noValue;
  // Drawn on pages; the numbers are in the next columns.
  if ('gain' in value) return '';
  return 'code' in value ? value.code : value.text;
}

function numberText({ n, unit, digits, signed, of, half }: Extract<Value, { n: number }>): string {
  if (of !== undefined) return formatPartOf(n, unit, of, { signed, half });
  return (signed ? formatSigned : formatQuantity)(n, unit, digits);
}

export const parts = (text: Text): readonly (string | Value)[] => (isList(text) ? text : [text]);

const isList = (text: Text): text is readonly (string | Value)[] => Array.isArray(text);

export const plainText = (text: Text): string =>
  parts(text)
    .map((part) => (typeof part === 'string' ? part : valueText(part)))
    .join('');

/** The number in a cell, for sorting and CSV; its text if it has none, null if it is missing. */
export function rawValue(text: Text): number | string | null {
  const [only, ...others] = parts(text);
  if (only === undefined || others.length > 0) return plainText(text);
  if (typeof only === 'string') return only;
  if ('figure' in only) return only.figure.value;
  if ('n' in only) return only.n;
  if ('count' in only) return only.count;
  if ('missing' in only) return null;
  return valueText(only);
}
