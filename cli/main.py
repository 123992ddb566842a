"""``wincli``: the commands and their options. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable
from copy import copy
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, NoReturn

import typer

from ..windowing.errors import ConfigError, WincliError, did_you_mean, nearest, short
from ..windowing.support.modules import leave_out_working_folder
from ..windowing.support.redaction import secret_values
from .commands import (
    EXAMPLES,
    PLAN_EXAMPLES,
    GroupedCommand,
    diff,
    doctor,
    init,
    plan,
    report,
    run,
    schema,
    show,
    state,
    status,
    test,
    verify,
    version,
    why,
)
from .console.messages import (
    CLOSED,
    HUNG_UP,
    INTERRUPTED,
    OK,
    QUIT,
    TERMINATED,
    UNEXPECTED,
    USAGE,
    Messages,
    Stopped,
    exit_code,
)
from .console.streams import ReaderGoneError, guard_streams, say

# Signals that stop a run: each ends it with an orderly clean-up and an exit code of its own.


SIGNALS: dict[int, int] = {
    signal.SIGHUP: HUNG_UP,
    signal.SIGINT: INTERRUPTED,
    signal.SIGQUIT: QUIT,
    signal.SIGTERM: TERMINATED,
}
"""Signal number to the exit code of a run that it ends."""


def stop_on_signals() -> None:
    """Install the handlers that stop this process with a clean-up. Under ``nohup`` a hang-up stays ignored."""
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _stop_again


def _stop(number: int, _: Any) -> NoReturn:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(SIGNALS[number])


def _stop_again(lost: Any) -> None:
    """Send a lost signal again: its `Stopped` was raised where C calls back into Python, as numba's compiler does."""
    if not isinstance(lost.exc_value, Stopped):
        sys.__unraisablehook__(lost)
        return
    number = next(number for number, code in SIGNALS.items() if code == lost.exc_value.code)
    signal.signal(number, _stop)
    again = threading.Timer(0.05, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


app = typer.Typer(
    name="wincli",
    help="Exact stream windows over historical event logs: files in, windows out, on Spark.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_NUMBER_FAULT = re.compile(r"valid integer|greater than or equal to (\d+)")
_LONGEST = 300  # characters of a message that repeats the command line
_FILTERS = ("--filter", "--select", "--query")  # what users of other tools look for


def _print_version(ctx: typer.Context, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        version()
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the versions and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Exact stream windows over historical event logs: files in, windows out, on Spark."""


app.command(epilog=EXAMPLES, cls=GroupedCommand)(run)
app.command(epilog=PLAN_EXAMPLES, cls=GroupedCommand)(plan)
for _command in (
    show,
    why,
    diff,
    verify,
    report,
    init,
    status,
    test,
    doctor,
    schema,
    version,
):
    app.command()(_command)
app.add_typer(state)


def main() -> NoReturn:
    """Run the command line, and exit with the exit code of the command."""
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first that is registered is called last
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads when it is imported, which nothing uses
    guard_streams()
    stop_on_signals()
    leave_out_working_folder()
    codes.append(_main(sys.argv[1:]))
    sys.exit(codes[0])


def _leave(codes: list[int]) -> None:
    """End the process with the code of its command, where it has one, and take no module apart: 0.05 s.

    By then threads have ended, and what else is registered to be done at exit is done.
    """
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[0])


def _main(arguments: list[str]) -> int:
    # The messages for errors before the options are parsed, or in parsing them: their form is guessed.
    traces = "-vv" in arguments or arguments.count("-v") + arguments.count("--verbose") > 1
    as_json = "--log-format=json" in arguments or "--log-format json" in " ".join(arguments)
    secrets = secret_values({}, arguments, os.environ)
    messages = Messages(2 if traces else 0, as_json or os.environ.get("WINCLI_LOG_FORMAT") == "json", secrets=secrets)
    try:
        code = _call_app(arguments, messages)
        sys.stdout.flush()
    except (Stopped, WincliError) as error:
        messages.error(error)
        return exit_code(error)
    except ReaderGoneError:  # of help, versions or status
        return CLOSED
    except (typer.Abort, typer.Exit) as error:
        return getattr(error, "exit_code", USAGE)
    except Exception as error:
        messages.error(error)
        return UNEXPECTED
    return code if isinstance(code, int) else OK


def _call_app(arguments: list[str], messages: Messages) -> Any:
    try:
        return _app_command(next(iter(arguments), ""))(args=arguments, prog_name="wincli", standalone_mode=False)
    except Exception as error:
        if hasattr(error, "format_message"):
            # Report an error of the command line itself in one line; a bare ``wincli`` shows the help.
            if type(error).__name__ == "NoArgsIsHelpError":
                say(error.format_message())
                return USAGE
            messages.error(_told(error, arguments))
            return USAGE
        raise


@cache
def _app_command(called: str = "") -> Any:
    """Return the command that typer makes of `app`; a process that runs many commands waits for it once.

    ``called``: the name of the command that is called. What typer makes of the others, and takes as long, is left out.
    """
    one = copy(app)
    one.registered_commands = [
        each for each in app.registered_commands if getattr(each.callback, "__name__", "") == called
    ]
    one.registered_groups = []
    return typer.main.get_command(one if one.registered_commands else app)


def _told(error: Any, arguments: list[str]) -> ConfigError:
    kind, context, parameter = type(error).__name__, getattr(error, "ctx", None), getattr(error, "param", None)
    if kind == "MissingParameter" and context is not None and parameter is not None:
        name = parameter.metavar or parameter.opts[0]
        named = [each for each in context.command.params if each.param_type_name == "argument"]
        words = [(each.metavar or each.name.upper()).strip("[]") for each in named]
        words = [word if each.required else f"[{word}]" for each, word in zip(named, words, strict=True)]
        usage = " ".join([context.command_path, "[OPTIONS]", *words])
        return ConfigError(f"{context.command_path} needs {name}, and it is not there", f"write {usage}")
    if kind == "BadParameter" and parameter is not None and (number := _NUMBER_FAULT.search(error.format_message())):
        given = [after for flag, after in pairwise(arguments) if flag in parameter.opts]
        given += [
            each.partition("=")[2] for each in arguments if each.partition("=")[0] in parameter.opts and "=" in each
        ]
        found = short(repr(given[-1])) if given else "its value"
        what = f"{parameter.opts[0]}: {found} is no whole number" + (f" of {number[1]} or more" if number[1] else "")
        return ConfigError(what, f"write for example {parameter.opts[0]} 10")
    text = error.format_message().partition(" (Possible options")[0].rstrip(".")
    if kind in ("NoSuchCommand", "UsageError") and (command := re.match(r"No such command '([^']*)'", text)):
        names = list(context.command.commands) if context is not None else []
        what = f"{context.command_path if context is not None else 'wincli'} has no command {command[1]!r}"
        return ConfigError(what, did_you_mean(command[1], names))
    if needs := re.match(r"Option '([^']*)' requires an argument", text):
        return ConfigError(f"{needs[1]} stands last, and needs a value", f"write the value behind {needs[1]}")
    return ConfigError(short(text[:1].lower() + text[1:], _LONGEST), _hint(error, arguments))


def _hint(error: Any, arguments: list[str]) -> str:
    name = getattr(error, "option_name", None)
    if name in _FILTERS:
        return "--where leaves out rows, --having result rows"
    flags = _flags(error.ctx.command.params) if name and error.ctx else []
    whole = next((each for each in arguments if name and each.startswith(name) and len(each) > len(name)), None)
    if whole and not whole.startswith("--") and (long := nearest(f"-{whole.partition('=')[0]}", flags)):
        return f"{whole}: a long option begins with two dashes; did you mean {long}?"
    if near := nearest(name, flags) if name else None:
        return f"did you mean {near}?"
    if error.ctx and name in {flag for flags in app_options() for flag in flags}:
        return f"that is an option of wincli run; see {error.ctx.command_path} --help"
    return "see wincli --help"


def run_parameters() -> list[Any]:
    """Return the parameters of ``wincli run``."""
    return list(_app_command().commands["run"].params)


def app_options() -> list[list[str]]:
    """Return the flags of ``wincli run``: one list for each option."""
    return [_flags([parameter]) for parameter in run_parameters()]


def _flags(parameters: Iterable[Any]) -> list[str]:
    return [flag for each in parameters for flag in (*each.opts, *each.secondary_opts)]


if __name__ == "__main__":
    main()
