"""How much code a contestant is: source lines and cyclomatic complexity (McCabe 1976), as lizard counts them.

What stands in a contestant's folder is its model; what contestants share stands apart, folder by folder. A folder that
only some share is their family's, and counts with each of them where contestants are compared. lizard counts a lambda
into the function that holds it, and takes `&&` for a decision in `auto&&` too."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from netdyno.base.paths import ROOT
from netdyno.contestants.contestants import Kind
from netdyno.contestants.counted import CodeError, count, remember
from netdyno.model.contestant import About, CodeSize, Contestant

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
}
"""Of which sources are counted, by their suffix."""
SUFFIXES = tuple(LANGUAGES)
CPP_SUFFIXES = tuple(suffix for suffix, language in LANGUAGES.items() if language == "C++")
USED = {"Cargo.toml": re.compile(r'\bpath\s*=\s*"(\.\./[^"]+)"'), "go.mod": re.compile(r"=>\s*(\.\./\S+)")}
"""What names the folders that a program uses, where the language has such a file, and how."""
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
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


def parts(one: About, everyone: Sequence[About]) -> tuple[About, ...]:
    """A contestant and the shared code of its family; `everyone` is what `describe` has returned."""
    shared = {other.name: other for other in everyone if other.kind == "shared"}
    return (one, *(shared[name] for name in one.family))


def with_family(one: About, everyone: Sequence[About]) -> CodeSize | None:
    """A contestant's own code and its family's as one; None where some of it could not be counted."""
    sizes = [part.code for part in parts(one, everyone) if part.code is not None]
    if len(sizes) <= len(one.family):
        return None
    return CodeSize(
        files=sum(size.files for size in sizes),
        lines=sum(size.lines for size in sizes),
        functions=sum(size.functions for size in sizes),
        complexity=sum(size.complexity for size in sizes),
        complexity_max=max(size.complexity_max for size in sizes),
    )


def sources(folder: Path, *, deep: bool = True) -> list[Path]:
    """The source files of a folder, and of its sub-folders if `deep`, without tests, examples and hidden or
    installed things."""
    found: list[Path] = []
    for here, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if deep and not _is_foreign(name)]
        found += [Path(here, name) for name in names if name.endswith(SUFFIXES) and not _is_test(name)]
    return sorted(found)


def describe(servers: Sequence[Contestant], clients: Sequence[Contestant], root: Path = ROOT) -> tuple[About, ...]:
    """Every contestant with its code, then what they share: that of clients only where there are some.

    Where the code cannot be counted, it says why: no run fails for that."""
    contestants = [*_contestants(servers, "server", root), *_contestants(clients, "client", root)]
    shared = [*_folders(root / "lib"), *_shared_folders(root / "servers")]
    modules: list[Path] = []
    for kind, members in (("servers", servers), ("clients", clients)):
        for member in members:
            files = imported(sources(root / kind / member.name), root)
            modules += (path for path in files if path.is_relative_to(root / "python"))
    if clients:
        shared += [*_folders(root / "loadgen"), *_shared_folders(root / "clients")]
    rows = [_shared(str(folder.relative_to(root)), sources(folder, deep=False)) for folder in shared]
    if modules:
        rows.append(_shared("python/, as far as contestants import it", sorted(set(modules))))
    remember()
    return (*contestants, *rows)


def families(home: Path, root: Path) -> dict[str, tuple[str, ...]]:
    """The family of each contestant of a folder such as servers/, by its name. In C++: the folders that some share
    (_is_for_some) of which it includes something, itself or through other headers; what all include is nobody's
    family. In Python: those of which it imports something. In a language that has a file for that (USED): the folders
    that this file names, and theirs in turn."""
    found: dict[str, tuple[str, ...]] = {}
    used: dict[str, set[str]] = {}
    leads_to = functools.cache(_leads_to)  # they include the same headers, which do not change meanwhile
    for folder in sorted(home.glob("[!._]*")):
        files = sources(folder)
        if any((folder / name).is_file() for name in USED):
            found[folder.name] = tuple(sorted(str(one.relative_to(root)) for one in used_folders(folder)))
        elif cpp := [path for path in files if path.suffix in CPP_SUFFIXES]:
            used[folder.name] = included_folders(cpp, root, leads_to)
        elif any(path.suffix == ".py" for path in files):
            shared = {path.parent for path in imported(files, root) if _is_for_some(path.parent, root)}
            found[folder.name] = tuple(sorted(str(one.relative_to(root)) for one in shared))
    by_all = set.intersection(*used.values()) if len(used) > 1 else set()
    return found | {name: tuple(sorted(folders - by_all)) for name, folders in used.items()}


def used_folders(folder: Path) -> set[Path]:
    """The folders that a program's own file (USED) names, directly or through theirs."""
    found: set[Path] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        for name, pattern in USED.items():
            if (here / name).is_file():
                named: list[str] = pattern.findall((here / name).read_text(encoding="utf-8"))
                new = {Path(os.path.normpath(here / one)) for one in named} - found
                found |= new
                waiting += new
    return found


def language(files: Iterable[Path]) -> str:
    """What most of these source files are written in; empty where there are none."""
    written = Counter(LANGUAGES[path.suffix] for path in files)
    return written.most_common(1)[0][0] if written else ""


