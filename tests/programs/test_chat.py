"""`netdyno chat` as a person uses it, in a terminal and on pipes, against real servers and against broken ones."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.protocol import wire
from netdyno.question.contestants.contestants import discover, find_by_name
from netdyno.verbs import cli
from netdyno.verbs.chat import chat
from tests.support.background import in_background
from tests.support.client import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import Server, serving
from tests.support.terminal import EmulatedTerminal, in_terminal

pytestmark = pytest.mark.needs_build

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python"), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
MODEL = "threads-snapshot"
"""The model of the server does not concern the program."""
EndedChat = subprocess.CompletedProcess[bytes]


class ChatRoom:
    """A chat server with a witness, heard by all who come later, and hearing them."""

    def __init__(self, server: Server, witness: Client) -> None:
        self.server = server
        self.url = "tcp://{}:{}".format(*server.address)
        self._witness = witness

    def say(self, body: bytes) -> None:
        """The witness sends any body."""
        self._witness.send(wire.frame(body))

    def expect(self, *bodies: bytes) -> None:
        """The witness hears these next."""
        assert tuple(self._witness.frame() for _ in bodies) == bodies

    @contextmanager
    def person(self, name: str) -> Iterator[EmulatedTerminal]:
        """A person at a terminal, who is in the room as far as the server is concerned."""
        with in_terminal(command(self.url, "--name", name), ENVIRONMENT) as terminal:
            terminal.wait_for_line(">")
            terminal.type("here\r")
            self.expect(f"{name}: here".encode())
            terminal.wait_for(lambda screen: "> here" in screen.lines() and screen.before_cursor() == "> ", "a prompt")
            yield terminal


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "netdyno", "chat", *arguments]


def piped(*arguments: str, typed: bytes = b"") -> EndedChat:
    """The program between pipes."""
    return subprocess.run(
        command(*arguments), input=typed, capture_output=True, env=ENVIRONMENT, timeout=PATIENCE_S, check=False
    )


@contextmanager
def opened() -> Iterator[ChatRoom]:
    contestant = find_by_name(discover(), MODEL)
    with serving(contestant.command, "--workload", "chat") as server, Client(server.address) as witness:
        witness.send(wire.frame(b"first"))
        server.wait_read(witness.address)
        yield ChatRoom(server, witness)


@pytest.fixture
def room() -> Iterator[ChatRoom]:
    with opened() as room:
        yield room


@pytest.fixture(scope="module")
def lasting_room() -> Iterator[ChatRoom]:
    """A room for tests after which it is as it was."""
    with opened() as room:
        yield room


@pytest.fixture(scope="module")
def ada(lasting_room: ChatRoom) -> Iterator[EmulatedTerminal]:
    """A person in that room, who stays with an empty prompt."""
    with lasting_room.person("ada") as ada:
        yield ada


@contextmanager
def broken_server(answer: bytes, last_words: bytes | None = None, closes: bool = True) -> Iterator[str]:
    """The URL of a server that sends these bytes to the one who comes, and `last_words` when he has nothing more to
    say."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_S)

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(answer)
                if closes and last_words is None:
                    return
                connection.settimeout(PATIENCE_S)
                while connection.recv(1 << 16):
                    pass
                connection.sendall(last_words or b"")
                if not closes:
                    still_open.append(connection.dup())

        still_open: list[socket.socket] = []
        with in_background(serve):
            yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        for connection in still_open:
            connection.close()


def test_two_people_talk(room: ChatRoom) -> None:
    with room.person("ada") as ada, room.person("bob") as bob:
        ada.wait_for_line("bob: here")
        # While a line is printed above the prompt, the terminal itself echoes what is typed.
        ada.wait_for(lambda screen: screen.before_cursor() == "> " and not ada.is_cooked(), "the prompt again")
        ada.type("grüß dich, Bob\r")
        bob.wait_for_line("ada: grüß dich, Bob")
        bob.type("hello, Ada\r")
        ada.wait_for_line("bob: hello, Ada")
        assert [line for line in ada.screen.lines() if "Bob" in line] == ["> grüß dich, Bob"], (
            "one's own is not doubled"
        )


