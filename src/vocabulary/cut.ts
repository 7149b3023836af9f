/** `text` in at most `width` characters; "…" stands for the cut end. */
export function cutEnd(text: string, width: number): string {
  if (text.length <= width) return text;
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, width - 1).join('')}…`;
}

/** `text` in at most `width` characters, cut in the middle: kernel names differ at their ends. */
export function cutMiddle(text: string, width: number): string {
  if (text.length <= width) return text;
  const characters = [...text];
  if (characters.length <= width) return text;
  const head = Math.ceil((width - 1) / 2);
  return `${characters.slice(0, head).join('')}…${characters.slice(characters.length - (width - 1 - head)).join('')}`;
}
