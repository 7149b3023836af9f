/** Red, green and blue of a color such as #0a1b2c or rgb(10, 27, 44). */
export const channelsOf = (color: string): number[] =>
  color.startsWith('#')
    ? [1, 3, 5].map((start) => Number.parseInt(color.slice(start, start + 2), 16))
    : (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
