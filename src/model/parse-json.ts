/** Maximum nesting, ten times that of any real document; JSON.stringify and schemas recurse and overflow at some thousands. */
const deepestLevel = 256;

/**
 * JSON.parse for files given by a user.
 * @throws SyntaxError if the text is not JSON, or is nested too deeply to be checked and written again
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  let level = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > deepestLevel) throw new SyntaxError(`It is nested more than ${deepestLevel} levels deep.`);
    level = level.flatMap((item): unknown[] =>
      typeof item === 'object' && item !== null ? Object.values(item) : [],
    );
  }
  return value;
}
