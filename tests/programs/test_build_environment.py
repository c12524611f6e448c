"""Nothing of the shell, nor of the configuration of cargo and go, reaches a compiler: a small program of each language
is built by the project's own CMake files, with variables set that would change it or keep it from being built."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT, build_dir, launcher_path

PROJECT = f"""cmake_minimum_required(VERSION 3.25)
include({ROOT}/cmake/Environment.cmake)
project(hostile LANGUAGES CXX)
set(CMAKE_SOURCE_DIR {ROOT})
add_executable(netdyno-launch IMPORTED)
set_target_properties(netdyno-launch PROPERTIES IMPORTED_LOCATION "{launcher_path(build_dir())}")
add_executable(netdyno-signals IMPORTED)
set_target_properties(netdyno-signals PROPERTIES IMPORTED_LOCATION
  "{launcher_path(build_dir()).with_name("netdyno-signals")}")
include({ROOT}/cmake/kinds/@kind@.cmake OPTIONAL)
if(COMMAND netdyno_add_@kind@)
  netdyno_add_@kind@(program ${{CMAKE_CURRENT_SOURCE_DIR}}/program ${{CMAKE_BINARY_DIR}}/program.out why)
  if(why)
    message(FATAL_ERROR "MISSING ${{why}}")
  endif()
else()
  add_executable(program program/main.cpp)
  set_target_properties(program PROPERTIES OUTPUT_NAME program.out)
endif()
"""

SOURCES = {
    "cmake": {
        "main.cpp": """#include <cstdio>
#if defined HOSTILE || __has_include("hostile.h")
#error "the shell's flags have reached the compiler"
#endif
int main() { std::puts("calm"); }
"""
    },
    "cargo": {
        "Cargo.toml": """[package]
name = "program"
version = "0.1.0"
edition = "2021"
[[bin]]
name = "program"
path = "main.rs"
[workspace]
""",
        "main.rs": """fn main() {
    println!("{}", if cfg!(hostile) || cfg!(debug_assertions) { "hostile" } else { "calm" });
}
""",
    },
    "go": {
        "go.mod": "module program\n\ngo 1.19\n",
        "main.go": """package main

import (
	"fmt"
	"runtime/debug"
)

func main() {
	information, _ := debug.ReadBuildInfo()
	for _, setting := range information.Settings {
		if setting.Key == "-tags" || setting.Key == "GOAMD64" && setting.Value != "v1" {
			fmt.Println("hostile", setting)
			return
		}
	}
	fmt.Println("calm")
}
""",
    },
    "erlang": {
        "main.erl": """-module(main).
-export([start/0]).
-ifdef(hostile).
start() -> io:put_chars("hostile\\n"), halt(0).
-else.
start() -> io:put_chars("calm\\n"), halt(0).
-endif.
"""
    },
    "java": {
        "server.json": "{}",
        "Main.java": """class Main {
    public static void main(String[] words) throws Exception {
        if (words.length == 0) {
            System.out.println(System.getProperty("hostile", "calm"));
            return;
        }
        // Asked once by java-archive.sh.
        try (var listener = new java.net.ServerSocket(0)) {
            String endpoint = "tcp://127.0.0.1:" + listener.getLocalPort();
            System.out.println("{\\"ready\\": true, \\"endpoint\\": \\"" + endpoint + "\\"}");
            while (true) listener.accept().getOutputStream().write(0);
        }
    }
}
""",
    },
}

CARGO_CONFIG = """[build]
rustflags = ["--cfg", "hostile"]
[profile.release]
debug-assertions = true
"""


def hostile_environment(folder: Path, kind: str) -> dict[str, str]:
    """The variables of a user who has tuned compilers for something else. Those of C++ are for it alone: with them
    CMake would not come to the others, and so would show nothing of these."""
    (folder / "include").mkdir()
    (folder / "include/hostile.h").touch()
    cargo = folder / "cargo"
    cargo.mkdir()
    (cargo / "config.toml").write_text(CARGO_CONFIG)
    (folder / "goenv").write_text("GOFLAGS=-tags=hostile\nGOAMD64=v3\n")
    of_cpp = {"CXXFLAGS": "-DHOSTILE", "LDFLAGS": "-Wl,--nonsense", "CPATH": str(folder / "include")}
    return {
        **os.environ,
        **(of_cpp if kind == "cmake" else {}),
        "RUSTFLAGS": "--cfg hostile",
        "CARGO_ENCODED_RUSTFLAGS": "--cfg\x1fhostile",
        "CARGO_BUILD_RUSTFLAGS": "--cfg hostile",
        "CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS": "true",
        "CARGO_HOME": str(cargo),
        "GOFLAGS": "-tags=hostile",
        "GOAMD64": "v3",
        "GOENV": str(folder / "goenv"),
        "ERL_COMPILER_OPTIONS": "[{d,hostile}]",
        "ERL_AFLAGS": "-nonsense",
        "JDK_JAVAC_OPTIONS": "--nonsense",
        "JAVA_TOOL_OPTIONS": "-Dhostile=hostile",
        "_JAVA_OPTIONS": "-XX:+Nonsense",
        "JDK_JAVA_OPTIONS": "--nonsense",
    }


def cmake(*arguments: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["cmake", *arguments], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    if "MISSING" in done.stderr:
        pytest.skip(" ".join(done.stderr.partition("MISSING ")[2].split("\n\n")[0].split()))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_no_flag_of_the_shell_reaches_a_compiler(kind: str, tmp_path: Path) -> None:
    build = tmp_path / "build of it"
    (tmp_path / "program").mkdir()
    for name, text in SOURCES[kind].items():
        (tmp_path / "program" / name).write_text(text)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace("@kind@", kind))
    environment = hostile_environment(tmp_path, kind)
    build.mkdir()
    (build / "go").symlink_to(build_dir() / "go")  # where the standard library is compiled already
    cmake("-G", "Ninja", "-S", str(tmp_path), "-B", str(build), environment=environment)
    cmake("--build", str(build), "--target", "program", environment=environment)
    calm = {"PATH": os.environ["PATH"]}
    output = subprocess.run([build / "program.out"], env=calm, capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout == "calm\n"
