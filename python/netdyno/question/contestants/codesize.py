"""Counts the code of contestants: source lines and cyclomatic complexity (McCabe 1976), as lizard counts them.

A contestant's folder holds its model; what contestants share is listed apart, folder by folder. A folder that only some
share belongs to their family, and counts with each of them where contestants are compared. lizard counts a lambda into
the function that holds it, takes `&&` for a decision in `auto&&` too, and a clause of Erlang for a function."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from netdyno.kit.paths import ROOT
from netdyno.model.contestant import About, CodeSize, Contestant
from netdyno.question.contestants.contestants import ContestantKind
from netdyno.question.contestants.counted import CodeError, count, remember

LANGUAGES = {
    ".cpp": "C++",
    ".hpp": "C++",
    ".js": "JavaScript",
    ".mjs": "JavaScript",
    ".cjs": "JavaScript",
    ".py": "Python",
    ".rs": "Rust",
    ".go": "Go",
    ".java": "Java",
    ".erl": "Erlang",
    ".hrl": "Erlang",
}
"""The languages whose sources are counted, by suffix."""
SUFFIXES = tuple(LANGUAGES)
CPP_SUFFIXES = tuple(suffix for suffix, language in LANGUAGES.items() if language == "C++")
USED = {"Cargo.toml": re.compile(r'\bpath\s*=\s*"(\.\./[^"]+)"'), "go.mod": re.compile(r"=>\s*(\.\./\S+)")}
"""The file that names the folders a program uses, in languages that have one, and the pattern of such a name."""
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
REQUIRE = re.compile(r"\brequire\('(\.{1,2}/[^']+)'\)")
PACKAGES = ("netdyno", "netdyno_client", "netdyno_server")
SHARED = "servers._shared."
LeadsTo = Callable[[Path, Path], list[Path]]


def measure(files: Iterable[Path]) -> CodeSize:
    """Count source files. Raises CodeError naming a file that cannot be counted."""
    counted = count(files)
    complexities = [complexity for file in counted for complexity in file.complexities]
    return CodeSize(
        files=len(counted),
        lines=sum(file.lines for file in counted),
        functions=len(complexities),
        complexity=sum(complexities),
        complexity_max=max(complexities, default=0),
    )


def find_parts(contestant: About, everyone: Sequence[About]) -> tuple[About, ...]:
    """A contestant and the shared code of its family; `everyone` is the result of `describe`."""
    shared = {about.name: about for about in everyone if about.kind == "shared"}
    return (contestant, *(shared[name] for name in contestant.family))


def sum_with_family(contestant: About, everyone: Sequence[About]) -> CodeSize | None:
    """A contestant's own code and its family's as one; None where some of it could not be counted."""
    sizes = [part.code for part in find_parts(contestant, everyone) if part.code is not None]
    if len(sizes) <= len(contestant.family):
        return None
    return CodeSize(
        files=sum(size.files for size in sizes),
        lines=sum(size.lines for size in sizes),
        functions=sum(size.functions for size in sizes),
        complexity=sum(size.complexity for size in sizes),
        complexity_max=max(size.complexity_max for size in sizes),
    )


def list_sources(folder: Path, *, deep: bool = True) -> list[Path]:
    """The source files of a folder, and of its sub-folders if `deep`, without tests, examples and hidden or
    installed things."""
    paths: list[Path] = []
    for current, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if deep and not _is_foreign(name)]
        paths += [Path(current, name) for name in names if name.endswith(SUFFIXES) and not _is_test(name)]
    return sorted(paths)


def describe(servers: Sequence[Contestant], clients: Sequence[Contestant], root: Path = ROOT) -> tuple[About, ...]:
    """Describe every contestant with its code, then the shared code: that of clients only where there are some.

    Where code cannot be counted, the reason stands in its place: no run fails for that."""
    contestants = [*_describe_contestants(servers, "server", root), *_describe_contestants(clients, "client", root)]
    shared = [*_find_source_folders(root / "lib"), *_find_shared_folders(root / "servers")]
    modules: list[Path] = []
    for kind, members in (("servers", servers), ("clients", clients)):
        for member in members:
            files = find_imports(list_sources(root / kind / member.name), root)
            modules += (path for path in files if path.is_relative_to(root / "python"))
    if clients:
        shared += [*_find_source_folders(root / "loadgen"), *_find_shared_folders(root / "clients")]
    rows = [_describe_shared(str(folder.relative_to(root)), list_sources(folder, deep=False)) for folder in shared]
    if modules:
        rows.append(_describe_shared("python/, as far as contestants import it", sorted(set(modules))))
    remember()
    return (*contestants, *rows)


def find_families(home: Path, root: Path) -> dict[str, tuple[str, ...]]:
    """The family of each contestant of a folder such as servers/, by its name. In C++: the folders that some share
    (_is_for_some) of which it includes something, itself or through other headers; what all include is no family. In
    Python and JavaScript: those of which it imports or requires something. In a language that has a file for that
    (USED): the folders that this file names, and theirs in turn."""
    family_of: dict[str, tuple[str, ...]] = {}
    used: dict[str, set[str]] = {}
    leads_to = functools.cache(_list_reached_files)  # they include the same headers, which do not change meanwhile
    for folder in sorted(home.glob("[!._]*")):
        files = list_sources(folder)
        if any((folder / name).is_file() for name in USED):
            used_folders = _follow([folder], _list_used_folders)
            family_of[folder.name] = tuple(sorted(str(path.relative_to(root)) for path in used_folders))
        elif cpp := [path for path in files if path.suffix in CPP_SUFFIXES]:
            used[folder.name] = find_included_folders(cpp, root, leads_to)
        elif any(path.suffix == ".py" for path in files):
            shared = {path.parent for path in find_imports(files, root) if _is_for_some(path.parent, root)}
            family_of[folder.name] = tuple(sorted(str(path.relative_to(root)) for path in shared))
        elif shared := {path.parent for path in find_required_files(files) if _is_for_some(path.parent, root)}:
            family_of[folder.name] = tuple(sorted(str(path.relative_to(root)) for path in shared))
    by_all = set.intersection(*used.values()) if len(used) > 1 else set()
    return family_of | {name: tuple(sorted(folders - by_all)) for name, folders in used.items()}


def _list_used_folders(folder: Path) -> list[Path]:
    """The folders that a program's own file (USED) names."""
    files = [(folder / name, pattern) for name, pattern in USED.items() if (folder / name).is_file()]
    named = [name for file, pattern in files for name in pattern.findall(file.read_text(encoding="utf-8"))]
    return [Path(os.path.normpath(folder / name)) for name in named]


