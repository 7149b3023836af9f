const block = 16;
const seen = new Set();

/** Number of words of this prompt in leading blocks of 16 seen before, as in a paged prefix cache; remembers its blocks. */
export function cachedWords(prompt) {
  const words = prompt.split(' ');
  let cached = 0;
  let known = true;
  for (let end = block; end <= words.length; end += block) {
    const prefix = words.slice(0, end).join(' ');
    known &&= seen.has(prefix);
    if (known) cached = end;
    else seen.add(prefix);
  }
  return cached;
}
