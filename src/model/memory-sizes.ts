/** Larger sizes are impossible, in bytes as in GB. */
const maxBytes = 1e18;

interface Sizes {
  memory_measurements: unknown;
  memory_breakdown?: unknown;
}

/** The first impossible size of a memory profile: negative at a point, or larger than any machine's memory. Null without one. */
export function impossibleSize({ memory_measurements, memory_breakdown }: Sizes): string | null {
  for (const [where, value] of numbersIn({ memory_measurements, memory_breakdown }))
    if (Math.abs(value) > maxBytes || (value < 0 && /\.(?:baseline|post_warmup|peak)\./.test(where)))
      return `${where} is ${value}: memory does not have such a size.`;
  return null;
}

function* numbersIn(value: unknown, path = ''): Generator<[string, number]> {
  if (typeof value === 'number') yield [path, value];
  else if (typeof value === 'object' && value !== null)
    for (const [key, inner] of Object.entries(value)) yield* numbersIn(inner, `${path}.${key}`);
}
