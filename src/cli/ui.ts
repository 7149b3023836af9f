import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Hono } from 'hono';
import { InferscopeError, messageOf } from '../model/errors.js';
import type { Homes } from '../ui/homes.js';
import { collect } from './command-line.js';
import { examples } from './examples.js';
import { waitForStop } from './interrupt.js';
import { portParser } from './numbers.js';
import { openInBrowser } from './open-in-browser.js';
import { print, notify, warn } from './output.js';
import { refuseUnused } from './unused-options.js';

interface Options {
  home?: string[];
  host: string;
  port: number;
  token?: string;
  open: boolean;
  export?: string;
}

export function define(command: Command): void {
  command
    .argument(
      '[session]',
      'session to open first: id prefix, name, @last or @last~1 (default: the list of sessions)',
    )
    .option(
      '--home <folder>',
      'home with the sessions to show; repeatable (default: $INFERSCOPE_HOME)',
      collect,
    )
    .option('--host <host>', 'address to listen on; all but loopback need --token', '127.0.0.1')
    .option('--port <n>', 'port; 0 chooses a free port', portParser({ example: 0 }), 0)
    .option('--token <text>', 'token that the first URL carries (default: a random one)')
    .option('--no-open', 'print the URL without opening a browser')
    .option(
      '--export <file>',
      'write overview, timeline, requests and memory of the session (default: @last) as one HTML file that opens offline, and exit',
    )
    .addHelpText(
      'after',
      examples(
        ['inferscope ui --home ~/mine --home /mnt/team', 'show the sessions of two homes in one list'],
        ['inferscope ui @last --export page.html', 'write one file of at most 5 MB to share'],
      ),
    )
    .action(async (selector: string | undefined, options: Options) => {
      if (options.export !== undefined) {
        refuseUnused(command, ['host', 'port', 'token', 'open'], {
          why: '--export writes a file and starts no server.',
          fix: 'Leave it out, or leave --export out.',
        });
        return writeExport(await homesOf(options.home), selector ?? '@last', resolve(options.export));
      }
      const local = ['127.0.0.1', '::1', 'localhost'].includes(options.host);
      if (!local && options.token === undefined)
        throw new InferscopeError('E_USAGE', {
          what: `--host ${options.host} needs --token`,
          why: 'Other machines can reach it, and the page shows your sessions.',
          fix: `Type for example: inferscope ui --host ${options.host} --token "$(openssl rand -hex 16)"`,
        });
      if (options.token === '')
        throw new InferscopeError('E_USAGE', {
          what: '--token is empty',
          why: 'Without a token every program on this machine, and for another --host every machine, could read the sessions.',
          fix: 'Leave --token out for a random one.',
        });
      const token = options.token ?? randomBytes(18).toString('base64url');
      const [homes, { sessionPath }, { listen }] = await Promise.all([
        homesOf(options.home),
        import('../ui/session-path.js'),
        import('../model/listen.js'),
      ]);
      const key = selector === undefined ? null : homes.select(selector);
      if (key !== null) await homes.open(key);
      const path = key === null ? '/' : sessionPath(key);
      // The pages take longer to load than the server, so the address is printed first.
      let loading: Promise<Hono> | undefined;
      const app = (): Promise<Hono> =>
        (loading ??= import('../ui/app.js').then(({ uiApp }) =>
          uiApp({
            homes,
            host: options.host,
            token,
            first: key,
            log: (error) => warn(messageOf(error)),
          }),
        ));
      const server = await listen(async (request) => (await app()).fetch(request), options);
      const { port } = server.address() as AddressInfo;
      const urlHost = options.host.includes(':') ? `[${options.host}]` : options.host;
      const url = `http://${urlHost}:${port}${path}?token=${encodeURIComponent(token)}`;
      if (!local) warn(`${options.host} is reachable from other machines, without TLS`);
      print(url);
      notify('Ctrl-C stops the server.');
      await Promise.all([waitForStop(), app(), options.open ? openInBrowser(url) : null]);
      server.close();
      server.closeAllConnections();
    });
}

/** @throws E_USAGE for a folder that has no sessions */
async function homesOf(folders: readonly string[] | undefined): Promise<Homes> {
  const [{ Homes }, { homeFolders }] = await Promise.all([
    import('../ui/homes.js'),
    import('../session/home.js'),
  ]);
  if (folders === undefined) return new Homes([homeFolders()]);
  const homes = [...new Set(folders.map((folder) => resolve(folder)))].map((INFERSCOPE_HOME) =>
    homeFolders({ INFERSCOPE_HOME }),
  );
  for (const { root, sessions } of homes)
    if (!existsSync(sessions))
      throw new InferscopeError('E_USAGE', {
        what: `--home ${root} is not a home of inferscope`,
        why: `There is no folder ${sessions}.`,
        fix: 'Give the folder that INFERSCOPE_HOME names where the sessions were recorded, by default ~/.local/share/inferscope.',
      });
  return new Homes(homes);
}

async function writeExport(homes: Homes, selector: string, path: string): Promise<void> {
  const [{ exportedPage }, { ensureReportPath, writeReport }] = await Promise.all([
    import('../ui/export-page.js'),
    import('./report-file.js'),
  ]);
  const session = await homes.open(homes.select(selector));
  await ensureReportPath(path, '--export');
  const { html, note } = await exportedPage(session);
  await writeReport(path, () => html);
  notify(`page of ${session.id} written`);
  if (note !== null) notify(note);
  print(path);
}
