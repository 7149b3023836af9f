import process from 'node:process';
import { notify } from './output.js';

/** Opens a page, only from a terminal with a desktop. @param target path or URL, already printed */
export async function openInBrowser(target: string): Promise<void> {
  const desktop = process.platform !== 'linux' || process.env['DISPLAY'] || process.env['WAYLAND_DISPLAY'];
  if (!process.stdout.isTTY || !desktop) return;
  const opener = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  const { execa } = await import('execa');
  const { failed } = await execa(opener, [target], { reject: false, stdio: 'ignore', timeout: 10_000 });
  if (failed) notify(`(${opener} could not open it; open the line above)`);
}
