import type { CompletionCommand, Values } from './completion-tree.js';
import { below } from './completion-walker.js';

/** Quotes a text in single quotes for fish. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}

function candidates(values: Values): string {
  switch (values.kind) {
    case 'words':
      return values.list
        ? `-x -a ${quoted(`(__inferscope_list ${values.words.join(' ')})`)}`
        : `-x -a ${quoted(values.words.join(' '))}`;
    case 'sessions':
      return `-x -k -a '(inferscope completion --sessions 2>/dev/null)'`;
    case 'files':
      return '-r -F';
    case 'program':
      return `-x -a '(__fish_complete_subcommand)'`;
    case 'free':
      return '-x';
  }
}

/** fish knows which options take a value; the functions determine which command is being typed. */
export function fishScript(tree: readonly CompletionCommand[]): string {
  const verbs = tree
    .filter(({ path }) => path !== '')
    .map(({ path, names }) => {
      const parent = path.split(' ').slice(0, -1).join(' ');
      return `      case ${names.map((name) => quoted(`${parent}:${name}`)).join(' ')}\n        set path ${quoted(path)}`;
    });
  const takesValue = tree.flatMap(({ path, options }) =>
    options
      .filter(({ values }) => values)
      .flatMap(({ flags }) => flags.map((flag) => quoted(`${path}:${flag}`))),
  );
  const lines = tree.flatMap((command) => {
    const condition = `-n ${quoted(`__inferscope_at "${command.path}"`)}`;
    const subcommands = below(tree, command.path).flatMap(({ names, description }) =>
      names.map(
        (name) => `complete -c inferscope ${condition} -f -a ${quoted(name)} -d ${quoted(description)}`,
      ),
    );
    const options = command.options.map(({ flags, description, values }) => {
      const spelled = flags.map((flag) =>
        flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
      );
      const value = values ? ` ${candidates(values)}` : '';
      return `complete -c inferscope ${condition} ${spelled.join(' ')}${value} -d ${quoted(description)}`;
    });
    const places = command.arguments.map(({ values, variadic }, index) => {
      const test = `-n ${quoted(`__inferscope_argument "${command.path}" ${index} ${variadic ? 'on' : 'only'}`)}`;
      const suggestions = candidates(values)
        .replace(/^-[xr] ?/, '-f ')
        .replace('-f -F', '-F');
      return `complete -c inferscope ${test} ${suggestions.trim()}`;
    });
    return [...subcommands, ...options, ...places];
  });
  return `# inferscope completion for fish: inferscope completion fish > ~/.config/fish/completions/inferscope.fish
# First line: the command that is being typed; second: how many arguments it has so far.
function __inferscope_place
  set -l path ''
  set -l count 0
  set -l value 0
  set -l words (commandline -opc)
  for word in $words[2..-1]
    if test $value = 1
      set value 0
      continue
    end
    if string match -q -- '-*' $word
      if contains -- "$path:$word" ${takesValue.join(' ')}
        set value 1
      end
      continue
    end
    set -l before $path
    switch "$path:$word"
${verbs.join('\n')}
    end
    if test "$before" = "$path"
      set count (math $count + 1)
    end
  end
  echo $path
  echo $count
end

function __inferscope_at
  set -l place (__inferscope_place)
  test "$place[1]" = "$argv[1]"
end

function __inferscope_argument
  set -l place (__inferscope_place)
  test "$place[1]" = "$argv[1]"; or return 1
  test $place[2] -eq $argv[2]; and return 0
  test $argv[3] = on -a $place[2] -gt $argv[2]
end

# a,b,…: keep the text before the last comma.
function __inferscope_list
  set -l typed (string replace -r '^--[^=]*=' '' -- (commandline -ct))
  set -l kept (string match -r '^.*,' -- $typed)
  for word in $argv
    echo "$kept$word"
  end
end

complete -c inferscope -f
${lines.join('\n')}
`;
}
