import type { CompletionCommand } from './completion-tree.js';
import { below, lookups, quoted, walk } from './completion-walker.js';

/** Works with plain bash 3.2, without the bash-completion package. */
export function bashScript(tree: readonly CompletionCommand[]): string {
  const words = tree.map(({ path, options }) => {
    const verbs = below(tree, path).flatMap(({ names }) => names);
    const flags = options.flatMap((option) => option.flags);
    return `    ${quoted(path)}) subverbs=${quoted(verbs.join(' '))} flags=${quoted(flags.join(' '))} ;;`;
  });
  return `# inferscope completion for bash: source <(inferscope completion bash)
${lookups(tree)}
${walk}
_inferscope_words() {
  subverbs='' flags=''
  case "$1" in
${words.join('\n')}
  esac
}

# Candidates that start with the typed text, unexpanded.
_inferscope_offer() {
  local one
  for one in "$@"; do
    if [[ $one == "$typed"* ]]; then COMPREPLY+=("$one"); fi
  done
}

_inferscope_sessions() {
  local value rest
  while IFS=$'\\t' read -r value rest; do
    if [[ $value == "$typed"* ]]; then COMPREPLY+=("$(printf %q "$value")"); fi
  done < <(inferscope completion --sessions 2>/dev/null)
}

_inferscope() {
  # COMP_WORDS also splits at = : @; here words end at spaces only.
  local line=\${COMP_LINE:0:COMP_POINT} at one kind place verbs subverbs flags typed prefix='' IFS=$' \\t\\n'
  local -a words
  read -ra words <<<"$line"
  case "$line" in *[[:space:]]) words+=('') ;; esac
  local last=$((\${#words[@]} - 1))
  if ((last < 1)); then return; fi
  typed=\${words[last]}
  COMPREPLY=()
  _inferscope_walk "\${words[@]:1:last-1}"
  if [[ $kind == command && $typed == --*=* ]]; then
    _inferscope_option "$at" "\${typed%%=*}"
    prefix=\${typed%%=*}=
    typed=\${typed#*=}
  fi
  case "$kind" in
    command)
      if [[ $typed == -* && $verbs == 1 ]]; then
        _inferscope_words "$at"
        _inferscope_offer $flags
      else
        _inferscope_words "$at"
        _inferscope_offer $subverbs
        kind=$place
      fi ;;
  esac
  case "$kind" in
    'words '*) _inferscope_offer \${kind#words } ;;
    'list '*)
      case "$typed" in *,*) prefix=$prefix\${typed%,*}, typed=\${typed##*,} ;; esac
      _inferscope_offer \${kind#list } ;;
    sessions) _inferscope_sessions ;;
    files)
      compopt -o filenames 2>/dev/null
      while IFS= read -r one; do COMPREPLY+=("$one"); done < <(compgen -f -- "$typed") ;;
    program)
      compopt -o filenames 2>/dev/null
      while IFS= read -r one; do COMPREPLY+=("$one"); done < <(compgen -c -- "$typed"; compgen -f -- "$typed") ;;
  esac
  # Readline replaces only the text after the last break character.
  local current=\${COMP_WORDS[COMP_CWORD]} whole=$prefix$typed cut i
  case "$current" in [=:@]) current= ;; esac
  cut=$((\${#whole} - \${#current}))
  if ((cut < 0)); then cut=0; fi
  for i in "\${!COMPREPLY[@]}"; do
    whole=$prefix\${COMPREPLY[i]}
    COMPREPLY[i]=\${whole:cut}
  done
}

complete -F _inferscope inferscope
`;
}
