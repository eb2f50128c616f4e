# SPDX-License-Identifier: LGPL-2.1-or-later
"""One migration under probes, and what it did; all that is known of it, as plain data."""

import concurrent.futures
import pathlib
import re
import time

from lab import LabError, wait_until
from lab.lab import RESUMED, RESUMED_UNPAUSED, SUSPENDED, SUSPENDED_PAUSED, Pause
from lab.ways import Move, handovers

from .scenes import PATIENCE

# The probes run for this long before, and after everything is done.
MARGIN = 1.0
# Of every reply's time, this much around the guest's pause is kept for the plot.
TRACE_BEFORE_MS = 2500
TRACE_AFTER_MS = 3500
FLOOR = "floor"


def outside(pause, start, end):
    """How much of a time lies outside of a pause; ns in, ms out."""
    inside = max(0, min(end, pause.end) - max(start, pause.start))
    return (end - start - inside) / 1e6


def describe_probe(label, kind, rate, result, pause, since):
    """What a probe saw since then; its guest's pause is known."""
    counted = result.counted
    window = result.window(since)
    described = {
        "target": label, "kind": kind, "rate": rate,
        "sent": len(window.sent), "lost": window.lost, "doubled": window.doubled,
        "reordered": window.reordered, "refused": result.refused,
    }
    if counted:
        # Of the whole time, since the guest can't tell when it was.
        described.update(lost=result.lost, doubled=counted.again,
                         silence_ms=counted.longest_us / 1000 + pause.ms,
                         beyond_ms=counted.longest_us / 1000,
                         switch_ms=counted.longest_us / 1000, elsewhere_ms=None)
        return described
    gaps = [(start, start + length * 1e6) for start, length in window.gaps(longer_than_ms=0)]
    around = [gap for gap in gaps if gap[0] < pause.end and gap[1] > pause.start]
    switch = max((outside(pause, *gap) for gap in around), default=0.0)
    elsewhere = max((outside(pause, *gap) for gap in gaps if gap not in around), default=0.0)
    described.update(
        silence_ms=window.silence_ms,
        # Of the silence that the pause is in; of any other; the worse of both.
        switch_ms=switch, elsewhere_ms=elsewhere, beyond_ms=max(switch, elsewhere))
    return described


def trace(result, pause):
    """[(ms since the pause began, round trip in ms or None, how often)]"""
    first, times = {}, {}
    for sequence, arrived in result.replies:
        first.setdefault(sequence, arrived)
        times[sequence] = times.get(sequence, 0) + 1
    points = []
    for sequence, sent in result.sent.items():
        offset = (sent - pause.start) / 1e6
        if -TRACE_BEFORE_MS <= offset <= TRACE_AFTER_MS:
            back = round((first[sequence] - sent) / 1e6, 2) if sequence in first else None
            points.append((round(offset, 1), back, times.get(sequence, 0)))
    return sorted(points)


