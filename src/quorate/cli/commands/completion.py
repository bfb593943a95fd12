"""``quorate completion``: print a script that makes a shell complete quorate's commands.

Each script asks ``quorate`` itself, in the words of typer's protocol for bash, and offers files
only where a file is meant. Nothing is written anywhere.
"""

from __future__ import annotations

from quorate.cli.show import output

_FILES = "--kubeconfig|--config|--data|--write-kubeconfig|--shape|--output"
_TAKE_FILES = "lint|replay"

_BASH = f"""\
# quorate completion for bash: source <(quorate completion bash)
_quorate_completion() {{
    local IFS=$'\\n' before=""
    if (( COMP_CWORD > 0 )); then before="${{COMP_WORDS[COMP_CWORD-1]}}"; fi
    COMPREPLY=( $(COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD="$COMP_CWORD" \\
        _QUORATE_COMPLETE=complete_bash "$1" 2>/dev/null) )
    case "$before" in {_FILES}) compopt -o default ;; esac
    case "${{COMP_WORDS[1]:-}}" in {_TAKE_FILES}) compopt -o default ;; esac
}}
complete -F _quorate_completion quorate
"""

_ZSH = f"""\
#compdef quorate
# quorate completion for zsh: source <(quorate completion zsh), after compinit
_quorate() {{
    local -a found
    found=( ${{(f)"$(COMP_WORDS="${{(F)words}}" COMP_CWORD="$((CURRENT - 1))" \\
        _QUORATE_COMPLETE=complete_bash ${{words[1]}} 2>/dev/null)"}} )
    (( ${{#found}} )) && compadd -- $found
    case "${{words[CURRENT-1]}}" in {_FILES}) _files ;; esac
    case "${{words[2]}}" in {_TAKE_FILES}) _files ;; esac
}}
compdef _quorate quorate
"""

_FISH = f"""\
# quorate completion for fish: quorate completion fish | source
function __quorate_completion
    set -l words (commandline -opc) (commandline -ct)
    set -l last (math (count $words) - 1)
    env COMP_WORDS=(string join ' ' -- $words) COMP_CWORD=$last \\
        _QUORATE_COMPLETE=complete_bash $words[1] 2>/dev/null
end
complete --command quorate --no-files --arguments '(__quorate_completion)'
complete --command quorate --force-files \\
    --condition '__fish_seen_subcommand_from {_TAKE_FILES.replace("|", " ")}'
complete --command quorate --force-files \\
    --condition 'contains -- (commandline -opc)[-1] {_FILES.replace("|", " ")}'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(shell: str) -> int:
    """Print the script for a shell; return the exit code."""
    for line in SCRIPTS[shell].splitlines():
        output.say(line)
    return 0
