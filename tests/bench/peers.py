"""The other programs: nginx, PostgreSQL and redis as children that are started and ended here, and the rollers (DuckDB, Polars,
chdb, pyarrow), each a process of its own that is asked line by line (roll_peer.py). One that is not installed raises Missing.
"""
from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


class Missing(Exception):
    """A peer is not installed."""


def program(name: str) -> str:
    found = shutil.which(name) or next((str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)),
                                       shutil.which(name, path="/usr/sbin:/sbin"))
    if found is None:
        raise Missing(f"{name} is not installed (tools/setup bench)")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """A server on a port of its own, ended by a signal."""

    def __init__(self, name: str, command: list[str], port: int, log: Path, end: int = signal.SIGTERM) -> None:
        self.name, self.port, self.end_signal = name, port, end
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.end()
                    raise RuntimeError(f"{name} does not serve: {log.read_text('utf-8', 'replace')[-2000:]}") from None
                time.sleep(0.02)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(self.end_signal)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def nginx(directory: Path, workers: int) -> Service:
    """Answers 202 to everything and keeps nothing."""
    binary, port, home = program("nginx"), free_port(), directory / f"nginx-{workers}"
    home.mkdir()
    (home / "nginx.conf").write_text(f"""
daemon off; worker_processes {workers}; pid nginx.pid; error_log error.log crit;
{'user root;' if os.getuid() == 0 else ''}
events {{ worker_connections 4096; }}
http {{
    access_log off; client_max_body_size 64m; client_body_buffer_size 64k; keepalive_requests 1000;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 202; }} }}
}}
""")
    return Service("nginx", [binary, "-p", str(home), "-c", str(home / "nginx.conf")], port, home / "log", signal.SIGQUIT)


def redis(directory: Path) -> Service:
    binary, port, home = program("redis-server"), free_port(), directory / "redis"
    home.mkdir()
    return Service("redis", [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(home), "--appendonly", "yes",
                             "--appendfsync", "always", "--save", "", "--auto-aof-rewrite-percentage", "0"], port, home / "log")


def as_postgres(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return command
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "env", "HOME=/nonexistent", *command]


def postgres(directory: Path) -> Service:
    """Every commit is synchronous, as it comes."""
    binary, initdb, port, home = program("postgres"), program("initdb"), free_port(), directory / "postgres"
    home.mkdir()
    if os.getuid() == 0:
        shutil.chown(home, "postgres", "postgres")
    subprocess.run(as_postgres([initdb, "-D", str(home), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]),
                   check=True, stdout=subprocess.DEVNULL, cwd="/")
    return Service("postgres", as_postgres([binary, "-D", str(home), "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                                            "-c", f"unix_socket_directories={home}", "-c", "max_connections=300",
                                            "-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"]),
                   port, directory / "postgres.log", signal.SIGINT)


# ---- rollers ----


class Roller:
    """One roller with so many threads. What it is asked: see roll_peer.py."""

    MODULES = {"duckdb": "duckdb", "polars": "polars", "chdb": "chdb", "pyarrow": "pyarrow"}

    def __init__(self, name: str, threads: int) -> None:
        import importlib.util
        if importlib.util.find_spec(self.MODULES[name]) is None:
            raise Missing(f"{name} is not installed (tools/setup bench)")
        self.name = name
        self.process = subprocess.Popen([sys.executable, str(HERE / "roll_peer.py"), name, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, "POLARS_MAX_THREADS": str(threads)})

    def roll(self, source: Path, target: Path, columns: dict[str, str], group_rows: int) -> dict[str, Any]:
        """{"wall", "cpu", "peak_mib"}; the peak is what the roll added to what was resident before it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"source": str(source), "target": str(target), "columns": columns,
                                             "group_rows": group_rows}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} died in a roll of {source.name}")
        return json.loads(line)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
