"""The one writer to stderr: nothing that it is given begins a line, steers a terminal, or shows a secret."""

from __future__ import annotations

import io
import json

import pytest

from wincli.cli.console.messages import Messages
from wincli.conf.problems import Problem, as_error
from wincli.windowing.errors import ConfigError, Span, SpecError, shown

FORGED = "a\nwincli: error: forged\x1b[31m\r\x07\x7f\x9b\u2028\u202e\u2066\udcff\ud800é"
ESCAPED = r"a\nwincli: error: forged\x1b[31m\r\x07\x7f\x9b\u2028\u202e\u2066\xff\ud800é"


def written(call: str, *args: object, as_json: bool = False, level: int = 0, **fields: object) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict")
    getattr(Messages(level, as_json, stream, ("hunter2222",)), call)(*args, **fields)
    stream.seek(0)
    return stream.read()


def test_shown_text_is_escaped_once() -> None:
    assert shown(FORGED) == ESCAPED
    assert shown(ESCAPED) == ESCAPED


@pytest.mark.parametrize("call", ["note", "summary"])
def test_a_message_is_one_line(call: str) -> None:
    assert written(call, FORGED).splitlines() == [f"wincli: {'note: ' if call == 'note' else ''}{ESCAPED}"]


def test_an_error_is_one_line() -> None:
    assert written("error", ConfigError(FORGED, FORGED)) == f"wincli: error: {ESCAPED}; {ESCAPED}\n"
    assert written("error", ValueError(FORGED)).count("\n") == 1


def test_caret_points_at_its_place_after_escaped_text() -> None:
    source = "\x1b\ndelta(\u202e, 1)"
    at = source.index("\u202e")
    text = written("error", SpecError("no name", source, Span(at, at + 1)))
    assert text == "wincli: error: no name\n" + r"  \x1b\ndelta(\u202e, 1)" + "\n" + "  " + " " * 12 + "^^^^^^\n"


def test_several_mistakes_stay_on_lines_of_their_own() -> None:
    first = Problem(("lag",), 2, ConfigError("is 'a\nb'"))
    second = Problem(("window",), 3, SpecError("no name", "a\tb", Span(2, 3)))
    assert written("error", as_error([first, second], "j\rob.yaml")).splitlines() == [
        r"wincli: error: j\rob.yaml has 2 mistakes; mend them",
        r"  j\rob.yaml:2: lag is 'a\nb'",
        r"  j\rob.yaml:3: window: no name",
        r"    a\tb",
        "       ^",
    ]


def test_json_is_of_ascii_and_parses_back() -> None:
    text = written("note", FORGED, as_json=True, output=FORGED, rejected={"late": 1})
    assert text.isascii()
    assert all(letter.isprintable() for letter in text.rstrip("\n"))
    told = json.loads(text)
    assert told["message"] == ESCAPED
    assert told["output"] == FORGED.replace("\udcff", r"\udcff").replace("\ud800", r"\ud800")
    assert told["rejected"] == {"late": 1}


@pytest.mark.parametrize("as_json", [False, True])
def test_secrets_are_masked_in_messages_fields_and_traces(as_json: bool) -> None:
    def fail() -> None:
        raise ConfigError("no hunter2222 in s3://a:bcdefg@bucket", "say a.secret=xyz") from KeyError("hunter2222")

    with pytest.raises(ConfigError) as raised:
        fail()
    text = written("error", raised.value, as_json=as_json, level=2)
    text += written("note", "hunter2222", as_json=as_json, path=["s3://a:bcdefg@bucket"])
    text += written("java", "WARN a.secret=xyz hunter2222", as_json=as_json)
    assert "KeyError: '***'" in text
    assert not any(secret in text.replace("error.fail", "") for secret in ("bcdefg", "=xyz"))
    assert all("hunter2222" not in line or "raise ConfigError" in line for line in text.splitlines() if not as_json)
    assert all(isinstance(json.loads(line), dict) for line in text.splitlines() if as_json)
