"""Options of the model as flags of a command, by what is declared with each option."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import typer

from netdyno.base.errors import UserError
from netdyno.model.values import Option

Asked = dict[str, Any]
"""By name, the values of the options that were given or have a default. Those of a server stay as they are written, for
they are words of its command line; a whole number is one."""
Command = Callable[..., int]


def takes(*options: Option) -> Callable[[Command], Command]:
    """Give a command a flag for each option, in the place of its parameter `asked`, which gets their values. Raises
    UserError naming the flag where its value is none."""

    def with_flags(command: Command) -> Command:
        @functools.wraps(command)
        def run(**words: Any) -> int:
            said = {option: words.pop(_parameter(option)) for option in options}
            asked = {option.name: _read(option, value) for option, value in said.items() if value is not None}
            return command(**words, asked=asked)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += map(_flag, options) if parameter.name == "asked" else [parameter]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return with_flags


def _parameter(option: Option) -> str:
    return option.name.replace("-", "_")


def _flag(option: Option) -> inspect.Parameter:
    kind = option.takes
    names = [f"--{option.name}", *([f"-{option.short}"] if option.short else [])]
    default = kind.text(option.default) if kind.typed is str and option.default is not None else option.default
    declared = typer.Option(default, *names, help=option.help, metavar=kind.metavar, min=kind.least, max=kind.most)
    return inspect.Parameter(
        _parameter(option),
        inspect.Parameter.KEYWORD_ONLY,
        default=declared,
        annotation=kind.typed | None if default is None else kind.typed,
    )


def _read(option: Option, said: object) -> Any:
    try:
        value = option.takes.read(said)
    except ValueError as error:
        raise UserError(f"--{option.name}: {error}") from error
    return said if option.place == "server" and not isinstance(value, int) else value
