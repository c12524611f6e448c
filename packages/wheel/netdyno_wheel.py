"""Builds the wheel (PEP 517): the harness, the experiments, and the programs that load and observe, of CMake's preset
`load`. Uses the standard library alone, so that it needs nothing from an index.

In the wheel the folder `installed` of the package stands for the clone (python/netdyno/kit/paths.py). As everywhere,
$NETDYNO_BUILD takes the programs of another build as they are."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "netdyno"
TREE = "netdyno/installed"
PROGRAMS = {"netdyno-load": "loadgen", "netdyno-canary": "canary", "netdyno-link": "link"}
"""The programs, and the folder of each in a build."""
DATA = ("experiments/*.toml", "servers/*/server.json", "clients/*/client.json")
COMMANDS = "[console_scripts]\nnetdyno = netdyno.verbs.cli:main\nnetdyno-load = netdyno.verbs.generator:main\n"
LINKED = (
    *("libabsl", "libcli11", "libfmt", "libjitterentropy3", "libnghttp2", "libprotobuf", "libssl", "libzstd"),
    *("nlohmann-json3", "zlib1g"),
)
"""The libraries whose code is in the programs, by the stem of their Debian packages, and whose licences ask to be named
beside a program (Boost's does not)."""
PAGE = "share/man/man1/netdyno-load.1"
EVERYWHERE = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux.*\.so\.\d+")
"""The libraries of every Linux with the GNU C library (PEP 600)."""
Settings = Mapping[str, object] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the wheel for pip or uv. Returns the name of the file that it leaves in the folder."""
    name = f"netdyno-{project_version()}"
    with tempfile.TemporaryDirectory() as prefix:
        folder = installed(Path(prefix))
        programs = {name: folder / "bin" / name for name in PROGRAMS}
        tag = f"py3-none-{platform(programs.values())}"
        files = list_files(programs) | {f"{name}.data/data/{PAGE}": (folder / PAGE).read_bytes()} | describe(tag)
    write(Path(wheel_directory) / f"{name}-{tag}.whl", files, f"{name}.dist-info/RECORD")
    return f"{name}-{tag}.whl"


def list_files(programs: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the content of the wheel by name: the package, its data, and the programs."""
    sources = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    data = [path for pattern in DATA for path in ROOT.glob(pattern)]
    return {
        **{str(path.relative_to(PACKAGE.parent)): path.read_bytes() for path in sorted(sources)},
        **{f"{TREE}/{path.relative_to(ROOT)}": path.read_bytes() for path in sorted(data)},
        **{f"{TREE}/build/release/{PROGRAMS[name]}/{name}": path.read_bytes() for name, path in programs.items()},
        f"{TREE}/commit": read_commit().encode(),
    }


def describe(tag: str) -> dict[str, bytes]:
    """Return what tells an installer about the wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = f"netdyno-{project_version()}.dist-info"
    fields = [
        f"Metadata-Version: 2.1\nName: netdyno\nVersion: {project_version()}\nSummary: {project['description']}",
        f"License: {project['license']}\nRequires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {name}{at_least(name)}" for name in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    return {
        f"{info}/METADATA": ("\n".join(fields) + "\n\n" + (ROOT / "README.md").read_text()).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: netdyno\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{info}/entry_points.txt": COMMANDS.encode(),
        f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        **{f"{info}/licenses/{path.parent.name}": path.read_bytes() for path in list_notices()},
    }


def list_notices() -> list[Path]:
    """Return the notices of the linked libraries, as far as this system has them as Debian does."""
    return [path for stem in LINKED if (path := Path(f"/usr/share/doc/{stem}-dev/copyright")).is_file()]


def at_least(name: str) -> str:
    """Return the version that the clone's lock has, as the oldest."""
    locked = re.search(rf"^{name}==([^\s;\\]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert locked is not None
    return f">={locked[1]}"


def read_commit() -> str:
    """Return the commit of the sources, or nothing."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=, changed since"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    raise SystemExit("netdyno has no source distribution: clone the repository, and build the wheel there")


def write(wheel: Path, files: Mapping[str, bytes], record: str) -> None:
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, record: "".join([*lines, f"{record},,\n"]).encode()}.items():
            entry = zipfile.ZipInfo(name)
            # A regular file: pip makes nothing else executable.
            entry.external_attr = (stat.S_IFREG | (0o755 if Path(name).name in PROGRAMS else 0o644)) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)


def installed(prefix: Path) -> Path:
    """Install the programs without symbols, built where they are not up to date."""
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            raise SystemExit(f"netdyno: {tool} is missing; packages/debian.txt names what the build needs")
    build = os.environ.get("NETDYNO_BUILD")
    if not build:
        build = str(ROOT / "build" / "load")
        subprocess.run(["cmake", "--preset", "load"], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", build], cwd=ROOT, check=True)
    install = ["cmake", "--install", build, "--component", "wheel", "--prefix", str(prefix), "--strip"]
    subprocess.run(install, check=True)
    return prefix


def project_version() -> str:
    match = re.search(r'^VERSION = "([\d.]+)"$', (PACKAGE / "kit" / "version.py").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def platform(programs: Iterable[Path]) -> str:
    """Return where the programs run: on every Linux with a C library as new as they need; where one needs other
    libraries, on machines such as this."""
    this_platform = re.sub(r"\W", "_", sysconfig.get_platform())
    words = ["objdump", "-p", *map(str, programs)]
    objdump_output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return platform_of(objdump_output, this_platform)


def platform_of(objdump_output: str, this_platform: str) -> str:
    """Return the platform by objdump's output on programs' libraries. Pure."""
    needed = re.findall(r"^\s*NEEDED\s+(\S+)", objdump_output, re.MULTILINE)
    versions = [tuple(map(int, number)) for number in re.findall(r"\bGLIBC_(\d+)\.(\d+)", objdump_output)]
    if not this_platform.startswith("linux_") or not versions or not all(EVERYWHERE.fullmatch(name) for name in needed):
        return this_platform
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{this_platform.removeprefix('linux_')}"