def test_what_is_being_typed_stays_when_a_message_comes(lasting_room: ChatRoom, ada: EmulatedTerminal) -> None:
    ada.type("half a li")
    ada.wait_for_line("> half a li")
    lasting_room.say(b"bob: may I interrupt?")
    ada.wait_for_line("bob: may I interrupt?")
    ada.wait_for(lambda screen: screen.before_cursor() == "> half a li", "the cursor where it was")
    lines = ada.screen.lines()
    assert lines.index("bob: may I interrupt?") < lines.index("> half a li")
    ada.type("ne\r")
    lasting_room.expect(b"ada: half a line")
    ada.wait_for(lambda screen: screen.before_cursor() == "> ", "a fresh prompt")
    assert "> half a line" in ada.screen.lines()
    assert "> half a li" not in ada.screen.lines(), "no remains of the older prompt"


@pytest.mark.parametrize(("keys", "code"), [("/quit\r", 0), ("\x04", 0), ("half a line\x03", 130)])
def test_leaving_by_key_leaves_the_terminal_in_order(room: ChatRoom, keys: str, code: int) -> None:
    with room.person("ada") as ada:
        assert not ada.is_cooked()
        ada.type(keys)
        assert ada.wait_ended() == code
        assert ada.is_cooked()
        assert b"Traceback" not in ada.raw
        assert b"\x1b[?2004l" in ada.raw.rpartition(b"\x1b[?2004h")[2], "bracketed paste is off again"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_in_order_too(room: ChatRoom, number: signal.Signals) -> None:
    with room.person("ada") as ada:
        ada.process.send_signal(number)
        assert ada.wait_ended() == 128 + number
        assert ada.is_cooked()
        assert b"Traceback" not in ada.raw


def test_a_server_that_is_killed_is_reported_plainly(room: ChatRoom) -> None:
    with room.person("ada") as ada:
        ada.type("half a li")
        ada.wait_for_line("> half a li")
        room.server.signal(signal.SIGKILL)
        room.server.process.wait(PATIENCE_S)
        assert ada.wait_ended() == 1
        assert any(line.startswith("netdyno: the ") and "connection" in line for line in ada.screen.lines())
        assert "> half a li" in ada.screen.lines()
        assert ada.is_cooked()
        assert b"Traceback" not in ada.raw


def test_nothing_a_chatter_sends_reaches_the_terminal_as_a_command(
    lasting_room: ChatRoom, ada: EmulatedTerminal
) -> None:
    before = ada.raw.count(b"\x1b]")
    lasting_room.say(b"eve: \x1b]0;owned\x07\x1b[2J\x1b[31m red\nbob: it was me \xff\x9b")
    ada.wait_for_line(r"eve: \x1b]0;owned\x07\x1b[2J\x1b[31m red\nbob: it was me \xff\x9b")
    assert ada.raw.count(b"\x1b]") == before
    assert b"\x07" not in ada.raw
    assert b"\x1b[2J" not in ada.raw


def test_a_load_is_counted_and_not_shown(lasting_room: ChatRoom, ada: EmulatedTerminal) -> None:
    for number in range(3):
        lasting_room.say(wire.stamp(7, number, 31))
    ada.wait_for(lambda screen: counted(screen.lines()) == 3, "the count of the load")
    assert b"00000007" not in ada.raw


def counted(lines: list[str]) -> int:
    """Messages of a generator, over all lines about them: they may fall into two intervals."""
    return sum(int(match[1]) for line in lines if (match := re.match(r"\[load generator: messages (\d+), ", line)))


def test_commands_are_not_sent(lasting_room: ChatRoom, ada: EmulatedTerminal) -> None:
    ada.type("/quti\r")
    ada.wait_for_line("* there is no command '/quti' (did you mean '/quit'?)")
    ada.type("/help\r")
    ada.type("\r")
    ada.type("//quit\r")
    lasting_room.expect(b"ada: /quit")


# --- on pipes -----------------------------------------------------------------------------------------------------


def test_lines_of_a_pipe_are_sent_to_the_last_one(room: ChatRoom) -> None:
    done = piped(room.url, "--name", "ada", typed=b"one\r\n\ntwo \xff\nlast, without its end")
    room.expect(b"ada: one", b"ada: two \xff", b"ada: last, without its end")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert done.stderr.startswith(f"netdyno: you are ada at {room.url};".encode())
    assert b"\x1b" not in done.stderr
    assert b"> " not in done.stderr


