import type { Level, View } from '../views/block.js';
import { print, printDocument, notify, terminalWidth } from './output.js';

export interface ViewOptions {
  format: 'text' | 'md' | 'json';
  json?: boolean;
  html?: string;
}

/**
 * Prints a view in the requested format, and writes the HTML page if requested.
 * @throws E_USAGE, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function showView(
  view: View,
  { format, json, html }: ViewOptions,
  level: Level = 2,
): Promise<void> {
  if (html !== undefined) {
    const { writePage } = await import('./report-file.js');
    const { pageOfView } = await import('../render/html/view.js');
    await writePage(html, (parts) => pageOfView(view, parts));
    notify(`page written: ${html}`);
  }
  if (json || format === 'json') printDocument(view.document);
  else if (format === 'md') {
    const { markdownView } = await import('../render/markdown.js');
    print(markdownView(view));
  } else {
    const { terminalView } = await import('../render/terminal/view.js');
    print(terminalView(view, { width: terminalWidth(), level }));
  }
}
