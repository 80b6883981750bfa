# Completion of the program annulus for bash: verbs, their options by what --help says, and files.
_annulus() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=() each
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $each == [a-z]* && ${#verb[@]} -lt 2 ]] || break
    verb+=("$each")
  done
  local help words
  help=$("${COMP_WORDS[0]}" "${verb[@]}" --help 2>/dev/null) ||
    help=$("${COMP_WORDS[0]}" "${verb[0]}" --help 2>/dev/null)
  if [[ $word == -* ]]; then
    words=$(grep -oE -- '--[a-z0-9-]+' <<<"$help" | sort -u)
  else
    words=$(sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p' <<<"$help")
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _annulus annulus
