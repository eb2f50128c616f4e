# SPDX-License-Identifier: LGPL-2.1-or-later
"""A journald that only writes down what it is told.

Listens where the real one would, speaks its native protocol (systemd.io,
"Native Journal Protocol"), and appends one JSON object per entry to a file:
field names to strings, or to lists of strings where a field came several
times. _PID and _UID are those of the sender, as the kernel tells them.

    journal.py SOCKET OUTPUT
"""

import array
import json
import os
import socket
import struct
import sys
import time

MAX_ENTRY = 64 * 1024 * 1024
MAX_DATAGRAM = 8 * 1024 * 1024


def parse(data):
    """The fields of the entries in one message, entry by entry."""
    entries = []
    fields = {}
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        if end < 0:
            end = len(data)
        line = data[position:end]
        position = end + 1
        if not line:
            # An empty line ends an entry.
            if fields:
                entries.append(fields)
                fields = {}
            continue
        if b"=" in line:
            name, value = line.split(b"=", 1)
        else:
            # No "=": the value follows with its length before it, 64 bits
            # little-endian, so that it may hold anything, newlines included.
            name = line
            if position + 8 > len(data):
                raise ValueError("length of a binary field is cut off")
            (size,) = struct.unpack_from("<Q", data, position)
            position += 8
            if position + size > len(data):
                raise ValueError("binary field is cut off")
            value = data[position:position + size]
            position += size + 1
        _add(fields, name.decode("ascii", "replace"), value.decode("utf-8", "replace"))
    if fields:
        entries.append(fields)
    return entries


def _add(fields, name, value):
    if name not in fields:
        fields[name] = value
    elif isinstance(fields[name], list):
        fields[name].append(value)
    else:
        fields[name] = [fields[name], value]


def receive(connection):
    """One message and who sent it."""
    data, ancillary, _flags, _address = connection.recvmsg(
        MAX_DATAGRAM, socket.CMSG_SPACE(struct.calcsize("3i")) + socket.CMSG_SPACE(4 * 8))
    credentials = {}
    descriptors = array.array("i")
    for level, kind, content in ancillary:
        if level != socket.SOL_SOCKET:
            continue
        if kind == socket.SCM_CREDENTIALS:
            pid, uid, _gid = struct.unpack("3i", content[:struct.calcsize("3i")])
            credentials = {"_PID": str(pid), "_UID": str(uid)}
        elif kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[:len(content) - len(content) % 4])
    try:
        if not data and descriptors:
            # What is too large for a datagram comes as a sealed memfd.
            size = min(os.fstat(descriptors[0]).st_size, MAX_ENTRY)
            data = os.pread(descriptors[0], size, 0)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return data, credentials


def serve(path, output):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MAX_DATAGRAM)
    connection.bind(path)
    os.chmod(path, 0o666)
    with open(output, "a", encoding="utf-8", buffering=1) as file:
        while True:
            data, credentials = receive(connection)
            received = str(time.time_ns() // 1000)
            try:
                entries = parse(data)
            except ValueError as error:
                # A client that breaks the protocol must show up in a test.
                entries = [{"MESSAGE": f"malformed journal entry: {error}", "_MALFORMED": "1"}]
            for fields in entries:
                file.write(json.dumps({"__REALTIME_TIMESTAMP": received, **fields, **credentials})
                           + "\n")


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
