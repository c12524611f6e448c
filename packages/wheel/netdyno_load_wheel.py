"""Builds the wheel (PEP 517): CMake's preset `load`, with its program among the wheel's scripts. Uses the standard
library alone, so that it needs nothing from an index.

As everywhere, $NETDYNO_BUILD takes the program of another build as it is."""

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
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "netdyno_load"
# In pyproject.toml, too; Python 3.9 and 3.10 cannot read it.
SUMMARY = "A load generator for network servers that measures honestly: every reply verified, nothing omitted"
EVERYWHERE = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux.*\.so\.\d+")
"""The libraries of every Linux with the GNU C library (PEP 600)."""
Settings = Mapping[str, object] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the wheel for pip or uv. Returns the name of the file that it leaves in the folder."""
    with tempfile.TemporaryDirectory() as prefix:
        program = installed(Path(prefix)) / "bin" / "netdyno-load"
        version, tag = project_version(), f"py3-none-{platform(program)}"
        info = f"{NAME}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: netdyno-load\nVersion: {version}\nSummary: {SUMMARY}\n"
        files = {
            f"{NAME}-{version}.data/scripts/netdyno-load": program.read_bytes(),
            f"{info}/METADATA": f"{metadata}License: Apache-2.0\nRequires-Python: >=3.9\n".encode(),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: netdyno\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
            f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        }
    wheel = Path(wheel_directory) / f"{NAME}-{version}-{tag}.whl"
    write(wheel, files, f"{info}/RECORD")
    return wheel.name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    raise SystemExit("netdyno-load has no source distribution: clone the repository, and build the wheel there")


def write(wheel: Path, files: Mapping[str, bytes], record: str) -> None:
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, record: "".join([*lines, f"{record},,\n"]).encode()}.items():
            entry = zipfile.ZipInfo(name)
            # A regular file: pip makes nothing else executable.
            entry.external_attr = (stat.S_IFREG | (0o755 if "/scripts/" in name else 0o644)) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)


def installed(prefix: Path) -> Path:
    """Install the generator without symbols, built where it is not up to date."""
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            raise SystemExit(f"netdyno-load: {tool} is missing; packages/debian.txt names what the build needs")
    build = os.environ.get("NETDYNO_BUILD")
    if not build:
        build = str(ROOT / "build" / "load")
        subprocess.run(["cmake", "--preset", "load"], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", build], cwd=ROOT, check=True)
    install = ["cmake", "--install", build, "--component", "wheel", "--prefix", str(prefix), "--strip"]
    subprocess.run(install, check=True)
    return prefix


def project_version() -> str:
    match = re.search(r"^project\(netdyno VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def platform(program: Path) -> str:
    """Return where the program runs: on every Linux with a C library as new as it needs; where it needs other
    libraries, on machines such as this."""
    this_platform = re.sub(r"\W", "_", sysconfig.get_platform())
    objdump_output = subprocess.run(["objdump", "-p", str(program)], check=True, capture_output=True, text=True).stdout
    return platform_of(objdump_output, this_platform)


def platform_of(objdump_output: str, this_platform: str) -> str:
    """Return the platform by objdump's output on a program's libraries. Pure."""
    needed = re.findall(r"^\s*NEEDED\s+(\S+)", objdump_output, re.MULTILINE)
    versions = [tuple(map(int, number)) for number in re.findall(r"\bGLIBC_(\d+)\.(\d+)", objdump_output)]
    if not this_platform.startswith("linux_") or not versions or not all(EVERYWHERE.fullmatch(name) for name in needed):
        return this_platform
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{this_platform.removeprefix('linux_')}"
