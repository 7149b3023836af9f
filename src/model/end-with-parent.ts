import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import process from 'node:process';

/**
 * Children end with this process, even if it is killed (SIGKILL, out of memory) or a native call blocks its event loop: a
 * shell of 1 MB waits on a pipe that only this process holds. When the pipe closes, the shell ends the processes on its list
 * and all their descendants, by SIGTERM, then SIGKILL 2 s later. Lines on the pipe maintain the list: "+ pid", "- pid";
 * "! command" is run too, for processes that no signal reaches from here (in a container).
 *
 * A process exists for some milliseconds before its pid can be written. "= mark" is therefore written before it starts, with
 * the mark in its environment; if no pid follows, the shell searches for the mark in /proc (Linux).
 * Each process is stopped before its children are listed, so that it cannot start another one in between.
 * On Windows libuv's job object does all this.
 */
export const watcherScript = `
trap '' HUP INT TERM QUIT
list=
command=
mark=
while read -r verb argument; do
  case $verb in
  =) mark=$argument ;;
  +) list="$list $argument" mark= ;;
  !) command=$argument ;;
  -)
    remaining=
    for pid in $list; do [ "$pid" = "$argument" ] || remaining="$remaining $pid"; done
    list=$remaining ;;
  esac
done
[ -z "$command" ] || eval "$command" &
[ -n "$list$mark" ] || exit 0
marked_processes() {
  [ -n "$mark" ] || return
  for file in $(grep -ls "$mark" /proc/[0-9]*/environ); do
    file=\${file#/proc/}
    echo "\${file%/environ}"
  done
}
tree() {
  kill -s STOP "$1"
  echo "$1"
  for child in $(cat /proc/"$1"/task/*/children || pgrep -P "$1"); do tree "$child"; done
}
finish() {
  all=$(for pid in $all $(marked_processes); do tree "$pid"; done)
  kill -s "$1" $all
  kill -s CONT $all
}
all=$list
finish TERM
sleep 2
for pid in $all; do kill -s KILL -- "-$pid"; done
finish KILL
`;

/** Environment variable that identifies a child, so that it is found even if this process ends before it knows the child's pid. */
export type Mark = Readonly<Record<string, string>>;

let pipe: NodeJS.WritableStream | null = null;

function watcher(): NodeJS.WritableStream {
  if (pipe) return pipe;
  const shell = spawn('/bin/sh', ['-c', watcherScript], {
    // A new session, so that a signal to this process's group does not end the watcher.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  // Without a shell (an image without a system) children stay alive, as they would without this watcher.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  pipe = shell.stdin;
  return pipe;
}

/**
 * Starts a child that ends when this process does, for any reason. Every process that we start and wait for is started by this.
 * @param start spawns it, with the mark added to its environment
 */
export function endWithParent<T extends Pick<ChildProcess, 'pid' | 'once'>>(start: (mark: Mark) => T): T {
  if (process.platform === 'win32') return start({});
  const mark = randomUUID();
  watcher().write(`= ${mark}\n`);
  let pid: number | undefined;
  try {
    const child = start({ INFERSCOPE_STARTED: mark });
    pid = child.pid;
    if (pid !== undefined) child.once('exit', () => watcher().write(`- ${pid}\n`));
    return child;
  } finally {
    watcher().write(pid === undefined ? '= \n' : `+ ${pid}\n`);
  }
}

/**
 * Runs a program when this process ends before `cancel()` is called; one at a time.
 * @returns cancel
 */
export function runAfterExit(argv: readonly string[]): () => void {
  if (process.platform === 'win32') return () => {};
  const quoted = argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  watcher().write(`! ${quoted}\n`);
  return () => void watcher().write('! \n');
}
