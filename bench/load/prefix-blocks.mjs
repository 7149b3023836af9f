const block = 16;
const seen = new Set();

/**
 * Number of words in this prompt's leading blocks of 16 that were in earlier prompts, as in a paged prefix cache. Adds its blocks to the
 * cache.
 */
export function countCachedWords(prompt) {
  const words = prompt.split(' ');
  let cached = 0;
  let isCached = true;
  for (let end = block; end <= words.length; end += block) {
    const prefix = words.slice(0, end).join(' ');
    isCached &&= seen.has(prefix);
    if (isCached) cached = end;
    else seen.add(prefix);
  }
  return cached;
}
