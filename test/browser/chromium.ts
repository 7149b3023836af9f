import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser } from 'playwright-core';

const require = createRequire(import.meta.url);

/**
 * Unpacks the browser of the package @sparticuz/chromium once per version and user: under a temporary name, which is then changed, so that
 * concurrent or killed test runs leave no incomplete browser. @returns its folder
 */
function unpackChromium(): string {
  const entry = require.resolve('@sparticuz/chromium');
  const { version } = JSON.parse(readFileSync(join(dirname(entry), '..', '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  const folder = join(tmpdir(), `inferscope-chromium-${version}-${userInfo().uid}`);
  if (existsSync(folder)) return folder;
  const temporary = mkdtempSync(`${folder}.`);
  const script = `const c = (await import(${JSON.stringify(pathToFileURL(entry).href)})).default;
    await (c.default ?? c).executablePath();`;
  execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    // The package unpacks its NSS libraries, which a minimal machine needs, only if it detects AWS Lambda.
    env: { ...process.env, TMPDIR: temporary, AWS_LAMBDA_JS_RUNTIME: 'nodejs20.x' },
  });
  try {
    renameSync(temporary, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(temporary, { recursive: true, force: true });
  }
  return folder;
}

/** Starts a headless Chromium that needs only what npm installed. @param args additional switches of Chromium */
export function launchBrowser(args: readonly string[] = []): Promise<Browser> {
  const folder = unpackChromium();
  // The fonts.conf of the package names folders of AWS Lambda, and its font lacks arrows, which the system's fonts have.
  const fonts = [join(folder, 'fonts'), '/usr/share/fonts'].map((path) => `<dir>${path}</dir>`).join('');
  writeFileSync(
    join(folder, 'fonts', 'fonts.conf'),
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${fonts}<cachedir>${folder}/font-cache</cachedir></fontconfig>`,
  );
  const libraries = [join(folder, 'al2023', 'lib'), folder, process.env['LD_LIBRARY_PATH']].filter(Boolean);
  return chromium.launch({
    executablePath: join(folder, 'chromium'),
    args: [
      '--headless=shell',
      '--no-sandbox',
      '--no-zygote',
      '--disable-gpu',
      '--font-render-hinting=none',
      ...args,
    ],
    env: {
      ...(process.env as Record<string, string>),
      LD_LIBRARY_PATH: libraries.join(':'),
      FONTCONFIG_PATH: join(folder, 'fonts'),
    },
  });
}
