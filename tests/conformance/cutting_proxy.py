"""A proxy before the server that hands on every request, and cuts the connection instead of handing back the answer to a commit."""
from __future__ import annotations

import http.client
import json
import re
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from server import Server

COMMIT = re.compile(r"/iceberg/v1/[^/]+/(transactions/commit|namespaces/[^/]+/tables(/[^/]+)?)$")
HOP = {"connection", "keep-alive", "transfer-encoding", "host"}


class CuttingProxy:
    """Serves until the block ends. `server` may be another one later; while it does not answer, connections are cut."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cuts = 0  # so many answers to commits are still to be lost
        self.lost: list[int] = []  # the statuses of those that were
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True  # the client went

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                assert "Transfer-Encoding" not in self.headers
                try:
                    status, headers, answer = proxy.ask(self.command, self.path, dict(self.headers), body)
                except (OSError, http.client.HTTPException):
                    return self.cut()
                if proxy.loses(self.command, self.path, body, status):
                    return self.cut()
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                if status not in (204, 304):
                    self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer if self.command != "HEAD" else b"")

            def cut(self) -> None:
                """By a reset, as a client sees it whose way to the server broke."""
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True

            do_GET = do_POST = do_HEAD = do_DELETE = forward

        self.listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.listener.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.listener.server_port}"

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        try:
            connection.request(method, path, body or None, {k: v for k, v in headers.items() if k.lower() not in HOP})
            response = connection.getresponse()
            kept = [(k, v) for k, v in response.getheaders() if k.lower() not in HOP | {"content-length"}]
            return response.status, kept, response.read()
        finally:
            connection.close()

    def loses(self, method: str, path: str, body: bytes, status: int) -> bool:
        """A staged create commits nothing yet."""
        if not self.cuts or method != "POST" or not COMMIT.search(path.split("?")[0]) or json.loads(body).get("stage-create"):
            return False
        self.cuts -= 1
        self.lost.append(status)
        return True

    def through(self, block: str) -> str:
        """A printed block, with this proxy in the server's place."""
        return block.replace(self.server.dev["url"], self.url)

    def __enter__(self) -> "CuttingProxy":
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown()
        self.listener.server_close()
