import type { CompletionCommand } from './completion-tree.js';
import { below, lookups, quoted, walk } from './completion-walker.js';

/** `name:what it does` as _describe reads it. */
function describeEntry(name: string, description: string): string {
  return quoted(`${name.replaceAll(':', String.raw`\:`)}:${description}`);
}

export function zshScript(tree: readonly CompletionCommand[]): string {
  const words = tree.map(({ path, options }) => {
    const verbs = below(tree, path).flatMap(({ names, description }) =>
      names.map((name) => describeEntry(name, description)),
    );
    const flags = options.flatMap((option) =>
      option.flags.map((flag) => describeEntry(flag, option.description)),
    );
    return `    ${quoted(path)})
      subverbs=(${verbs.join(' ')})
      flags=(${flags.join(' ')}) ;;`;
  });
  return `#compdef inferscope
# inferscope completion for zsh: source <(inferscope completion zsh), after compinit
${lookups(tree)}
${walk}
_inferscope_words() {
  case "$1" in
${words.join('\n')}
  esac
}

_inferscope_sessions() {
  local -a values texts
  local value rest
  while IFS=$'\\t' read -r value rest; do
    values+=("$value")
    texts+=("$value  $rest")
  done < <(inferscope completion --sessions 2>/dev/null)
  compadd -V sessions -l -d texts -a values
}

_inferscope() {
  local at kind place verbs
  local -a subverbs flags
  _inferscope_walk "\${(@Q)words[2,CURRENT-1]}"
  if [[ $kind == command && $PREFIX == --*=* ]]; then
    _inferscope_option "$at" "\${PREFIX%%=*}"
    compset -P '*='
  fi
  _inferscope_words "$at"
  if [[ $kind == command ]]; then
    if [[ $PREFIX == -* && $verbs == 1 ]]; then
      _describe -o option flags
      return
    fi
    if (( $#subverbs )); then _describe command subverbs; fi
    kind=$place
  fi
  case "$kind" in
    'words '*) compadd -- \${=kind#words } ;;
    'list '*)
      compset -P '*,'
      compadd -- \${=kind#list } ;;
    sessions) _inferscope_sessions ;;
    files) _files ;;
    program) _command_names -e || _files; _files ;;
  esac
}

compdef _inferscope inferscope
`;
}
