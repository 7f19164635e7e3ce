"""`fermix completion`: the script that lets a shell complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from fermix.cli.options import examples, json_option, print_json

VARIABLE = "_FERMIX_COMPLETE"
"""What the scripts set to ask this program; click answers it before anything is run."""


class _Bash(BashComplete):
    """click's script inserts a name with blanks as several words, and takes a `*` for a pattern."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", 'printf -v value %%q "$value"\n            COMPREPLY+=("$value")'
    )


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


@click.command(
    epilog=examples(
        "bash:  mkdir -p ~/.local/share/bash-completion/completions",
        "       fermix completion bash > ~/.local/share/bash-completion/completions/fermix",
        'zsh:   fermix completion zsh > "${fpath[1]}/_fermix"',
        "fish:  fermix completion fish > ~/.config/fish/completions/fermix.fish",
    )
)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@json_option
@click.pass_context
def command(context: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of a shell.

    Put it where the shell looks, as below, and open a new terminal.
    """
    chosen = SHELLS[shell](context.find_root().command, {}, "fermix", VARIABLE)
    # Not `chosen.source()`: for bash that starts one to ask for its version, which need not be this one's.
    script = ShellComplete.source(chosen)
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script.rstrip("\n"))
