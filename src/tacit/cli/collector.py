"""`tacit collector`: look after the store of a collector."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import JsonFlag, check_new_file, emit, new_app, print_table
from tacit.cli.local import load_bundle
from tacit.cli.manner.choices import Period, Target
from tacit.errors import TacitError

app = new_app("Look after a collector's store: codes, counts, shares, exports, devices.")

StoreArgument = Annotated[
    str,
    typer.Argument(metavar="STORE", help="SQLite file or postgresql:// address of the store."),
]
KeepDays = Annotated[
    int | None, typer.Option("--keep-days", help="Erase single releases after so many days.")
]
KeepCountDays = Annotated[
    int | None, typer.Option("--keep-count-days", help="Erase counts after so many days.")
]


@app.command("codes")
def codes_command(
    store: StoreArgument,
    count: Annotated[int, typer.Option("--count", help="How many codes.")] = 1,
    group: Annotated[
        str, typer.Option("--group", help="Group of the devices, such as a ward or a plant.")
    ] = "",
    days: Annotated[float, typer.Option("--days", help="How long the codes are valid.")] = 7.0,
    bundle: Annotated[
        Path | None, typer.Option("--bundle", help="Make the store for this bundle if missing.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make one-time codes with which devices enrol; they are shown once.

    Example: `tacit collector codes releases.db --count 10 --group "ward 3"`
    """
    from tacit.local.collector.devices import make_codes
    from tacit.local.collector.storage.store import Store

    model = None if bundle is None else load_bundle(bundle)
    with closing(Store.open(store, model=model)) as opened:
        codes = make_codes(opened, count=count, group=group, days=days)
    result = {"codes": codes, "group": group, "days": days}
    emit(result, as_json=as_json, render=lambda: typer.echo("\n".join(codes)))


@app.command("show")
def show_command(store: StoreArgument, as_json: JsonFlag = False) -> None:
    """Say what a store holds.

    Example: `tacit collector show releases.db`
    """
    from tacit.local.collector.counts import totals_of
    from tacit.local.collector.storage.store import Store

    with closing(Store.open(store)) as opened:
        emit({"model": opened.meta["model"], **totals_of(opened)}, as_json=as_json)


@app.command("prevalence")
def prevalence_command(
    store: StoreArgument,
    bundle: Annotated[Path, typer.Option("--bundle", help="The bundle whose releases these are.")],
    by: Annotated[Period, typer.Option("--by", help="One estimate for each.")] = "all",
    per_group: Annotated[bool, typer.Option("--per-group", help="Each group by itself.")] = False,
    of: Annotated[
        Target, typer.Option("--of", help="What devices would say, or the true classes.")
    ] = "device_labels",
    level: Annotated[float, typer.Option("--level", help="Level of the intervals.")] = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Estimate how common each class is, over time and per group.

    Example: `tacit collector prevalence releases.db --bundle gunpoint --by week`
    """
    from tacit.local.collector.counts import class_shares
    from tacit.local.collector.storage.store import Store

    model = load_bundle(bundle)
    with closing(Store.open(store)) as opened:
        opened.check_model(model)
        shares = class_shares(opened, model, by=by, per_group=per_group, of=of, level=level)
    result = {
        "classes": list(model.classes),
        "periods": [one.to_dict() for one in shares],
        "guarantee": model.guarantee,
    }
    emit(result, as_json=as_json, render=lambda: _show_shares(result))


def _show_shares(result: dict[str, Any]) -> None:
    rows = [
        (
            one["start"] or "all",
            "" if one["group"] is None else one["group"],
            one["n"],
            *(
                f"{share:.3f} ({low:.3f} to {high:.3f})"
                for share, low, high in zip(one["share"], one["low"], one["high"], strict=True)
            ),
        )
        for one in result["periods"]
    ]
    print_table(rows, columns=("from", "group", "releases", *result["classes"]))
    if result["periods"]:
        last = result["periods"][-1]
        typer.echo(last["assumption"])
        if last["warning"]:
            typer.echo(f"tacit: {last['warning']}", err=True)


@app.command("export")
def export_command(
    store: StoreArgument,
    out: Annotated[Path, typer.Option("--out", help="File: .csv or .parquet.")],
    devices: Annotated[
        bool, typer.Option("--devices", help="Also say which device sent what, by a number.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the single releases of a store to a file.

    Example: `tacit collector export releases.db --out releases.csv`
    """
    from tacit.local.collector.export import export_releases
    from tacit.local.collector.storage.store import Store

    check_new_file(out)
    with closing(Store.open(store)) as opened:
        written = export_releases(opened, out, devices=devices)
    emit({"releases": written, "out": out}, as_json=as_json)


@app.command("revoke")
def revoke_command(
    store: StoreArgument,
    key: Annotated[
        Path | None, typer.Option("--key", help="The device's key file, if it is at hand.")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="Name of the device, as it enrolled.")
    ] = None,
    erase: Annotated[
        bool, typer.Option("--erase", help="Also erase its releases and take them out of counts.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Accept nothing more of a device, and erase what it sent if asked to.

    Example: `tacit collector revoke releases.db --device 0123… --erase`
    """
    from tacit.local.collector.client import Identity
    from tacit.local.collector.devices import revoke
    from tacit.local.collector.storage.store import Store

    if (key is None) == (device is None):
        raise TacitError("give either --device NAME or --key FILE, to say which device is meant.")
    name = device if device is not None else Identity.load(key or Path()).name
    with closing(Store.open(store)) as opened:
        erased = revoke(opened, name, erase=erase)
    emit({"device": name, "revoked": True, "erased": erased}, as_json=as_json)


@app.command("clock")
def clock_command(
    store: StoreArgument,
    confirm: Annotated[
        bool,
        typer.Option("--confirm", help="This machine's clock is right: go by it from now on."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare this machine's clock with a store's last use, and settle which of them is right.

    After a collector ran with a clock ahead, stop every collector of the store, set the clock
    right, and confirm it: what was counted on days still to come then counts from today.

    Example: `tacit collector clock releases.db --confirm`
    """
    from tacit.local.collector.retention import confirm_clock
    from tacit.local.collector.storage.clock import time_of
    from tacit.local.collector.storage.store import Store

    with closing(Store.open(store, any_clock=True)) as opened:
        moved = confirm_clock(opened) if confirm else 0
        seen, now = opened.last_seen(), opened.clock.now()
        result = {
            "now": time_of(now),
            "last_seen": time_of(seen),
            "confirmed": confirm,
            "moved": moved,
        }
    emit(result, as_json=as_json)


@app.command("erase")
def erase_command(
    store: StoreArgument,
    keep_days: KeepDays = None,
    keep_count_days: KeepCountDays = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase what is older than so many days, now; 'tacit serve --keep-days' does it every hour.

    Example: `tacit collector erase releases.db --keep-days 30`
    """
    from tacit.local.collector.retention import Retention, erase_old
    from tacit.local.collector.storage.store import Store

    if keep_days is None and keep_count_days is None:
        raise TacitError("give --keep-days or --keep-count-days, to say what is old.")
    retention = Retention(releases_days=keep_days, counts_days=keep_count_days)
    with closing(Store.open(store)) as opened:
        erased = erase_old(opened, retention)
    emit({"erased": erased}, as_json=as_json)
