"""`netdyno completion`: the scripts by which a shell completes its commands and options. Typer answers the shell; its
own scripts would ask a `netdyno` on the PATH, these ask the one that is being typed."""

from __future__ import annotations

from typing import Literal

Shell = Literal["bash", "zsh", "fish"]
ASKS = "_NETDYNO_COMPLETE"
"""The variable of the environment with a shell's request."""

SCRIPTS: dict[Shell, str] = {
    "bash": f"""\
_netdyno() {{
    local IFS=$'\\n'
    COMPREPLY=($(COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD=$COMP_CWORD {ASKS}=complete_bash "$1" 2>/dev/null))
}}
complete -o default -F _netdyno netdyno""",
    "zsh": f"""\
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
_netdyno() {{
    eval "$(_TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {ASKS}=complete_zsh "${{words[1]}}" 2>/dev/null)"
}}
compdef _netdyno netdyno""",
    "fish": f"""\
function _netdyno
    set -lx _TYPER_COMPLETE_ARGS (commandline -cp)
    set -lx _TYPER_COMPLETE_FISH_ACTION $argv[1]
    set -lx {ASKS} complete_fish
    set -l typed (commandline -opc)
    $typed[1] 2>/dev/null
end
complete -c netdyno -f -n "_netdyno is-args" -a "(_netdyno get-args)"
""",
}
