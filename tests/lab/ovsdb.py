# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads an OVSDB over its JSON-RPC, for tests that look many times a second."""

import json
import socket
import threading


def _plain(value):
    """OVSDB's tagged values as Python's: maps, sets, UUIDs."""
    if isinstance(value, list) and len(value) == 2:
        kind, content = value
        if kind == "map":
            return {_plain(key): _plain(item) for key, item in content}
        if kind == "set":
            return [_plain(item) for item in content]
        if kind in ("uuid", "named-uuid"):
            return content
    return value


class Ovsdb:
    """A connection to a database server's Unix socket, or to one of several."""

    def __init__(self, database, *paths):
        self._paths = paths
        self._database = database
        self._decoder = json.JSONDecoder()
        self._id = 0
        self._lock = threading.Lock()
        self._connect()

    def _connect(self):
        self._buffer = ""
        for path in self._paths:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(10)
            try:
                self._socket.connect(path)
            except OSError:
                self._socket.close()
                if path == self._paths[-1]:
                    raise
            else:
                return

    def close(self):
        self._socket.close()

    def transact(self, *operations):
        with self._lock:
            return self._transact(operations)

    def _transact(self, operations):
        self._id += 1
        self._send({"method": "transact", "id": self._id,
                    "params": [self._database, *operations]})
        while True:
            message = self._receive()
            if message.get("method") == "echo":
                self._send({"id": message["id"], "result": message["params"], "error": None})
            elif message.get("id") == self._id:
                break
        if message["error"]:
            raise RuntimeError(f"OVSDB: {message['error']}")
        for result in message["result"]:
            if result and result.get("error"):
                raise RuntimeError(f"OVSDB: {result}")
        return message["result"]

    def select(self, *tables):
        """Rows of one or more tables, at one moment.

        Each table is (name, where) or (name, where, columns); the result has
        one list of dicts for each.
        """
        operations = []
        for name, where, *columns in tables:
            operation = {"op": "select", "table": name, "where": where}
            if columns:
                operation["columns"] = columns[0]
            operations.append(operation)
        with self._lock:
            try:
                results = self._transact(operations)
            except ConnectionError:
                # The server was restarted; there is no harm in asking twice.
                self._socket.close()
                self._connect()
                results = self._transact(operations)
        return [[{key: _plain(value) for key, value in row.items()} for row in result["rows"]]
                for result in results]

    def _send(self, message):
        self._socket.sendall(json.dumps(message).encode())

    def _receive(self):
        while True:
            try:
                message, end = self._decoder.raw_decode(self._buffer)
                self._buffer = self._buffer[end:].lstrip()
                return message
            except json.JSONDecodeError:
                data = self._socket.recv(1 << 20)
                if not data:
                    raise ConnectionError("the database server hung up") from None
                self._buffer += data.decode()
