/**
 * Names come from files and devices, so all output passes one of these functions: `safeText` for terminals, Markdown and pages, `safeJson`
 * for documents. `inert` (terminal/text.ts) makes a name one line before it is measured.
 */

/** Colors that we add ourselves (picocolors). */
const ownColor = String.raw`\u001b\[(?:[0-4]|[79]|2[2-9]|3[0-79]|4[0-79]|9[0-7]|10[0-7])m`;
/** Complete escape sequences: CSI, OSC and other strings. */
const sequence = String.raw`[\u001b][[][0-?]*[ -/]*[@-~]|\u009b[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)`;
/** Control characters, and marks that change the direction of a text or end its line. */
const steering = String.raw`(?![\n\t])\p{Cc}|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]`;

const unsafe = new RegExp(`(${ownColor})|(${sequence})|${steering}`, 'gu');
const suspicious = /(?![\n\t])\p{Cc}|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

/** Removes everything from `text` that controls a terminal or reorders a line. @param colors keeps our own */
export function safeText(text: string, { colors = false }: { colors?: boolean } = {}): string {
  if (!suspicious.test(text)) return text;
  return text.replaceAll(unsafe, (_, color?: string, other?: string) =>
    color !== undefined && colors ? color : color !== undefined || other !== undefined ? '' : '\uFFFD',
  );
}

/** JSON that parses to the same value and can be shown on a terminal. */
export function safeJson(json: string): string {
  if (!suspicious.test(json)) return json;
  return json.replaceAll(
    new RegExp(steering, 'gu'),
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
