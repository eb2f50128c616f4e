# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tells a slow guest from a slow network.

An emulated guest does not answer the moment it resumes: at its new host all of
its code is translated anew, which takes tens of milliseconds. A probe can't
tell that from a network that is still away; a look at the guest's own tap can.
"""

import dataclasses
import re
import subprocess

from .hosts import wait_until

LINE = re.compile(r"^(\d+)\.(\d{9}) vnet\S* .* ICMP echo (request|reply), id (\d+), seq (\d+),")


@dataclasses.dataclass
class TapTimes:
    """What passed the guest's tap at the destination, in CLOCK_REALTIME ns."""

    requests: dict
    """When each request was handed to the guest, or to its queue."""
    first_reply: tuple
    """(time, request) of the first reply, or None."""

    def wake_up_ms(self, resumed):
        """How long the guest itself took until it answered.

        From its resume if it answered something that it had brought along in
        its memory, else from when the network delivered what it answered.
        """
        if not self.first_reply:
            return 0.0
        time, request = self.first_reply
        start = max(resumed, self.requests.get(request, resumed))
        return max(0.0, (time - start) / 1e6)


class TapWatch:
    """Records the pings at the taps of a host."""

    def __init__(self, host):
        self._host = host
        self._file = f"/var/log/tap-{host.next_number()}.pcap"
        self._process = host.popen(
            ["tcpdump", "-i", "any", "-nn", "-U", "-Z", "root", "-B", "8192",
             "--time-stamp-precision=nano", "-w", self._file, "icmp"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = host.logs / self._file.rpartition("/")[2]
        self._path = path
        wait_until(lambda: path.exists() and path.stat().st_size >= 24, "tcpdump")

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=10)
        output = self._host.run(["tcpdump", "-nn", "-tt", "--time-stamp-precision=nano",
                                 "-r", self._file]).stdout
        self._path.unlink()
        requests, first_reply = {}, None
        for line in output.splitlines():
            match = LINE.match(line)
            if not match:
                continue
            seconds, nanos, kind, *request = match.groups()
            time = int(seconds) * 1_000_000_000 + int(nanos)
            if kind == "request":
                requests.setdefault(tuple(request), time)
            elif first_reply is None:
                first_reply = (time, tuple(request))
        return TapTimes(requests, first_reply)
