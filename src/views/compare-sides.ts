import type { Column, Text } from './block.js';

/** A, B, C …: letters instead of session names keep columns narrow. */
export const letter = (index: number): string =>
  index < 26 ? String.fromCharCode(65 + index) : `S${index + 1}`;

/** One column per session. @param id of the values, with their unit */
export const sideColumns = (count: number, id: string): Column[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `${id}_${letter(index).toLowerCase()}`,
    head: letter(index),
    numeric: true,
  }));

/**
 * Two columns per later session: change in ms and in percent against the first. With more than two sessions a narrow terminal leaves them
 * out, the last session's last: key sentences are about it.
 */
export const changeColumns = (count: number): Column[] =>
  Array.from({ length: count - 1 }, (_, index): Column[] => {
    const [sideLetter, first] = [letter(index + 1), letter(0)];
    const drop = count > 2 ? { drop: count + index } : {};
    return [
      {
        id: `change_ms_${sideLetter.toLowerCase()}`,
        head: `${sideLetter} − ${first}`,
        numeric: true,
        ...drop,
      },
      {
        id: `change_share_${sideLetter.toLowerCase()}`,
        // Without its neighbor, which a narrow terminal may leave out, it must say which side it is of.
        head: count > 2 ? `% ${sideLetter} − ${first}` : '%',
        numeric: true,
        ...drop,
      },
    ];
  }).flat();

/**
 * The cells of two change columns.
 * @param whyMissing why a side has no time
 * @param of the total that the times are parts of, if they are
 */
export function timeChange(
  from: number | null,
  to: number | null,
  whyMissing: string,
  of?: number,
): [Text, Text] {
  if (from === null || to === null) return [{ missing: whyMissing }, { missing: whyMissing }];
  return [
    { n: to - from, unit: 'ms', signed: true, ...(of === undefined ? {} : { of }) },
    shareChange(from, to),
  ];
}

export const shareChange = (from: number, to: number): Text =>
  from > 0 ? { n: to / from - 1, unit: 'ratio', signed: true } : { missing: 'the first value is 0' };
