# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the probe program and reads its result."""

import dataclasses
import pathlib
import select
import subprocess

from . import artifacts
from .hosts import LabError


# A stream that has been silent for so long when it is ended has not gone on.
END_NS = 100_000_000


@dataclasses.dataclass
class Counted:
    """What a bare guest has counted of a sink."""

    once: int
    again: int
    late: int
    """Those that came too late to tell whether they are double."""
    longest_us: int
    """The longest time without any, by a clock that stands still with the guest."""


@dataclasses.dataclass
class ProbeResult:
    """All requests and replies of one probe, times in CLOCK_REALTIME ns."""

    sent: dict
    """When each sequence number was sent."""
    replies: list
    """(sequence, time received) in the order of arrival."""
    refused: int = 0
    """How many requests the sender's own kernel did not take."""
    counted: "Counted" = None
    """Of a sink: what the guest has counted, over the whole time."""

    @classmethod
    def load(cls, path, kind="icmp"):
        sent, replies, refused, counts = {}, [], 0, {}
        with open(path, encoding="ascii") as file:
            for line in file:
                word, first, second = line.split(",")
                first, second = int(first), int(second)
                if word == "r":
                    replies.append((first, second))
                elif word in "se":
                    sent[first] = second
                    refused += word == "e"
                elif word == "f":
                    refused = first
                else:
                    counts[word] = (first, second)
        if kind == "stream":
            sent = cls._guess_sent(replies, counts.pop("x", (0, 0))[1])
        elif kind == "tcp":
            sent = dict(replies)
        counted = Counted(*counts["c"], *counts["g"]) if counts else None
        return cls(sent, replies, refused, counted)

    @staticmethod
    def _guess_sent(replies, end):
        """When a stream was sent, of which there are only the arrivals.

        What is missing was sent some time between its neighbours; if nothing
        came any more long before the end, it went on at the same rate.
        """
        first = {}
        for sequence, time in replies:
            first.setdefault(sequence, time)
        sent, before = {}, None
        for sequence in sorted(first):
            if before is not None:
                step = (first[sequence] - first[before]) / (sequence - before)
                for missing in range(before + 1, sequence):
                    sent[missing] = int(first[before] + step * (missing - before))
            sent[sequence] = first[sequence]
            before = sequence
        if len(first) > 1:
            start = min(first.values())
            step = max((first[before] - start) / max(before, 1), 1.0)
            if end - first[before] > END_NS:
                for number in range(1, int((end - first[before]) / step)):
                    sent[before + number] = int(first[before] + step * number)
        return sent

    def window(self, start_ns=None, end_ns=None):
        """The part of the result that was sent between two times."""
        sent = {sequence: time for sequence, time in self.sent.items()
                if (start_ns is None or time >= start_ns) and (end_ns is None or time < end_ns)}
        replies = [reply for reply in self.replies if reply[0] in sent]
        return ProbeResult(sent, replies, self.refused, self.counted)

    def _silences(self):
        """(length, beginning) of every time without a reply, in ns.

        What is sent before the first and after the last reply counts too: a
        network that does not come back is silent, not absent from the result.
        """
        if not self.sent:
            return []
        times = sorted(time for _sequence, time in self.replies)
        last = max([*self.sent.values(), *times[-1:]])
        marks = [min(self.sent.values()), *times, last]
        return [(after - before, before) for before, after in zip(marks, marks[1:])]

    @property
    def silence(self):
        """(length, beginning) of the longest time without a reply, in ns."""
        return max(self._silences(), default=(0, 0))

    @property
    def silence_ms(self):
        return self.silence[0] / 1e6

    @property
    def lost(self):
        if self.counted:
            return len(self.sent) - self.counted.once
        return len(self.sent) - len({sequence for sequence, _time in self.replies})

    @property
    def doubled(self):
        if self.counted:
            return self.counted.again
        return len(self.replies) - len({sequence for sequence, _time in self.replies})

    @property
    def reordered(self):
        """Replies that came after one to a later request; doubles left out."""
        seen, highest, count = set(), -1, 0
        for sequence, _time in self.replies:
            if sequence in seen:
                continue
            seen.add(sequence)
            count += sequence < highest
            highest = max(highest, sequence)
        return count

    def gaps(self, longer_than_ms=20):
        """All silences above a length: [(beginning ns, length ms)]."""
        return [(before, length / 1e6) for length, before in self._silences()
                if length > longer_than_ms * 1e6]


# Where tcpsink listens in a guest with Linux.
TCP_PORT = 5002


class Probe:
    """A running probe from a host to an address.

    The kinds are those of probe.c, and "tcp": a transfer of `rate` bytes a
    second to a guest that runs tcpsink. Its result has the acknowledgements as
    replies, and what was sent again as `refused`; nothing of it is ever lost.
    """

    def __init__(self, host, address, interface=None, rate=1000, duration=120, name="probe",
                 kind="icmp"):
        self.address = address
        self.kind = kind
        # Several probes may run at once, and none overwrites another's result.
        self.output = pathlib.Path(host.logs) / f"{name}-{host.next_number()}.csv"
        if kind == "tcp":
            command = [artifacts.tool("tcpflow")]
            arguments = [address, TCP_PORT, rate, self.output]
        else:
            command = [artifacts.tool("probe"), "--kind", kind, "--rate", rate,
                       "--duration", duration]
            arguments = [address, self.output]
        if interface:
            command += ["--interface", interface]
        self.process = host.popen([*command, *arguments],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def wait_for_replies(self, timeout=10):
        """Until the first reply is there."""
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        if not ready or not self.process.stdout.readline():
            self.process.kill()
            raise LabError(f"the probe of {self.address} gets no replies")
        return self

    def stop(self):
        """Ends the probe and returns its result."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stdout.close()
        result = ProbeResult.load(self.output, self.kind)
        if self.kind == "sink" and not result.counted:
            raise LabError(f"the guest at {self.address} does not tell what it has counted")
        self.output.unlink()
        return result
