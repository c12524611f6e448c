"""Collect every sentence that a person can be shown, from the sources, in their order.

A sentence is any text of several words that a program, a page or a manifest holds, unless it is documentation of the
code or written for a machine (MACHINE). So nothing can be printed that is not on the page; a sentence that a program
puts together stands there in its parts. `{name}` is a hole that a program fills, `{this|that}` a choice.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from netdyno.kit.paths import ROOT

HOLE = re.compile(r"\{[^{}|]*\}|\$\w+|\$\([^()]*\)")
SEVERAL_WORDS = re.compile(r"[A-Za-z]{2}[^\w\s]* +[^\w\s]*([A-Za-z]+ +)?[A-Za-z]{2}")
MACHINE = re.compile(
    r"""
    ^\s*(SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|ALTER|DROP)\s   # SQL
    |^(HTTP/1\.|GET\ |POST\ )                                      # HTTP
    |^[\w-]+:\ .*\\r\\n                                            # its headers
    |[\\^$](\(|[sdwbS]|\[)|\(\?[:P<]                               # regular expressions
    |<(svg|path|rect|line|text|g|circle)\ |\bfont-                 # drawings
    |^(use\ strict|offset\ points|axes\ fraction|utf-8)$          # words of a library
    |^[:;]\ ?$|_arguments|complete\ -                              # a shell's completion
    |^\\?\#\[|^\#\ (HELP|TYPE)                                     # formats of files
    """,
    re.VERBOSE,
)
"""Texts that are written for a machine."""


def page() -> str:
    """Return the whole page: of each file its sentences, each once."""
    parts = []
    for path in sorted(_sources()):
        texts = list(dict.fromkeys(_one_line(text) for text in READERS[path.suffix](path)))
        texts = [text for text in texts if SEVERAL_WORDS.search(without_holes(text)) and not MACHINE.search(text)]
        if texts:
            parts.append("\n".join([f"== {path.relative_to(ROOT)}", *texts]))
    return "\n\n".join(parts) + "\n"


def _sources() -> Iterator[Path]:
    for folder in ("python", "loadgen", "lib", "canary", "link", "launch", "servers", "clients", "experiments"):
        for path in (ROOT / folder).rglob("*"):
            is_built = {"node_modules", "target", "vendor", "__pycache__"} & set(path.parts)
            is_test = ".test." in path.name or path.name.endswith("_test.go")
            if path.suffix and path.suffix in READERS and path.is_file() and not is_built and not is_test:
                yield path
    yield from (ROOT / "netdyno", ROOT / "packages" / "set-up.sh")


def without_holes(text: str) -> str:
    """Return a sentence with a figure in the place of what a program fills in; a choice stays, for it is text."""
    return HOLE.sub("1", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- Python --------------------------------------------------------------------------------------------------------


def python_texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module; what is put together by + or by holes is one text."""
    yield from _texts(ast.parse(path.read_text(encoding="utf-8")))


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.expr) and _is_text(node):
        yield _rendered(node)
        return
    for child in ast.iter_child_nodes(node):
        if not _is_silent(node, child):
            yield from _texts(child)


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_text(left) or _is_text(right)
    return False


def _is_silent(node: ast.AST, child: ast.AST) -> bool:
    """Whether a text is documentation of the code, or one of a closed list of names."""
    if isinstance(node, ast.Subscript) and child is node.slice:
        return isinstance(node.value, ast.Name) and node.value.id == "Literal"
    is_documentation = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
    return is_documentation and not _is_command(node)


def _is_command(node: ast.AST) -> bool:
    """Whether it is a command of the command line, whose documentation is its help."""
    return isinstance(node, ast.FunctionDef) and any(
        ".command" in ast.unparse(decorator) for decorator in node.decorator_list
    )


def _rendered(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_rendered(value) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _rendered(left) + _rendered(right)
        case ast.FormattedValue(value=value):
            return _hole(value)
    return _hole(node)


def _hole(node: ast.expr) -> str:
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return f"{{{_choice(body)}|{_choice(orelse)}}}"
        case ast.Constant(value=str(text)):
            return text
    return f"{{{_name(node)}}}"


def _choice(node: ast.expr) -> str:
    if isinstance(node, ast.IfExp):
        return f"{_choice(node.body)}|{_choice(node.orelse)}"
    return _rendered(node) if _is_text(node) else _name(node)


def _name(node: ast.expr) -> str:
    """Return what a hole holds: the last name of an expression, with the texts that stand in it."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Call(func=function, args=[first, ast.Constant(value=str(unit))]) if _name(function) == "plural":
            return f"{_name(first)} {unit}(s)"
        case ast.Call(func=function, args=arguments):
            return (
                f"{_name(function)}({', '.join(_rendered(arg) if _is_text(arg) else _name(arg) for arg in arguments)})"
            )
    return ast.unparse(node)


# --- other languages -----------------------------------------------------------------------------------------------

STRING = r'"(?:[^"\\\n]|\\.)*"'
QUOTED = {
    ".go": rf"{STRING}|`[^`]*`",
    **dict.fromkeys((".cpp", ".hpp"), rf'R"(?P<mark>\w*)\(.*?\)(?P=mark)"|{STRING}'),
}
COMMENTS = r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\\]|\\\\.)'"
COMMENTS_OF = {".erl": r"%[^\n]*|\$\\?."}
"""The comments and the single characters of a language, where they are not those of most."""


def code_texts(path: Path) -> Iterator[str]:
    """Yield the literals of a program in C++, Rust, Go, Java or Erlang; what is put together is one text."""
    quoted = QUOTED.get(
        path.suffix, rf'R"(?P<mark>\w*)\(.*?\)(?P=mark)"|{STRING}' if path.suffix in (".cpp", ".hpp") else STRING
    )
    comments = COMMENTS_OF.get(path.suffix, COMMENTS)
    tokens = re.compile(rf"(?P<comment>{comments})|(?P<text>{quoted})", re.DOTALL)
    text, end = "", -1
    source = path.read_text(encoding="utf-8")
    for token in tokens.finditer(source):
        if token["text"] is None:
            continue
        between = source[end : token.start()] if end >= 0 else ";"
        joined = re.fullmatch(r"\s*(?:\+([^;{}]*?)\+\s*|)", between, re.DOTALL)
        if joined is None:
            yield text
            text = ""
        elif joined[1]:
            text += "{" + " ".join(joined[1].split()) + "}"
        text += _unquoted(token["text"])
        end = token.end()
    yield text


def _unquoted(literal: str) -> str:
    if literal.startswith("R"):
        return literal[literal.index("(") + 1 : literal.rindex(")")]
    return literal[1:-1].replace("\\n", "\n").replace('\\"', '"')


def javascript_texts(path: Path) -> Iterator[str]:
    """Yield what lies between quotes or braces and is no code: a template of JavaScript may hold code."""
    source = re.sub(r"^ *(//|/?\*).*$| // .*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for text in re.split(r"[`\"'{}]", source):
        if not CODE.search(text.strip()):
            yield text


CODE = re.compile(
    r"""
    [=;&]|\w[(\[]|^[).,\]]|^/\*                                     # operators and calls
    |\b(const|let|var|return|for|if|else|new|of|case|function|class|catch|try|switch)\b(\ \(|$)
    |^:?\ ?(\w+(:\ [^,]+)?,\ ?)+\.*\w+(:\ ?.*)?$                     # members of an object
    |^\w+:\ [\w.\[\]]+$|^\w+:\ ROW
    """,
    re.VERBOSE,
)
"""Code of JavaScript."""


def page_texts(path: Path) -> Iterator[str]:
    """Yield the texts of a page's template: between its tags, and a tag's text for screen readers."""
    source = re.sub(r"<(style|script)\b.*?</\1>|\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for text in re.findall(r'(?:aria-label|title)="([^"]*)"', source):
        yield _without_tags(text)
    block = r"</?(?:p|li|td|th|h\d|div|section|summary|dt|dd|caption|figcaption|button|label|title|a class)\b[^>]*>"
    for text in re.split(rf"{block}|\n\s*\n", source):
        yield _without_tags(text)


def _without_tags(text: str) -> str:
    text = re.sub(r"<[^>]*>", "", text)
    text = re.sub(r"\{%-?\+?\s*(if|elif|for|set|macro|include)\b.*?%\}|\{%.*?%\}", "|", text, flags=re.DOTALL)
    return re.sub(r"\{\{\s*(.*?)\s*\}\}", r"{\1}", text, flags=re.DOTALL).strip("| \n")


def manifest_texts(path: Path) -> Iterator[str]:
    """Yield what a contestant's manifest says for people."""
    if path.name in ("server.json", "client.json"):
        yield from _values(json.loads(path.read_text(encoding="utf-8")))


def experiment_texts(path: Path) -> Iterator[str]:
    """Yield an experiment's question and its claims."""
    yield from _values(tomllib.loads(path.read_text(encoding="utf-8")))


def _values(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _values(member)
    elif isinstance(value, list):
        for member in value:
            yield from _values(member)


def script_texts(path: Path) -> Iterator[str]:
    """Yield what a shell script says, word by quoted word."""
    source = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?!\s*#).*\b(?:say|fail|printf|by_hand|why=)\b.*", source, re.MULTILINE):
        yield from re.findall(r'"((?:[^"\\]|\\.)*)"', line)


READERS: dict[str, Callable[[Path], Iterator[str]]] = {
    ".py": python_texts,
    **dict.fromkeys((".cpp", ".hpp", ".rs", ".go", ".java", ".erl"), code_texts),
    ".js": javascript_texts,
    ".j2": page_texts,
    ".json": manifest_texts,
    ".toml": experiment_texts,
    ".sh": script_texts,
    "": script_texts,
}