def _follow(starts: Iterable[Path], leads_to: Callable[[Path], Iterable[Path]]) -> list[Path]:
    """Return the paths that these lead to, directly or through each other, in the order in which they are reached."""
    reached: dict[Path, None] = {}
    waiting = list(starts)
    while waiting:
        for path in leads_to(waiting.pop()):
            if path not in reached:
                reached[path] = None
                waiting.append(path)
    return list(reached)


def find_language(files: Iterable[Path]) -> str:
    """The language of most of these source files; empty where there are none."""
    counts = Counter(LANGUAGES[path.suffix] for path in files)
    return counts.most_common(1)[0][0] if counts else ""


def find_included_folders(files: Iterable[Path], root: Path, leads_to: LeadsTo) -> set[str]:
    """The folders shared by some from which C++ files include something, relative to the root."""
    starts = list(files)
    folders = {path.parent for path in (*starts, *_follow(starts, lambda path: leads_to(path, root)))}
    return {str(folder.relative_to(root)) for folder in folders if _is_for_some(folder, root)}


def _list_reached_files(path: Path, root: Path) -> list[Path]:
    """The files that a C++ file includes, and those beside it in a folder that some share: such a
    folder counts as a whole."""
    neighbours = list_sources(path.parent, deep=False) if _is_for_some(path.parent, root) else []
    return [*_list_direct_includes(path, root), *neighbours]


def find_borrowed_files(files: Sequence[Path], home: Path) -> list[Path]:
    """The files of other contestants in `home` that C++ files include: some have hardly any code but that."""

    def is_borrowed(path: Path) -> bool:
        return home in path.parents and not path.relative_to(home).parts[0].startswith("_") and path not in files

    starts = [path for path in files if path.suffix in CPP_SUFFIXES]
    return _follow(starts, lambda path: filter(is_borrowed, _list_direct_includes(path, home.parent)))


@functools.cache
def _is_for_some(folder: Path, root: Path) -> bool:
    """Whether a folder is shared only by those that include it: servers/_shared/epoll, lib/net/epoll. A folder directly
    in lib/ is for all."""
    return root / "servers" / "_shared" in folder.parents or root / "lib" in folder.parent.parents


