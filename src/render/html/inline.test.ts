import { createHash } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { hostileText } from '../../views/test-profile.js';
import { inlineJson, inlineScript } from './inline.js';

describe('inline JSON', () => {
  it('parses to the same value and contains nothing that ends or opens an element', () => {
    const value = { [hostileText]: [hostileText, '&amp;', 1.5, null] };
    const text = inlineJson(value);
    expect(JSON.parse(text)).toEqual(value);
    expect(text).not.toMatch(/[<>&\u2028\u2029]/);
  });
});

describe('inline script', () => {
  it('keeps its meaning, cannot end its element, and the policy allows exactly its text', () => {
    const script = `globalThis.out = ["</script>", '<!--', /<\\/SCRIPT>/.source];`;
    const { text, cspSource } = inlineScript(script);
    expect(text).not.toMatch(/<\/script|<!--/i);
    const context: { out?: string[] } = {};
    runInNewContext(text.replaceAll('globalThis.out', 'out'), context);
    expect(context.out).toEqual(['</script>', '<!--', '<\\/SCRIPT>']);
    expect(cspSource).toBe(`'sha256-${createHash('sha256').update(text).digest('base64')}'`);
  });
});