def test_messages_go_to_stdout_as_plain_lines(room: ChatRoom) -> None:
    with subprocess.Popen(
        command(room.url, "--name", "ada"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as ada:
        assert ada.stdin is not None
        assert ada.stdout is not None
        ada.stdin.write(b"here\n")
        ada.stdin.flush()
        room.expect(b"ada: here")
        room.say(b"bob: hello \x1b[2J")
        assert ada.stdout.readline() == b"bob: hello \\x1b[2J\n"
        ada.stdin.close()
        assert ada.stdout.read() == b""
    assert ada.returncode == 0


def test_a_file_is_read_too(room: ChatRoom, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"one\n" * 20_000)
    with (tmp_path / "lines").open("rb") as lines:
        done = subprocess.Popen(
            command(room.url, "--name", "ada"), stdin=lines, stdout=subprocess.DEVNULL, env=ENVIRONMENT
        )
        room.expect(*[b"ada: one"] * 20_000)
        assert done.wait(PATIENCE_S) == 0


def test_a_line_that_no_server_takes_is_not_sent(room: ChatRoom) -> None:
    fits = b"x" * (chat.LONGEST_SENT - len(b"ada: "))
    done = piped(room.url, "--name", "ada", typed=fits + b"x\nnext\n")
    room.expect(b"ada: next")
    assert done.returncode == 0
    assert f"not sent: a message has at most {chat.LONGEST_SENT} bytes".encode() in done.stderr
    with in_background(lambda: room.expect(b"ada: " + fits)):
        assert piped(room.url, "--name", "ada", typed=fits + b"\n").returncode == 0


def test_a_reader_that_has_had_enough_is_no_error(room: ChatRoom) -> None:
    with subprocess.Popen(
        command(room.url, "--name", "ada"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as ada:
        assert ada.stdin is not None
        assert ada.stdout is not None
        assert ada.stderr is not None
        ada.stdout.close()
        ada.stdin.write(b"here\n")
        ada.stdin.flush()
        room.expect(b"ada: here")
        room.say(b"bob: anybody?")
        assert ada.wait(PATIENCE_S) == 128 + signal.SIGPIPE
        assert ada.stderr.read().count(b"\n") == 1, "nothing but the greeting"


# --- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "'nonsense' is no URL"),
        (["udp://127.0.0.1:1"], "transport 'udp' is not supported"),
        (["tcp://127.0.0.1:1", "--name", "a\nb"], "--name: 'a\\nb' must be 1 to 40 visible characters"),
        (["tcp://127.0.0.1:1", "--name", " "], "--name"),
        (["tcp://127.0.0.1:1", "--nmae", "x"], "No such option: --nmae"),
        ([], "Missing argument"),
    ],
)
def test_words_that_cannot_be_meant_are_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["chat", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_nothing_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        done = piped(f"tcp://localhost:{bound.getsockname()[1]}")
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"no server listens there (connection refused)" in done.stderr


@pytest.mark.parametrize(
    ("host", "why"),
    [("no-such-host.invalid", "the host is not known: "), ("empty..label", "the host name is not valid\n")],
)
def test_a_host_that_none_knows(host: str, why: str) -> None:
    done = piped(f"tcp://{host}:7000")
    assert done.returncode == 1
    assert done.stderr.startswith(f"netdyno: tcp://{host}:7000: {why}".encode())
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "this is no chat: the server announces a message of 1213486160 bytes"),
        (wire.header(0), "this is no chat: the server announces a message of 0 bytes"),
        (wire.header(10) + b"half", "the server has closed the connection inside a message"),
        (b"\x00\x00", "the server has closed the connection inside a message"),
        (b"", "has closed the connection"),
    ],
)
def test_a_server_that_speaks_something_else_is_reported_plainly(answer: bytes, message: str) -> None:
    reader, writer = os.pipe()  # stdin stays open, so that it is the server that ends this
    with os.fdopen(reader) as stdin, os.fdopen(writer), broken_server(answer) as url:
        done = subprocess.run(
            command(url), stdin=stdin, capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE_S, check=False
        )
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_what_is_owed_at_the_end_of_stdin_is_waited_for() -> None:
    with broken_server(b"", last_words=wire.frame(b"bob: good night")) as url:
        done = piped(url, typed=b"bye\n")
    assert (done.returncode, done.stdout) == (0, b"bob: good night\n")


def test_a_server_that_never_closes_is_left_all_the_same() -> None:
    with broken_server(wire.frame(b"bob: hello"), closes=False) as url:
        done = piped(url, typed=b"bye\n")
    assert (done.returncode, done.stdout) == (0, b"bob: hello\n")
