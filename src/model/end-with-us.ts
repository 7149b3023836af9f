import { spawn, type ChildProcess } from 'node:child_process';
import process from 'node:process';

/**
 * Children end with this process, also when it is killed (SIGKILL, out of memory) and while a native call blocks its event
 * loop: a shell of 1 MB waits on a pipe that only this process holds. When the pipe closes it ends the processes on its
 * list and all below them, SIGTERM first, SIGKILL 2 s later. The list is kept by lines on the pipe: "+ pid", "- pid";
 * "! command" is run too, for what no signal reaches from here (a process in a container).
 * On Windows libuv's job object does this.
 */
export const watch = `
trap '' HUP INT TERM QUIT
list=
command=
while read -r verb what; do
  case $verb in
  +) list="$list $what" ;;
  !) command=$what ;;
  -)
    rest=
    for one in $list; do [ "$one" = "$what" ] || rest="$rest $one"; done
    list=$rest ;;
  esac
done
[ -z "$command" ] || eval "$command" &
[ -n "$list" ] || exit 0
tree() {
  echo "$1"
  for child in $(cat /proc/"$1"/task/*/children || pgrep -P "$1"); do tree "$child"; done
}
all=$(for one in $list; do tree "$one"; done)
kill -s TERM $all
sleep 2
for one in $list; do kill -s KILL -- "-$one"; done
kill -s KILL $all
`;

let pipe: NodeJS.WritableStream | null = null;

function watcher(): NodeJS.WritableStream {
  if (pipe) return pipe;
  const shell = spawn('/bin/sh', ['-c', watch], {
    // A session of its own: what ends this process's group must not end the watcher.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  // Without a shell (an image without a system) children live on, as they would without this.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  pipe = shell.stdin;
  return pipe;
}

/** `child` ends when this process does, however that ends. Every process that we start and wait for is given to it. */
export function endWithUs<T extends Pick<ChildProcess, 'pid' | 'once'>>(child: T): T {
  const { pid } = child;
  if (pid === undefined || process.platform === 'win32') return child;
  watcher().write(`+ ${pid}\n`);
  child.once('exit', () => watcher().write(`- ${pid}\n`));
  return child;
}

/**
 * Runs a program when this process ends before `cancel()` is called; one at a time.
 * @returns cancel
 */
export function atOurEnd(argv: readonly string[]): () => void {
  if (process.platform === 'win32') return () => {};
  const quoted = argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  watcher().write(`! ${quoted}\n`);
  return () => void watcher().write('! \n');
}
