import { createHash } from 'node:crypto';
import { safeJson } from '../safe-text.js';

/**
 * JSON for a `<script type="application/json">`: characters that could end the element, open a comment or control a terminal are escaped,
 * so that it parses to the same value.
 */
export function inlineJson(value: unknown): string {
  return safeJson(JSON.stringify(value)).replaceAll(
    /[<>&]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A script's text, escaped for the page, and the CSP source that allows this text and no other. */
export function inlineScript(script: string): { text: string; cspSource: string } {
  // These sequences occur only in string and regular expression literals, where the backslash changes nothing.
  const text = script.replaceAll(/<\/(?=script)/gi, '<\\/').replaceAll('<!--', '<\\!--');
  return { text, cspSource: `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'` };
}
