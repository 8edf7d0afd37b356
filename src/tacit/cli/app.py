"""The tree of commands, and the one place where errors become sentences."""

from __future__ import annotations

import difflib
import errno
import logging
import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from tacit._version import VERSION
from tacit.cli import (
    account,
    arena,
    attack,
    audit,
    collector,
    data,
    demo,
    fleet,
    ledger,
    local,
    serve,
    silo,
    studio,
)
from tacit.cli.bundles import disclose, export
from tacit.cli.common import new_app
from tacit.cli.manner.about import add_to_help, with_new_names
from tacit.cli.manner.completion import HELP, completion_asked, give_completion
from tacit.cli.train import fedst, hybrid, softshape, timefl
from tacit.errors import TacitError
from tacit.system.extras import missing

app = new_app(
    "Classify time series that nobody has to show.\n\n"
    "Start with `tacit demo`, then `tacit data list` and `tacit train --help`."
)
train = new_app("Train a classifier: softshape, fedst, timefl, or hybrid of the first and last.")

app.command("demo")(demo.demo)
app.command("studio")(studio.studio)
app.add_typer(data.app, name="data")
app.add_typer(account.app, name="account")
app.add_typer(ledger.app, name="ledger")
app.add_typer(fleet.app, name="fleet")
app.add_typer(silo.app, name="silo")
app.command("release")(local.release_command)
app.command("export")(export.export_command)
app.command("classify")(local.classify_command)
app.command("serve")(serve.serve_command)
app.command("send")(serve.send_command)
app.add_typer(collector.app, name="collector")
app.command("disclose")(disclose.disclose_command)
app.command("audit")(audit.audit_command)
app.add_typer(attack.app, name="attack")
train.command("softshape")(softshape.train_softshape)
train.command("fedst")(fedst.train_fedst)
train.command("timefl")(timefl.train_timefl)
train.command("hybrid")(hybrid.train_hybrid)
app.add_typer(train, name="train")
app.add_typer(arena.app, name="arena")


# Typer used to sit on click and now carries its own copy of it; its public BadParameter leads to
# the same base classes in both.
_UsageError: Any = typer.BadParameter.__mro__[1]
_CommandError: Any = typer.BadParameter.__mro__[2]
_INTERRUPTED = 130
_OF_THE_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EADDRINUSE)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tacit {VERSION}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Log to standard error, and say what led to errors."),
    ] = False,
) -> None:
    """Options before the command."""


@cache
def _commands() -> Any:
    """The tree, built once per process: reading all the signatures takes most of a short call."""
    tree: Any = typer.main.get_command(app)
    add_to_help(tree)
    for option in tree.params:
        option.help = HELP.get(option.opts[0], option.help)
    return tree


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; never let a traceback out for bad input."""
    command = _commands()
    verbose, words = _without_verbose(arguments)
    words = with_new_names(words)
    if verbose:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
    try:
        if completion_asked(words):
            give_completion(words)
            return 0
        code = command.main(args=words, prog_name="tacit", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except _UsageError as error:
        return _refuse(_usage_sentence(error))
    except _CommandError as error:
        return _refuse(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except BrokenPipeError:
        return 0
    except ModuleNotFoundError as error:
        lacking = missing(error)
        if lacking is None:
            raise
        return _refuse(str(lacking))
    except TacitError as error:
        return _refuse(str(error), cause=error.__cause__ if verbose else None)
    except OSError as error:
        if error.filename is None and error.errno not in _OF_THE_PLACE:
            raise  # no bad input but a defect, of which the traceback tells more
        place = error.filename2 or error.filename or "a file or port"
        sentence = f"cannot use {place}: {error.strerror}; choose another."
        return _refuse(sentence, cause=error if verbose else None)
    if code == _INTERRUPTED:  # some versions of Typer return it, others raise
        return _refuse("interrupted; nothing after the last checkpoint was kept.", code=code)
    return code if isinstance(code, int) else 0


def _without_verbose(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """`--verbose` may stand anywhere before a bare `--`, not only before the command."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word not in ("--verbose", "-v")]
    return len(kept) < end, kept + words[end:]


def _refuse(sentence: str, *, code: int = 2, cause: BaseException | None = None) -> int:
    one_line = " ".join(sentence.split())
    sys.stderr.write(f"tacit: {one_line}\n")
    while cause is not None:
        sys.stderr.write(f"  because {type(cause).__name__}: {cause}\n")
        cause = cause.__cause__
    return code


def _usage_sentence(error: Any) -> str:
    message = re.sub(r"\s*\(?Did you mean.*", "", error.format_message().rstrip())
    near = _near_command(error)
    if near:
        message = f"{message.rstrip('.')}; did you mean '{near}'?"
    path = error.ctx.command_path if error.ctx else "tacit"
    return f"{message} See '{path} --help'."


def _near_command(error: Any) -> str | None:
    group: Any = error.ctx.command if error.ctx else None
    if not hasattr(group, "list_commands"):
        return None
    words = [word for word in error.format_message().split("'") if word.strip()]
    typed = words[1] if len(words) > 1 else ""
    near = difflib.get_close_matches(typed, group.list_commands(error.ctx), n=1, cutoff=0.5)
    return near[0] if near else None