def _list_direct_includes(path: Path, root: Path) -> list[Path]:
    """The files of the project that a C++ file includes: beside it, or from the root."""
    places = (
        (f"{path.parent}/{name}", f"{root}/{name}") for name in _read_included_names(path, path.stat().st_mtime_ns)
    )
    first_paths = (next((place for place in both if os.path.isfile(place)), None) for both in places)  # noqa: PTH113 - thousands
    return [Path(os.path.normpath(path)) for path in first_paths if path is not None]


@functools.cache
def _read_included_names(path: Path, _changed_ns: int) -> tuple[str, ...]:
    """Read what a C++ file names in its includes, as it was when it was changed last."""
    return tuple(INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")))


def find_imports(files: Iterable[Path], root: Path) -> list[Path]:
    """The project's modules that Python files import, directly or through each other: from the packages in python/ and
    from servers/_shared."""

    def list_imported(path: Path) -> Iterator[Path]:
        for name in _read_imports(path, path.stat().st_mtime_ns):
            stem = (root if name.startswith(SHARED) else root / "python").joinpath(*name.split("."))
            modules = (stem.with_suffix(".py"), stem / "__init__.py")
            yield from [module for module in modules if module.is_file()][:1]

    return _follow([path for path in files if path.suffix == ".py"], list_imported)


def find_required_files(files: Iterable[Path]) -> list[Path]:
    """The files that JavaScript files require by a relative path, directly or through each other."""

    def list_required(path: Path) -> list[Path]:
        names = REQUIRE.findall(path.read_text(encoding="utf-8", errors="replace"))
        required = [Path(os.path.normpath(path.parent / name)) for name in names]
        return [path for path in required if path.is_file()]

    return _follow([path for path in files if path.suffix == ".js"], list_required)


@functools.cache
def _read_imports(path: Path, _changed_ns: int) -> tuple[str, ...]:
    """Read the full names in a file's imports that may be modules of the project, as it was when it was changed last:
    `from a import b` may mean a.b as well as a."""
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in modules if name.partition(".")[0] in PACKAGES or name.startswith(SHARED))


def _is_foreign(name: str) -> bool:
    return name.startswith(".") or name in ("example", "node_modules", "__pycache__")


def _is_test(name: str) -> bool:
    return name.startswith((".", "test_")) or ".test." in name or name.endswith("_test.go")


def _find_source_folders(top: Path) -> list[Path]:
    """A folder and those in it that hold sources themselves."""
    return sorted({path.parent for path in list_sources(top)})


def _find_shared_folders(home: Path) -> list[Path]:
    """Find the folders with sources among the contestants that are none: their names begin with an underscore."""
    return [folder for top in sorted(home.glob("_*")) if top.is_dir() for folder in _find_source_folders(top)]


def _describe_contestants(contestants: Sequence[Contestant], kind: ContestantKind, root: Path) -> list[About]:
    home = root / f"{kind}s"
    family = find_families(home, root) if contestants else {}
    return [_describe_contestant(contestant, kind, home, family.get(contestant.name, ())) for contestant in contestants]


def _describe_contestant(contestant: Contestant, kind: ContestantKind, home: Path, family: tuple[str, ...]) -> About:
    manifest = contestant.manifest
    about = About(
        kind=kind,
        name=contestant.name,
        model=manifest.model,
        summary=manifest.summary,
        caveats=manifest.caveats,
        unsafe=manifest.unsafe,
        unranked=manifest.unranked,
        copies=manifest.copies,
        threads=manifest.threads if kind == "server" and contestant.own is None else None,
        family=family,
        own=contestant.own,
    )
    if contestant.own is not None:
        return msgspec.structs.replace(about, why_no_code="it is your own")
    files = list_sources(home / contestant.name)
    about = msgspec.structs.replace(about, language=find_language(files))
    return _add_code(about, [*files, *find_borrowed_files(files, home)])


def _describe_shared(name: str, files: Sequence[Path]) -> About:
    return _add_code(About(kind="shared", name=name), files)


def _add_code(about: About, files: Sequence[Path]) -> About:
    try:
        if not files:
            raise CodeError("no source files")
        return msgspec.structs.replace(about, code=measure(files))
    except CodeError as error:
        return msgspec.structs.replace(about, why_no_code=str(error))
