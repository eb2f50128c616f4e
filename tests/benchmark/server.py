# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a database server pays for clients that want to see few of many rows.

portferryd asks for the rows that name its chassis, by a condition with two
clauses on `external_ids`. The server has to look at every row for each client
that connects, and at every changed row for each that is connected.
"""

import contextlib
import json
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time
import uuid

from lab import wait_until

SCHEMA = "/usr/share/ovn/ovn-nb.ovsschema"
DATABASE, TABLE = "OVN_Northbound", "Logical_Switch_Port"
COLUMNS = ["name", "options", "external_ids"]
CLIENTS = (0, 100, 400)
SAMPLES = 200


class Client:
    """A connection that does nothing by itself."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(120)
        self._socket.connect(path)
        self.received = 0

    def ask(self, method, *params):
        self._socket.sendall(json.dumps(
            {"method": method, "id": 1, "params": params}).encode())
        data = b""
        while True:
            part = self._socket.recv(1 << 20)
            self.received += len(part)
            data += part
            # Most answers come in one piece; what is long is parsed once, at its end.
            if part.endswith(b"}") or not part:
                with contextlib.suppress(ValueError):
                    return json.loads(data)["result"]

    def transact(self, *operations):
        return self.ask("transact", DATABASE, *operations)

    def monitor(self, condition=None):
        request = {"columns": COLUMNS}
        if condition:
            request["where"] = condition
        return self.ask("monitor_cond_since", DATABASE, "monitor", {TABLE: [request]},
                        str(uuid.UUID(int=0)))

    def drain(self):
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(1 << 20):
                pass
        self._socket.setblocking(True)

    def close(self):
        self._socket.close()


def own_rows(chassis):
    """portferryd's condition."""
    return [["external_ids", "includes", ["map", [[key, chassis]]]]
            for key in ("portferry-source", "portferry-destination")]


def cpu_ms(pid):
    fields = pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(fields[0]) / 1e6


def rss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def fill(client, ports):
    """Ports as a CMS makes them, with half a dozen keys each."""
    for first in range(0, ports, 1000):
        operations, names = [], []
        for index in range(first, min(first + 1000, ports)):
            names.append(["named-uuid", f"p{index}"])
            operations.append({"op": "insert", "table": TABLE, "uuid-name": f"p{index}", "row": {
                "name": str(uuid.uuid4()), "addresses": f"0a:00:00:00:00:01 10.0.0.{index % 250}",
                "options": ["map", [["requested-chassis", f"host-{index % 1000}"],
                                    ["mcast_flood_reports", "true"]]],
                "external_ids": ["map", [[f"neutron:key-{key}", str(uuid.uuid4())]
                                         for key in range(6)]]}})
        operations.append({"op": "insert", "table": "Logical_Switch",
                           "row": {"name": f"ls{first}", "ports": ["set", names]}})
        client.transact(*operations)


def measure(ports):
    """The server's CPU time, in ms, for what clients ask of it."""
    with tempfile.TemporaryDirectory(prefix="portferry-bench-") as folder:
        path, database = f"{folder}/nb.sock", f"{folder}/nb.db"
        subprocess.run(["ovsdb-tool", "create", database, SCHEMA], check=True)
        server = subprocess.Popen(
            ["ovsdb-server", database, f"--remote=punix:{path}", f"--unixctl={folder}/nb.ctl",
             "-vconsole:off"])
        try:
            wait_until(lambda: _listens(path), "ovsdb-server")
            return _measure(server.pid, path, ports)
        finally:
            server.terminate()
            server.wait()


def _listens(path):
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(path) == 0


def _measure(pid, path, ports):
    writer = Client(path)
    fill(writer, ports)
    result = {"ports": ports, "update_us": {}, "rss_kib": rss_kib(pid)}
    for name, condition in (("few", own_rows("host-1")), ("all", None)):
        times, received = [], 0
        for _ in range(3):
            client = Client(path)
            before = cpu_ms(pid)
            client.monitor(condition)
            times.append(cpu_ms(pid) - before)
            received = client.received
            client.close()
        result[f"connect_{name}_ms"] = statistics.median(times)
        result[f"connect_{name}_kib"] = received / 1024
    row = _first_row(writer)
    clients = []
    for number in CLIENTS:
        while len(clients) < number:
            client = Client(path)
            client.monitor(own_rows(f"host-{len(clients)}"))
            clients.append(client)
        before = cpu_ms(pid)
        for sample in range(SAMPLES):
            writer.transact({
                "op": "mutate", "table": TABLE, "where": [["_uuid", "==", row]],
                "mutations": [["external_ids", "delete", ["set", ["sample"]]],
                              ["external_ids", "insert", ["map", [["sample", str(sample)]]]]]})
        result["update_us"][number] = (cpu_ms(pid) - before) * 1000 / SAMPLES
        for client in clients:
            client.drain()
    for client in clients:
        client.close()
    return result


def _first_row(writer):
    switch = writer.transact({"op": "select", "table": "Logical_Switch",
                              "where": [["name", "==", "ls0"]], "columns": ["ports"]})
    return switch[0]["rows"][0]["ports"][1][0]
