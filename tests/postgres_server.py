"""A real PostgreSQL server in a temporary folder, reached through a socket in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from system_packages import needed


class PostgresServer:
    """`initdb` and `pg_ctl`; as root they run as the user postgres, because they refuse root."""

    def __init__(self) -> None:
        self._initdb, self._control = needed("initdb"), needed("pg_ctl")
        self.folder = Path(tempfile.mkdtemp(prefix="tacit-postgres-"))
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._run(self._initdb, "--username=tacit", "--auth=trust", "-D", self.folder / "data")
        self.start()
        self._databases = 0

    @property
    def address(self) -> str:
        return f"postgresql://tacit@/postgres?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty database."""
        import psycopg

        self._databases += 1
        name = f"store{self._databases}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address.replace("/postgres?", f"/{name}?")

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses=''"
        log = self.folder / "log"
        data = self.folder / "data"
        self._run(self._control, "-w", "-D", data, "-l", log, "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        self._run(self._control, "-w", "-D", self.folder / "data", "-m", how, "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def _run(self, *command: object) -> None:
        subprocess.run(
            [str(word) for word in command],
            user=self._user,
            cwd=self.folder,
            check=True,
            timeout=240,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