class Bench:
    """Migrates the guests of a scene to and fro."""

    def __init__(self, scene):
        self.scene = scene
        self.lab = scene.lab

    def _start_probes(self):
        probes = []
        for target in self.scene.targets:
            for kind, rate in self.scene.probe_kinds:
                probes.append((target, kind, rate, target.probe(self.lab.client, kind, rate)))
        for _target, _kind, _rate, probe in probes:
            probe.wait_for_replies(30)
        return probes

    def measure(self, way, disarm=True):
        """One migration of all guests, in a given way, which is in place afterwards if wanted."""
        scene = self.scene
        move = Move(self.lab, scene.movers, scene.source, scene.destination)
        way.arm(self.lab)
        try:
            return self._measure(way, move)
        finally:
            if disarm:
                way.disarm(self.lab)

    def _measure(self, way, move):
        way.before(move)
        probes = self._start_probes()
        try:
            time.sleep(MARGIN)
            since = time.time_ns()
            marks = self._database_marks()
            with concurrent.futures.ThreadPoolExecutor(len(self.scene.guests)) as pool:
                migrations = list(pool.map(
                    lambda guest: self.lab.migrate(guest, move.source, move.destination,
                                                   timeout=PATIENCE), self.scene.guests))
            failed = [migration.error.strip() for migration in migrations if not migration.ok]
            if failed and len(failed) < len(migrations):
                raise LabError(f"some guests have moved, others have not: {failed[0]}")
            if not failed:
                way.after(move)
            settled = time.time_ns()
            writes = self._writes(marks)
            time.sleep(MARGIN)
        finally:
            results = [(target, kind, rate, probe.stop()) for target, kind, rate, probe in probes]
        if failed:
            way.cleanup(Move(self.lab, move.ports, move.destination, move.source))
            return {"way": way.key, "at": since / 1e9, "failed": failed[0]}
        self.scene.turn_round()
        pauses = {guest.name: self.lab.guest_pause(guest, move.source, move.destination, since)
                  for guest in self.scene.guests}
        run = {
            "way": way.key,
            "at": since / 1e9,
            "migration_ms": max(migration.duration_ms for migration in migrations),
            "settled_ms": (settled - since) / 1e6,
            "bound": self._bound(move),
            "writes": writes,
            **self._results(results, pauses, since),
            "hooks": [{"host": host.name, "hook": f"{operation} {sub}", "ms": (end - begin) / 1e6}
                      for host in (move.source, move.destination)
                      for operation, sub, begin, end in host.hook_times(since)],
        }
        told = [one for host in self.lab.hypervisors for one in handovers(host, since)]
        if way.key.startswith("portferry"):
            run["daemon"] = [self._daemon(guest, move, pauses[guest.name], since)
                             for guest in self.scene.guests]
        elif told:
            raise LabError(f"portferry had a hand in '{way.name}': {told}")
        way.cleanup(move)
        return run

    def _results(self, results, pauses, since):
        described, points = [], []
        for target, kind, rate, result in results:
            pause = pauses[target.guest.name]
            described.append(describe_probe(target.label, kind, rate, result, pause, since))
            if not points and kind == "icmp":
                points = trace(result, pause)
        return {
            "pauses_ms": [pause.ms for pause in pauses.values()],
            "probes": described,
            "trace": points,
        }

    def _database_files(self):
        return {name: pathlib.Path(self.lab.central.path(f"/var/lib/ovn/{name}.db"))
                for name in ("nb", "sb")}

    def _database_marks(self):
        return {name: path.stat().st_size for name, path in self._database_files().items()}

    def _writes(self, marks):
        """What all, OVN itself included, have written to the databases since then.

        {database: (transactions, bytes)}, from the databases' files; None if one was compacted.
        """
        writes = {}
        for name, path in self._database_files().items():
            with open(path, "rb") as file:
                file.seek(marks[name])
                added = file.read()
            records = added.count(b"OVSDB JSON ")
            writes[name] = (records, len(added)) if added.startswith(b"OVSDB") else None
            if not added:
                writes[name] = (0, 0)
        return writes

    def _bound(self, move):
        """Where the ports are, if all at the same place, with the others' names."""
        names = {host.chassis: host.name for host in self.lab.hypervisors}
        places = set()
        for port in move.ports:
            binding = self.lab.binding(port)
            places.add("+".join(names.get(one, "nobody")
                                for one in [binding["chassis"], *binding["additional"]]))
        return "destination" if places == {move.destination.name} else ",".join(sorted(places))

    def _daemon(self, guest, move, pause, since):
        """The handover's times as the daemons tell them, in ms from what they followed."""
        phases = {}
        for host, role in ((move.source, "source"), (move.destination, "destination")):
            for told_role, _phase, uuid, told in handovers(host, since):
                if told_role == role and uuid == guest.uuid:
                    phases[role] = dict(told)
        here, there = phases.get("source", {}), phases.get("destination", {})
        started = [(begin, end) for operation, sub, begin, end
                   in move.destination.hook_times(since)
                   if (operation, sub) == ("started", "begin")]

        def between(start, end):
            return (end - start) / 1e6 if start and end else None
        numbers = {
            # libvirt's stamp of the pause to the daemon's knowing, to the destination's.
            "pause_seen_ms": between(pause.start, here.get("open")),
            "seen_to_open_ms": between(here.get("open"), there.get("open")),
            "resume_seen_ms": between(pause.end, there.get("running")),
            "resume_to_active_ms": between(pause.end, there.get("active")),
            "preplug_ms": between(there.get("preplug"), there.get("binding")),
            "binding_ms": between(there.get("binding"), there.get("ready")),
        }
        if len(started) == 1 and there.get("ready"):
            begin, end = started[0]
            numbers["gate_added_ms"] = (end - max(begin, there["ready"])) / 1e6
        return numbers

    def measure_floor(self):
        """A plain suspend and resume: the least that a probe can see of a pause."""
        scene = self.scene
        probes = self._start_probes()
        try:
            time.sleep(MARGIN)
            since = time.time_ns()
            for guest in scene.guests:
                scene.source.virsh("suspend", guest.name)
            time.sleep(scene.floor_pause_s)
            for guest in scene.guests:
                scene.source.virsh("resume", guest.name)
            time.sleep(MARGIN)
        finally:
            results = [(target, kind, rate, probe.stop()) for target, kind, rate, probe in probes]

        def find(guest):
            events = [event for event in self.lab.events(scene.source, since)
                      if event.domain == guest.name]
            start = [event.time for event in events
                     if event.is_lifecycle(SUSPENDED, SUSPENDED_PAUSED)]
            end = [event.time for event in events if event.is_lifecycle(RESUMED, RESUMED_UNPAUSED)]
            return start and end and Pause(start[0], end[0])
        pauses = {guest.name: wait_until(lambda guest=guest: find(guest), "suspend and resume")
                  for guest in scene.guests}
        return {"way": FLOOR, "at": since / 1e9, "bound": "",
                **self._results(results, pauses, since), "hooks": []}


# --- what a daemon costs ---

def daemon_costs(host, idle_s):
    """Memory, what it has read from the databases, and what it does when there is nothing to do."""
    pid = host.services["portferryd"].pid
    before = _activity(pid)
    time.sleep(idle_s)
    after = _activity(pid)
    return {
        "host": host.name,
        "rss_kib": _status(f"/proc/{pid}/status", "VmRSS"),
        # Without the pages of libraries, which it shares with other processes.
        "anonymous_kib": _status(f"/proc/{pid}/status", "RssAnon"),
        "read_bytes": _bytes_received(host),
        "idle_s": idle_s,
        "idle_wakeups": after[0] - before[0],
        "idle_cpu_ticks": after[1] - before[1],
    }


def _status(path, name):
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def _activity(pid):
    """(how often any thread has gone to sleep, clock ticks of CPU)"""
    wakeups = sum(_status(task / "status", "voluntary_ctxt_switches")
                  for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return wakeups, int(fields[11]) + int(fields[12])


def _bytes_received(host):
    """By portferryd from either database over TCP, since they are connected."""
    text = host.run(["ss", "-H", "-t", "-i", "-n", "-p", "-O"]).stdout
    received = {}
    for line in text.splitlines():
        count = re.search(r"bytes_received:(\d+)", line)
        if "portferryd" in line and count:
            for name, port in (("nb", 6641), ("sb", 6642)):
                if f":{port} " in line:
                    received[name] = int(count.group(1))
    return received
