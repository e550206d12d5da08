"""A TCP proxy that cuts connections."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit


class Proxy:
    """Forwards connections to an address. It is a context manager."""

    def __init__(self, address: str) -> None:
        self._target = (urlsplit(address).hostname or "", urlsplit(address).port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._passes = threading.Event()
        self._passes.set()
        self._refuses = False
        self._swallow: bytes | None = None
        self.swallowed = 0

    def swallow_response_to(self, line: bytes) -> None:
        """Cuts the next connection that sends a request that begins with the line, after the server has
        answered the request. The client gets no byte of the response."""
        self._swallow = line

    def cut(self) -> None:
        """Closes all connections."""
        with self._lock:
            for s in self._open:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed

    def refuse(self, refuses: bool) -> None:
        """Closes all connections and each new one, until it is called with False."""
        self._refuses = refuses
        if refuses:
            self.cut()

    def hold(self, holds: bool) -> None:
        """Forwards nothing, and keeps connections open, until it is called with False."""
        self._passes.clear() if holds else self._passes.set()

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._passes.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.refuse(True)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses:
                client.close()
                continue
            server = socket.create_connection(self._target)
            connection = _Connection()
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._forward, args=(client, server, connection, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, connection, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, connection: _Connection, is_request: bool) -> None:
        try:
            while data := source.recv(65536):
                self._passes.wait()
                if is_request and self._swallow is not None and data.startswith(self._swallow):
                    self._swallow, connection.is_swallowed = None, True
                if not is_request and connection.is_swallowed:
                    self.swallowed += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()
        with self._lock:
            self._open -= {source, target}


class _Connection:
    is_swallowed = False

