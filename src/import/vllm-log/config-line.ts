/**
 * `Initializing a V1 LLM engine (v0.9.2) with config: model='…', speculative_config=None, dtype=torch.bfloat16, …`: the
 * settings at its top level. Values may nest (compilation_config={…}, SpeculativeConfig(model='…')).
 */
export function configSettings(text: string, from: number): Map<string, { value: string; index: number }> {
  const settings = new Map<string, { value: string; index: number }>();
  let depth = 0;
  let quote = '';
  let start = from;
  const close = (end: number) => {
    const part = text.slice(start, end);
    const match = /^\s*(\w+)=([\s\S]*)$/.exec(part);
    if (match && !settings.has(match[1]!)) {
      const value = match[2]!.trim();
      settings.set(match[1]!, { value: unquote(value), index: start + part.indexOf(match[1]!) });
    }
    start = end + 1;
  };
  for (let i = from; i < text.length; i++) {
    const char = text[i]!;
    if (quote) {
      if (char === quote) quote = '';
    } else if (char === "'" || char === '"') quote = char;
    else if ('([{'.includes(char)) depth++;
    else if (')]}'.includes(char)) {
      // The bracket that ends the list (0.4 to 0.6 close one that was never opened).
      if (depth === 0) {
        close(i);
        return settings;
      }
      depth--;
    } else if (char === ',' && depth === 0) close(i);
  }
  close(text.length);
  return settings;
}

/** `args: Namespace(model='…', …)` and `non-default args: {'port': 1, 'model': '…'}`. */
export function argumentSetting(text: string, name: string): { value: string; index: number } | null {
  const match = new RegExp(`\\b'?${name}'?(?:=|: )('[^']*'|[^,)}\\s]+)`).exec(text);
  return match ? { value: unquote(match[1]!), index: match.index } : null;
}

function unquote(value: string): string {
  return value.replace(/^(['"])(.*)\1$/s, '$2');
}