def included_folders(files: Iterable[Path], root: Path, leads_to: LeadsTo) -> set[str]:
    """The folders that some share and of which C++ files include something, relative to the root."""
    seen: set[Path] = set()
    waiting = list(files)
    while waiting:
        if (path := waiting.pop()) not in seen:
            seen.add(path)
            waiting += leads_to(path, root)
    folders = {path.parent for path in seen}
    return {str(folder.relative_to(root)) for folder in folders if _is_for_some(folder, root)}


def _leads_to(path: Path, root: Path) -> list[Path]:
    """What a C++ file includes, and what lies beside it in a folder that some share: such a folder counts whole."""
    beside = sources(path.parent, deep=False) if _is_for_some(path.parent, root) else []
    return [*_includes(path, root), *beside]


def taken_in(files: Sequence[Path], home: Path) -> list[Path]:
    """The files of other contestants in `home` that C++ files include: some have hardly any code but that."""
    found: list[Path] = []
    waiting = [path for path in files if path.suffix in CPP_SUFFIXES]
    while waiting:
        for path in _includes(waiting.pop(), home.parent):
            is_others = home in path.parents and not path.relative_to(home).parts[0].startswith("_")
            if is_others and path not in (*files, *found):
                found.append(path)
                waiting.append(path)
    return found


@functools.cache
def _is_for_some(folder: Path, root: Path) -> bool:
    """Whether what lies there is shared by those who include it: servers/_shared/epoll, lib/net/epoll. A room of lib/
    itself is for everybody."""
    return root / "servers" / "_shared" in folder.parents or root / "lib" in folder.parent.parents


def _includes(path: Path, root: Path) -> list[Path]:
    """The files of the project that a C++ file includes: beside it, or from the root."""
    places = ((f"{path.parent}/{name}", f"{root}/{name}") for name in _included_names(path, path.stat().st_mtime_ns))
    found = (next((place for place in both if os.path.isfile(place)), None) for both in places)  # noqa: PTH113 - thousands
    return [Path(os.path.normpath(one)) for one in found if one is not None]


@functools.cache
def _included_names(path: Path, _changed_ns: int) -> tuple[str, ...]:
    """Read what a C++ file names in its includes, as it was when it was changed last."""
    return tuple(INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")))


def imported(files: Iterable[Path], root: Path) -> list[Path]:
    """The modules of our own that Python files import, and those import in turn: of the packages in python/, and of
    what servers share."""
    seen: dict[Path, None] = {}
    waiting = [path for path in files if path.suffix == ".py"]
    while waiting:
        path = waiting.pop()
        for name in _imports(path, path.stat().st_mtime_ns):
            stem = (root if name.startswith(SHARED) else root / "python").joinpath(*name.split("."))
            module = next((one for one in (stem.with_suffix(".py"), stem / "__init__.py") if one.is_file()), None)
            if module is not None and module not in seen:
                seen[module] = None
                waiting.append(module)
    return list(seen)


@functools.cache
def _imports(path: Path, _changed_ns: int) -> tuple[str, ...]:
    """Full names that may be modules of our package, of a file as it was when it was changed last: `from a import b`
    may mean a.b as well as a."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in found if name.partition(".")[0] in PACKAGES or name.startswith(SHARED))


def _is_foreign(name: str) -> bool:
    return name.startswith(".") or name in ("example", "node_modules", "__pycache__")


def _is_test(name: str) -> bool:
    return name.startswith((".", "test_")) or ".test." in name or name.endswith("_test.go")


def _folders(top: Path) -> list[Path]:
    """A folder and those in it that hold sources themselves."""
    return sorted({path.parent for path in sources(top)})


def _shared_folders(home: Path) -> list[Path]:
    """What lies between contestants and is none: folders whose name begins with an underscore."""
    return [folder for top in sorted(home.glob("_*")) if top.is_dir() for folder in _folders(top)]


def _contestants(them: Sequence[Contestant], kind: Kind, root: Path) -> list[About]:
    home = root / f"{kind}s"
    family = families(home, root) if them else {}
    return [_contestant(one, kind, home, family.get(one.name, ())) for one in them]


def _contestant(one: Contestant, kind: Kind, home: Path, family: tuple[str, ...]) -> About:
    manifest = one.manifest
    about = About(
        kind=kind,
        name=one.name,
        model=manifest.model,
        summary=manifest.summary,
        caveats=manifest.caveats,
        unsafe=manifest.unsafe,
        unranked=manifest.unranked,
        copies=manifest.copies,
        threads=manifest.threads if kind == "server" and one.own is None else None,
        family=family,
        own=one.own,
    )
    if one.own is not None:
        return msgspec.structs.replace(about, why_no_code="it is your own")
    own = sources(home / one.name)
    about = msgspec.structs.replace(about, language=language(own))
    return _with_code(about, [*own, *taken_in(own, home)])


def _shared(name: str, files: Sequence[Path]) -> About:
    return _with_code(About(kind="shared", name=name), files)


def _with_code(about: About, files: Sequence[Path]) -> About:
    try:
        if not files:
            raise CodeError("no source files")
        return msgspec.structs.replace(about, code=measure(files))
    except CodeError as error:
        return msgspec.structs.replace(about, why_no_code=str(error))
