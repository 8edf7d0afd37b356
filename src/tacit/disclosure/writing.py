"""A disclosure as Markdown, as one HTML page, or as JSON; the ending of the file's name decides."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tacit.disclosure.document import Disclosure, Section
from tacit.errors import TacitError
from tacit.guarantee import rounded_up
from tacit.system.files import write_atomic

_ENDINGS = (".md", ".html", ".json")
_LONG = 10  # characters of a number that is shown as it is
_MEASURED = re.compile(r"^(record|leakage)\.|accuracy|ceiling")


def check_ending(path: Path) -> None:
    """Refuse a file whose name does not say what it is to be."""
    if path.suffix not in _ENDINGS:
        raise TacitError(
            f"--out must end in {', '.join(_ENDINGS)}, got {path.name!r}; the ending chooses the "
            "format."
        )


def write_disclosure(path: Path, disclosure: Disclosure) -> Path:
    """Write the file, whole or not at all."""
    check_ending(path)
    if path.suffix == ".html":
        return _write_page(path, disclosure)
    text = as_markdown(disclosure) if path.suffix == ".md" else as_json(disclosure)
    write_atomic(path, text.encode())
    return path


def as_json(disclosure: Disclosure) -> str:
    """One JSON object."""
    return json.dumps(disclosure.to_dict(), indent=1, allow_nan=False) + "\n"


def as_markdown(disclosure: Disclosure) -> str:
    """Headings, sentences and tables; a table's last column says where a value was read."""
    lines = [f"# {disclosure.title}", ""]
    for guarantee in disclosure.evidence.guarantees.values():
        lines += [f"> {_plain(guarantee.sentence)}", ""]
    for section in disclosure.sections:
        lines += [f"## {section.title}", "", f"*{section.level}*", ""]
        lines += [f"{_plain(sentence)}\n" for sentence in section.sentences]
        lines += _table(disclosure, section)
    for heading, content in _forms(disclosure).items():
        lines += [f"## {heading}", "", *_listed(content), ""]
    lines += ["## Not stated", "", *(f"- {item}" for item in disclosure.not_stated), ""]
    return "\n".join(lines)


def _forms(disclosure: Disclosure) -> dict[str, dict[str, Any]]:
    return {
        "Model card": disclosure.card,
        "For an impact assessment": disclosure.assessment,
        "For the Differential Privacy Deployments Registry": disclosure.registry,
    }


def _table(disclosure: Disclosure, section: Section) -> list[str]:
    if not section.keys:
        return []
    found = [(key, disclosure.fields[key]) for key in section.keys]
    rows = [f"| {key} | {_cell(key, fact.value)} | {fact.source} |" for key, fact in found]
    return ["| field | value | read from |", "|---|---|---|", *rows, ""]


def _plain(text: str) -> str:
    """One line that Markdown shows as it is: names of classes may hold anything."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return f"\\{line}" if line.startswith(">") else line


def _cell(name: str, value: Any) -> str:
    return _plain(_shown(name, value)).replace("|", "\\|")


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "not stated"
    if isinstance(value, list):
        return "; ".join(_shown(name, item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(name, value) if isinstance(value, float) else str(value)


def _number(name: str, value: float) -> str:
    """As it is while that is short; else a measured rate to nearest, all others rounded up."""
    text = str(value)
    if len(text) <= _LONG:
        return text
    return f"{value:.4f}" if _MEASURED.search(name) else rounded_up(value, digits=6)


def _listed(content: dict[str, Any], *, depth: int = 0) -> list[str]:
    lines = []
    for key, value in content.items():
        name = f"{'  ' * depth}- {key.replace('_', ' ')}"
        if isinstance(value, dict):
            lines += [f"{name}:", *_listed(value, depth=depth + 1)]
        elif isinstance(value, list) and len(value) > 1:
            items = (f"{'  ' * (depth + 1)}- {_cell(key, item)}" for item in value)
            lines += [f"{name}:", *items]
        else:
            lines.append(f"{name}: {_cell(key, value)}")
    return lines


def _write_page(path: Path, disclosure: Disclosure) -> Path:
    from tacit.report.page import Contents, FurtherGuarantee, Table, Text, write_page

    blocks: list[Any] = [
        FurtherGuarantee(name.capitalize(), guarantee)
        for name, guarantee in disclosure.evidence.guarantees.items()
    ]
    forms = _forms(disclosure)
    blocks.append(Contents([*(s.title for s in disclosure.sections), *forms, "Not stated"]))
    for section in disclosure.sections:
        blocks.append(Text(f"({section.level})", heading=section.title))
        blocks += [Text(sentence) for sentence in section.sentences]
        found = [(key, disclosure.fields[key]) for key in section.keys]
        if found:
            rows = [(key, _shown(key, fact.value), fact.source) for key, fact in found]
            blocks.append(Table(("field", "value", "read from"), rows))
    for heading, content in forms.items():
        blocks.append(Text("", heading=heading))
        blocks.append(Table(("field", "value"), _flat(content)))
    blocks.append(Text("", heading="Not stated"))
    blocks += [Text(item) for item in disclosure.not_stated]
    return write_page(path, title=disclosure.title, blocks=blocks)


def _flat(content: dict[str, Any], *, before: str = "") -> list[tuple[str, str]]:
    rows = []
    for key, value in content.items():
        name = before + key.replace("_", " ")
        if isinstance(value, dict):
            rows += _flat(value, before=f"{name}: ")
        else:
            rows.append((name, _shown(key, value)))
    return rows
