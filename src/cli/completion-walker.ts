import type { CompletionCommand, Values } from './completion-tree.js';

/** Quotes a text in single quotes for bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Name of a position's values in the scripts: `words a b`, `list a b`, `sessions`, `files`, `program`, `free`. */
function kindOf(values: Values): string {
  if (values.kind !== 'words') return values.kind;
  return `${values.list ? 'list' : 'words'} ${values.words.join(' ')}`;
}

/**
 * Functions shared by bash and zsh: they set `kind` or `at` (the path of the command) from the typed words.
 * - `_inferscope_option PATH FLAG`: kind of the option's value; `flag` if it takes none or is unknown
 * - `_inferscope_argument PATH INDEX`: kind of the argument
 * - `_inferscope_command PATH WORD`: path of the command below, and success
 */
export function lookups(tree: readonly CompletionCommand[]): string {
  const options = tree.flatMap(({ path, options: commandOptions }) =>
    commandOptions.flatMap(({ flags, values }) =>
      values === null
        ? []
        : [
            `    ${flags.map((flag) => quoted(`${path}:${flag}`)).join('|')}) kind=${quoted(kindOf(values))} ;;`,
          ],
    ),
  );
  const places = tree.flatMap(({ path, arguments: commandArguments }) =>
    commandArguments.map(({ values, variadic }, index) => {
      const pattern = variadic ? `${quoted(`${path}:`)}*` : quoted(`${path}:${index}`);
      return `    ${pattern}) kind=${quoted(kindOf(values))} ;;`;
    }),
  );
  const commands = tree
    .filter(({ path }) => path !== '')
    .map(({ path, names }) => {
      const parent = path.split(' ').slice(0, -1).join(' ');
      const patterns = names.map((name) => quoted(`${parent}:${name}`)).join('|');
      return `    ${patterns}) at=${quoted(path)} ;;`;
    });
  return `_inferscope_option() {
  kind=flag
  case "$1:$2" in
${options.join('\n')}
  esac
}

_inferscope_argument() {
  kind=free
  case "$1:$2" in
${places.join('\n')}
  esac
}

_inferscope_command() {
  case "$1:$2" in
${commands.join('\n')}
    *) return 1 ;;
  esac
}
`;
}

/**
 * Reads the words before the cursor, given as arguments. Sets `at` to the path of the command and `kind` to what may
 * come next: `command` if a subcommand, an option or an argument is allowed, else as in `kindOf` (`program`: the command
 * line after `run`). With `command`, `place` is the kind of the argument, and `verbs` is 0 after `--`: no options.
 */
export const walk = `_inferscope_walk() {
  local word index=0
  at='' kind='' verbs=1
  for word in "$@"; do
    if [[ $kind == program ]]; then continue; fi
    if [[ -n $kind ]]; then
      # The value of the previous option.
      kind=''
      continue
    fi
    case "$word" in
      --)
        _inferscope_argument "$at" "$index"
        if [[ $kind != program ]]; then kind='' verbs=0; fi ;;
      --*=*) ;;
      -?*)
        _inferscope_option "$at" "$word"
        if [[ $kind == flag ]]; then kind=''; fi ;;
      *)
        if _inferscope_command "$at" "$word"; then
          index=0
        else
          _inferscope_argument "$at" "$index"
          if [[ $kind != program ]]; then kind=''; fi
          index=$((index + 1))
        fi ;;
    esac
  done
  if [[ -z $kind ]]; then
    _inferscope_argument "$at" "$index"
    place=$kind kind=command
  fi
}
`;

/** Names and descriptions of the commands directly below `path`. */
export function below(tree: readonly CompletionCommand[], path: string): CompletionCommand[] {
  const depth = path === '' ? 1 : path.split(' ').length + 1;
  return tree.filter(
    (completionCommand) =>
      completionCommand.path !== '' &&
      completionCommand.path.split(' ').length === depth &&
      (path === '' || completionCommand.path.startsWith(`${path} `)),
  );
}
