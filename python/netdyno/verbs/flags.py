"""Turn options of the model into flags of a command, by the declaration of each option."""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Iterable
from typing import Any

import typer

from netdyno.model.options import read_value
from netdyno.model.values import Option

GivenOptions = dict[str, Any]
"""The values of the options that were given or have a default, by name. Those of a server stay as they are written, for
they are words of its command line; whole numbers are converted."""
VerbFunction = Callable[..., int]


def takes(*options: Option) -> Callable[[VerbFunction], VerbFunction]:
    """Give a command a flag for each option, in the place of its parameter `given`, which gets their values. Raises
    UserError naming the flag where its value is not valid."""

    def with_flags(command: VerbFunction) -> VerbFunction:
        @functools.wraps(command)
        def run(**words: Any) -> int:
            given = {option: words.pop(_parameter_name(option)) for option in options}
            values = {option.name: _read(option, value) for option, value in given.items() if value not in (None, [])}
            return command(**words, given=values)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += map(_build_flag, options) if parameter.name == "given" else [parameter]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return with_flags


def _parameter_name(option: Option) -> str:
    name = option.name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _build_flag(option: Option) -> inspect.Parameter:
    kind = option.takes
    names = [f"--{option.name}", *([f"-{option.short}"] if option.short else [])]
    default = kind.text(option.default) if kind.typed is str and option.default is not None else option.default
    declared = typer.Option(default, *names, help=option.help, metavar=kind.metavar, min=kind.least, max=kind.most)
    typed = list[str] if kind.typed is list else kind.typed
    return inspect.Parameter(
        _parameter_name(option),
        inspect.Parameter.KEYWORD_ONLY,
        default=declared,
        annotation=typed | None if default is None else typed,
    )


def select_fields(options: Iterable[Option], values: GivenOptions) -> dict[str, object]:
    """Return the fields of a scenario that these options give; those of its server stand in a table. Pure."""
    given = [option for option in options if option.name in values]
    fields = {option.field: values[option.name] for option in given if option.place in ("own", "load", "shared")}
    return fields | {"server": {option.name: values[option.name] for option in given if option.place == "server"}}


def _read(option: Option, value_given: object) -> Any:
    value = read_value(f"--{option.name}", option, value_given)
    return value_given if option.place == "server" and not isinstance(value, int) else value
