# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lab tests have in common: a lab that tests share, and what must be
true when a handover is over.

A module of tests is a program. It tells its results in TAP:

    tests/lab/test_carry.py [--list] [CLASS[.TEST]...]
"""

import argparse
import bisect
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import sys
import time
import traceback
import unittest

from . import artifacts, points
from .hosts import CommandError, LabError, wait_until
from .lab import Lab
from .ovsdb import Ovsdb
from .tapwatch import TapWatch

# Which build of portferry is tested; the lab's own tools stay where they are.
artifacts.BUILD = pathlib.Path(os.environ.get("PORTFERRY_BUILD", artifacts.BUILD)).resolve()

# What a handover needs to end, on a machine that is busy with other things. No
# test is decided by it, unless a handover does not end at all.
PATIENCE = 60
# What the network may be away beyond the guest's own absence. What is really
# reached is measured elsewhere; this only tells a handover from none.
MAX_SILENCE_MS = 2000
# The probes see this much of the time before and after.
MARGIN = 0.3

MARKER = "portferry-"
# A CMS has keys of its own on every port; they are nobody's business.
CMS_IDS = {"neutron:port_name": "left alone", "neutron:revision_number": "7"}
CMS_OPTIONS = {"mcast_flood_reports": "true"}

# The phases in the only order in which a handover that goes well passes them.
ORDER = {
    ("destination", "done"): ["preplug", "binding", "ready", "open", "running", "release",
                              "activate", "active", "finish", "done"],
    ("destination", "undone"): ["preplug", "binding", "ready", "open", "running", "release",
                                "activate", "active", "rollback", "drain", "undo", "undone"],
    ("source", "done"): ["watch", "open", "release", "left", "activate", "clear", "finish",
                         "done"],
    ("source", "undone"): ["watch", "open", "close", "rollback", "drain", "undo", "undone"],
}
# Those that none of them leaves out.
ALWAYS = {
    ("destination", "done"): {"preplug", "binding", "ready", "running", "activate", "done"},
    ("destination", "undone"): {"preplug", "rollback", "undone"},
    ("source", "done"): {"watch", "done"},
    ("source", "undone"): {"watch", "undone"},
}


def message_ids():
    """The names in daemon/message-ids.h and their MESSAGE_IDs."""
    ids = {}
    for line in (artifacts.REPO / "daemon" / "message-ids.h").read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "#define" and words[1].startswith("PF_MESSAGE_"):
            ids[words[1].removeprefix("PF_MESSAGE_")] = words[2].strip('"')
    return ids


MESSAGE = message_ids()
PHASE_MESSAGES = {MESSAGE[name] for name in (
    "PHASE_CHANGED", "HANDOVER_READY", "HANDOVER_OPENED", "HANDOVER_ACTIVATED",
    "HANDOVER_FINISHED", "HANDOVER_ROLLED_BACK")}


# --- portferry as its users see it ---

@dataclasses.dataclass
class Handover:
    """A handover as the daemon of one host shows it on the bus."""

    path: str
    id: str
    uuid: str
    role: str
    started: int
    phase: str
    phases: list
    """(phase, CLOCK_REALTIME us), oldest first."""
    source: str
    destination: str
    ports: list
    last_error: str
    waiting: str

    @property
    def names(self):
        return [phase for phase, _time in self.phases]

    @property
    def ended(self):
        return self.phase in ("done", "undone", "unfinished")


def busctl(host, *arguments, check=True):
    return host.run(["busctl", "--json=short", *arguments], check=check)


def manager_property(host, name):
    """None while the daemon is not on the bus."""
    answer = busctl(host, "get-property", "org.portferry1", "/org/portferry1",
                    "org.portferry1.Manager", name, check=False)
    return json.loads(answer.stdout)["data"] if answer.returncode == 0 else None


def handovers(host, uuid=None, since=0):
    """The handovers that a host's daemon shows, oldest first; times in ns."""
    answer = busctl(host, "call", "org.portferry1", "/org/portferry1",
                    "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
    found = []
    for path, interfaces in json.loads(answer.stdout)["data"][0].items():
        if "org.portferry1.Handover" not in interfaces:
            continue
        value = {name: variant["data"]
                 for name, variant in interfaces["org.portferry1.Handover"].items()}
        handover = Handover(
            path, value["Id"], value["UUID"], value["Role"], value["Started"], value["Phase"],
            [tuple(phase) for phase in value["Phases"]], value["Source"], value["Destination"],
            [tuple(port) for port in value["Ports"]], value["LastError"], value["Waiting"])
        if uuid in (None, handover.uuid) and handover.started * 1000 >= since:
            found.append(handover)
    return sorted(found, key=lambda handover: handover.started)


def override(host, handover, method):
    """An operator's word; returns the finished busctl."""
    return busctl(host, "call", "org.portferry1", handover.path, "org.portferry1.Handover",
                  method, check=False)


def interfaces(host):
    """external_ids of all interfaces of a host's switch, by name."""
    database = Ovsdb("Open_vSwitch", host.path("/run/openvswitch/db.sock"))
    try:
        (rows,) = database.select(("Interface", [], ["name", "external_ids"]))
    finally:
        database.close()
    return {row["name"]: row["external_ids"] for row in rows}


def claimants(lab, port):
    """Where an interface claims a port: host names, one for each interface."""
    return [host.name for host in lab.hypervisors
            for ids in interfaces(host).values() if ids.get("iface-id") == port]


def own_keys(keys):
    return sorted(key for key in keys if key.startswith(MARKER))


def ovn_nics(lab, guest):
    """The interfaces of a guest whose port exists in OVN."""
    return [nic for nic in guest.nics if nic.port and lab.nb_port(nic.port)]


# --- what probes see ---

class Watch:
    """Looks at a guest's network from outside, for as long as the block lasts."""

    def __init__(self, lab, guest, destination):
        self._lab = lab
        self._guest = guest
        self._destination = destination
        self._probes = []
        self._taps = {}
        self.results = []
        self.taps = None
        self.deliveries = []

    def __enter__(self):
        self._taps = {host: TapWatch(host) for host in self._lab.hypervisors}
        for nic in ovn_nics(self._lab, self._guest):
            if nic.ip:
                probe = self._lab.probe(nic, duration=PATIENCE * 4, name=self._guest.name)
                self._probes.append(probe)
        for probe in self._probes:
            probe.wait_for_replies()
        time.sleep(MARGIN)
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            time.sleep(MARGIN)
        self.results = [probe.stop() for probe in self._probes]
        taps = {host: watch.stop() for host, watch in self._taps.items()}
        self.taps = taps[self._destination]
        self.deliveries = sorted(time for one in taps.values() for time in one.requests.values())


def added_silence_ms(result, pause, wake_up_ms, deliveries=()):
    """The longest silence without the part that was the guest's own.

    That is its pause and its wake-up; and on a busy machine an emulated guest
    may stand still at any time, while what is sent to it reaches its tap.
    """
    absent_until = pause.end + wake_up_ms * 1e6 if pause else 0
    absent_since = pause.start if pause else 0
    longest = 0.0
    for start, length in result.gaps(longer_than_ms=0):
        end = start + length * 1e6
        own = max(0, min(end, absent_until) - max(start, absent_since)) / 1e6
        inside = deliveries[bisect.bisect(deliveries, start):bisect.bisect(deliveries, end)]
        marks = [start, *inside, end]
        undelivered = max(after - before for before, after in zip(marks, marks[1:])) / 1e6
        longest = max(longest, min(length - own, undelivered))
    return longest


def doubles(result, pause):
    """What was answered twice, and when it was sent, for people to look into."""
    seen, twice = set(), []
    for sequence, _time in result.replies:
        if sequence in seen:
            start = pause.start if pause else min(result.sent.values())
            twice.append((sequence, round((result.sent[sequence] - start) / 1e6, 1)))
        seen.add(sequence)
    return twice


# --- tests ---

class LabCase(unittest.TestCase):
    """Tests that share a lab with portferry on every hypervisor.

    Each leaves the lab as it found it, except that a guest may be on another
    host. One that fails takes the lab with it, so that it fails alone.
    """

    lab = None
    HYPERVISORS = 2
    PORTFERRY = True
    # Who must have seen the last change: hv, or sb where not all hosts are up.
    WAIT_FOR = "hv"
    longMessage = True
    maxDiff = None

    # --- the lab ---

    @classmethod
    def furnish(cls):
        """Makes in cls.lab what the tests of the class need."""

    @classmethod
    def stand_up(cls):
        cls.lab = Lab(hypervisors=cls.HYPERVISORS)
        cls.lab.start()
        if cls.PORTFERRY:
            for host in cls.lab.hypervisors:
                host.install_hook()
                start_portferryd(host)
        cls.furnish()

    @classmethod
    def take_down(cls, failed=False):
        if cls.lab:
            cls.lab.keep_logs = cls.lab.keep_logs or failed
            lab, cls.lab = cls.lab, None
            lab.stop()

    @classmethod
    def tearDownClass(cls):
        try:
            wrong = cls.end_portferryd() if cls.lab else []
        finally:
            cls.take_down()
        if wrong:
            raise AssertionError("\n".join(wrong))

    @classmethod
    def end_portferryd(cls):
        """Ends the daemons; returns what is to be said against the way they ended."""
        wrong = []
        for host in cls.lab.hypervisors:
            if "portferryd" in host.services:
                status = host.stop_portferryd()
                if status != 0:
                    wrong.append(f"portferryd on {host.name} ended with {status}")
            for report in sorted(host.logs.glob(pathlib.Path(SANITIZER_LOG).name + "*")):
                wrong.append(f"{host.name}: {report.read_text(errors='replace')}")
        cls.lab.keep_logs = cls.lab.keep_logs or bool(wrong)
        return wrong

    def setUp(self):
        if type(self).lab is None:
            try:
                self.stand_up()
            except BaseException:
                self.take_down(failed=True)
                raise
        self.began = time.time_ns()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        try:
            super().run(result)
        finally:
            if len(result.failures) + len(result.errors) > before:
                type(self).take_down(failed=True)

    # --- what tests start from ---

    @classmethod
    def add_nic(cls, switch, ip, **options):
        """A port as a CMS makes one, with keys that are to be left alone."""
        nic = cls.lab.add_nic(switch, ip, **CMS_OPTIONS, **options)
        cls.lab.nbctl("set", "Logical_Switch_Port", nic.port,
                      *[f'external_ids:"{key}"="{value}"' for key, value in CMS_IDS.items()])
        return nic

    @classmethod
    def add_guest(cls, name, nics, host=None, **options):
        """A guest that is up; at first on hv1."""
        host = host or cls.lab.hypervisors[0]
        guest = cls.lab.define_guest(host, name, nics, **options)
        cls.lab.boot(guest, host)
        return guest

    def where(self, guest):
        """The host that a guest is on, and the other one."""
        hosts = [host for host in self.lab.hypervisors
                 if guest.name in host.virsh("list", "--name").split()]
        self.assertEqual(len(hosts), 1, f"{guest.name} is on {hosts}")
        others = [host for host in self.lab.hypervisors if host is not hosts[0]]
        return hosts[0], others[0]

    CONFIGURATION = "/etc/portferry/portferry.conf"

    @classmethod
    def settle_for(cls, **settings):
        """Gives portferry on all hosts another configuration, for the whole class."""
        for host in cls.lab.hypervisors:
            cls.write_configuration(host, settings)
            restart_portferryd(host)

    @classmethod
    def write_configuration(cls, host, settings):
        lines = [f"{key.replace('_', '-')}={value}" for key, value in settings.items()]
        host.write(cls.CONFIGURATION, "\n".join(["[portferry]", *lines, ""]))

    def configure(self, host, **settings):
        """Gives a host's portferry another configuration, until the test ends."""
        path = pathlib.Path(host.path(self.CONFIGURATION))
        before = path.read_text(encoding="utf-8") if path.exists() else None
        self.write_configuration(host, settings)
        restart_portferryd(host)

        def restore():
            if before is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(before, encoding="utf-8")
            restart_portferryd(host)
        self.add_repair(restore)

    def stop_portferryd(self, host):
        """Takes the daemon from a host, until the test ends."""
        host.stop_portferryd()

        def restore():
            if "portferryd" not in host.services:
                start_portferryd(host)
        self.add_repair(restore)

    def suspend_service(self, host, name):
        """Makes a process stand still; returns what makes it go on."""
        pid = host.services[name].pid
        os.kill(pid, signal.SIGSTOP)

        def resume():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.add_repair(resume)
        return resume

    def add_repair(self, function):
        """Called at the end of the test, if its lab is not given up anyway."""
        def repair():
            if type(self).lab is not None:
                function()
        self.addCleanup(repair)

    def pin(self, guest, *chassis):
        """Sets requested-chassis of a guest's ports, until the test ends."""
        for nic in ovn_nics(self.lab, guest):
            self.lab.set_requested_chassis(nic.port, *chassis)
            self.add_repair(lambda nic=nic: self.lab.set_requested_chassis(nic.port))
        host, _other = self.where(guest)
        for nic in ovn_nics(self.lab, guest):
            self.lab.wait_bound(nic.port, host)

    # --- what goes on ---

    def start_slow_migration(self, guest, source, destination, *extra, bandwidth=4, **options):
        """A migration that does not come to its end before release().

        The guest must dirty its memory faster than that, in MiB/s.
        """
        return self.lab.start_migration(guest, source, destination, "--bandwidth", bandwidth,
                                        *extra, **options)

    def release(self, guest, source):
        """Lets a slow migration come to its end."""
        source.virsh("migrate-setmaxdowntime", guest.name, 2000)
        source.virsh("migrate-setspeed", guest.name, 10000)

    def wait_for_phase(self, host, guest, *phases, since=None):
        """Until a host's daemon shows the guest's last handover in one of the phases."""
        since = self.began if since is None else since

        def find():
            found = handovers(host, guest.uuid, since)
            return found[-1] if found and found[-1].phase in phases else None
        return wait_until(find, f"phase {' or '.join(phases)} of {guest.name} on {host.name}",
                          PATIENCE, interval=0.05)

    def wait_for_event(self, host, guest, event, detail, since):
        """Until libvirt has told of an event; returns its time."""
        def found():
            return [one.time for one in self.lab.events(host, since)
                    if one.domain == guest.name and one.is_lifecycle(event, detail)]
        return wait_until(found, f"event {event}/{detail} of {guest.name} on {host.name}",
                          PATIENCE)[0]

    @staticmethod
    def kill_qemu(host, guest):
        """SIGKILL, as the kernel does when memory is short."""
        host.shell(f"kill -9 $(cat /run/libvirt/qemu/{guest.name}.pid)")

    def wait_for_copy(self, guest, source, timeout=PATIENCE):
        """Until the migration copies memory."""
        def copies():
            info = source.virsh("domjobinfo", guest.name, check=False)
            return "Outgoing migration" in info and "Memory processed" in info
        wait_until(copies, f"the copy of {guest.name}", timeout, interval=0.05)

    # --- what must be true afterwards ---

    def complaints(self, guest, host, expected):
        """What is not yet as it must be when nothing goes on any more.

        `host` is where the guest is, or None.
        """
        lab, wrong = self.lab, []
        for nic in ovn_nics(lab, guest):
            row, binding = lab.nb_port(nic.port), lab.binding(nic.port)
            for name, column in (("options", row["options"]),
                                 ("external_ids", row["external_ids"])):
                if column != expected[nic.port][name]:
                    wrong.append(f"northbound {name} {column}, not {expected[nic.port][name]}")
            chassis, at = (host.chassis, [host.name]) if host else (None, [])
            if binding["chassis"] != chassis or binding["up"] != bool(host):
                wrong.append(f"chassis {binding['chassis']}, up {binding['up']}")
            for name in ("additional", "requested_additional"):
                if binding[name]:
                    wrong.append(f"{name} chassis {binding[name]}")
            if "additional-chassis-activated" in binding["options"]:
                wrong.append("additional-chassis-activated")
            if own_keys(binding["external_ids"]):
                wrong.append(f"southbound {own_keys(binding['external_ids'])}")
            if claimants(lab, nic.port) != at:
                wrong.append(f"interfaces on {claimants(lab, nic.port)}")
        for each in lab.hypervisors:
            for name, ids in interfaces(each).items():
                if own_keys(ids):
                    wrong.append(f"{own_keys(ids)} of interface {name} on {each.name}")
            if "portferryd" in each.services:
                wrong += [f"{handover.role} in phase {handover.phase} on {each.name}"
                          for handover in handovers(each, guest.uuid) if not handover.ended]
        return wrong

    def ports(self, guest):
        """The northbound rows of a guest's ports, as they are now."""
        return {nic.port: self.lab.nb_port(nic.port) for nic in ovn_nics(self.lab, guest)}

    @staticmethod
    def followed(before, source, destination):
        """What the rows must be after the guest has moved."""
        after = {}
        for port, row in before.items():
            options = dict(row["options"])
            pin = options.get("requested-chassis")
            if pin in (source.chassis, source.name):
                options["requested-chassis"] = destination.chassis
            after[port] = {**row, "options": options}
        return after

    def assert_settled(self, guest, host, expected, running=True, check_guest=True):
        """The guest is on the host, its ports too, and nothing is left of the way.

        `host` None: it runs nowhere any more. `check_guest`: not where it is half of one.
        """
        for nic in ovn_nics(self.lab, guest):
            for key, value in CMS_IDS.items():
                self.assertEqual(expected[nic.port]["external_ids"].get(key), value)
        wrong = []

        def quiet():
            wrong[:] = self.complaints(guest, host, expected)
            return not wrong
        try:
            wait_until(quiet, "the end", PATIENCE, interval=0.1)
        except LabError:
            self.fail(f"{guest.name} on {host}, still wrong after {PATIENCE} s: "
                      + "; ".join(wrong))
        # What was on its way somewhere must not change it again.
        self.lab.nbctl(f"--wait={self.WAIT_FOR}", "--timeout=30", "sync")
        self.assertEqual(self.complaints(guest, host, expected), [])
        if not check_guest:
            return
        state = "--state-running" if running else "--state-paused"
        for each in self.lab.hypervisors:
            found = guest.name in each.virsh("list", "--name", state).split()
            self.assertEqual(found, each is host, f"{guest.name} on {each.name}")
        if host and running:
            self.assert_answers(guest)

    def assert_answers(self, guest):
        for nic in ovn_nics(self.lab, guest):
            if nic.ip:
                self.lab.wait_for_ping(nic)

    def handover_of(self, host, guest, since=None):
        """The one handover of a guest since then, on a host."""
        found = handovers(host, guest.uuid, self.began if since is None else since)
        self.assertEqual(len(found), 1, f"handovers on {host.name}: {found}")
        return found[0]

    def assert_handover(self, host, guest, role, end, since=None):
        """One handover, well told on the bus and in the journal; returns it."""
        handover = self.handover_of(host, guest, since)
        self.check_handover(host, guest, handover, role, end)
        return handover

    def check_handover(self, host, guest, handover, role, end):
        what = f"{role} {host.name}: {handover.phases}"
        self.assertEqual(handover.role, role, what)
        self.assertEqual(handover.phase, end, what)
        times = [when for _phase, when in handover.phases]
        self.assertEqual(times, sorted(times), what)
        order = ORDER[role, end]
        places = [order.index(name) if name in order else -1 for name in handover.names]
        self.assertNotIn(-1, places, what)
        self.assertEqual(places, sorted(set(places)), what)
        self.assertLessEqual(ALWAYS[role, end], set(handover.names), what)
        self.assertEqual({port for port, _mac, _state in handover.ports},
                         {nic.port for nic in ovn_nics(self.lab, guest)})
        self.check_journal(host, guest, handover)

    def check_journal(self, host, guest, handover):
        """A structured entry for each phase."""
        entries = [entry for entry in host.journal(HANDOVER=handover.id)
                   if entry.get("MESSAGE_ID") in PHASE_MESSAGES and "DESTINATION" in entry]
        told = [entry.get("PHASE") for entry in entries]
        # What was recovered by a daemon that was started since has fewer.
        self.assertEqual(told[-len(handover.names):], handover.names)
        first = True
        for entry in entries[-len(handover.names):]:
            self.assertEqual(entry.get("DOMAIN_UUID"), guest.uuid, entry)
            self.assertEqual(entry.get("ROLE"), handover.role, entry)
            self.assertEqual(entry.get("SOURCE"), handover.source, entry)
            self.assertEqual(entry.get("DESTINATION"), handover.destination, entry)
            self.assertEqual(set(entry.get("PORT", "").split(",")),
                             {port for port, _mac, _state in handover.ports}, entry)
            self.assertEqual(entry.get("SYSLOG_IDENTIFIER"), "portferryd", entry)
            if not first:
                self.assertRegex(entry.get("DURATION_USEC", ""), r"^[0-9]+$", entry)
                self.assertIn(entry.get("PHASE_OLD"), handover.names, entry)
            # Where a marker told of the handover, the name has to be asked for.
            if handover.role == "destination" or entry is entries[-1]:
                self.assertEqual(entry.get("DOMAIN"), guest.name, entry)
            first = False

    def entries(self, host, message):
        """A host's journal entries with a MESSAGE_ID, since the test began."""
        return [entry for entry in host.journal(MESSAGE_ID=MESSAGE[message])
                if int(entry["__REALTIME_TIMESTAMP"]) * 1000 >= self.began]

    def warnings(self, host, since=None):
        """What the daemon and the hook of a host warned about."""
        since = self.began if since is None else since
        return [entry for entry in host.journal()
                if int(entry["__REALTIME_TIMESTAMP"]) * 1000 >= since
                and int(entry.get("PRIORITY", 6)) <= 4
                and entry.get("SYSLOG_IDENTIFIER", "").startswith("portferry")]

    def assert_no_warnings(self, *hosts):
        for host in hosts:
            self.assertEqual([entry["MESSAGE"] for entry in self.warnings(host)], [], host.name)

    def assert_network_kept(self, watch, pause=None):
        """Not away for longer than the guest itself, and nothing came twice."""
        wake_up = watch.taps.wake_up_ms(pause.end) if pause else 0.0
        for result in watch.results:
            self.assertGreater(len(result.replies), 0)
            self.assertLess(
                added_silence_ms(result, pause, wake_up, watch.deliveries), MAX_SILENCE_MS,
                f"gaps {result.gaps(200)}, pause {pause}, wake-up {wake_up} ms")
            self.assertEqual(doubles(result, pause), [], "(request, ms after the pause's start)")

    def carry(self, guest, *extra, both=True, live=True):
        """Migrates a guest to the other host, and asserts that all is well.

        `both`: portferry runs at the source too.
        """
        source, destination = self.where(guest)
        since = time.time_ns()
        before = self.ports(guest)
        expected = self.followed(before, source, destination)
        with Watch(self.lab, guest, destination) as watch:
            migration = self.lab.migrate(guest, source, destination, *extra, live=live,
                                         timeout=PATIENCE * 2)
            self.assertTrue(migration.ok, migration.error)
            self.assert_settled(guest, destination, expected)
        pause = self.lab.guest_pause(guest, source, destination, since)
        self.assert_network_kept(watch, pause)
        there = self.assert_handover(destination, guest, "destination", "done", since)
        if both:
            here = self.assert_handover(source, guest, "source", "done", since)
            self.assertEqual(here.id, there.id)
        return migration


# --- portferryd in the lab ---

# Where a sanitized daemon leaves its reports: among the host's logs.
SANITIZER_LOG = "/var/log/sanitizer"


def start_portferryd(host, *arguments, timeout=PATIENCE):
    """Starts the daemon and waits until it has its databases and libvirt."""
    options = f"log_path={SANITIZER_LOG}"
    environment = {name: os.environ.get(name, "") + ":" + options
                   for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")}
    if "PORTFERRY_PRELOAD" in os.environ:  # see ThreadedMeson in tests/run
        environment.update(LD_PRELOAD=os.environ["PORTFERRY_PRELOAD"], G_SLICE="always-malloc")
    environment.update(points.ENVIRONMENT)
    service = host.start_portferryd(arguments, env=environment, timeout=timeout)
    wait_connected(host)
    return service


def wait_connected(host):
    """Until the daemon of a host is connected to all that it works with."""
    def connected():
        return (manager_property(host, "LibvirtState") == "connected"
                and manager_property(host, "NorthboundState") in ("synced", "none")
                and all(manager_property(host, name) == "synced"
                        for name in ("SouthboundState", "SwitchState")))
    wait_until(connected, f"portferryd's connections on {host.name}", PATIENCE)


def restart_portferryd(host, *arguments):
    if "portferryd" in host.services:
        host.stop_portferryd()
    return start_portferryd(host, *arguments)


# --- the tests' program ---

def thorough(test):
    """Marks a test that is only run when it is asked for, because it takes its time."""
    test.thorough = True
    return test


class TapResult(unittest.TestResult):
    """Tells results as they come, in the Test Anything Protocol."""

    def __init__(self, stream):
        super().__init__()
        self._stream = stream
        self._count = 0
        self._began = 0.0

    def _say(self, line):
        print(line, file=self._stream, flush=True)

    def _result(self, word, test, comment=""):
        self._count += 1
        name = test_name(test)
        self._say(f"{word} {self._count} - {name}{comment}")
        self._say(f"# {name}: {time.monotonic() - self._began:.1f} s")

    def _explain(self, error):
        text = "".join(traceback.format_exception(*error))
        if isinstance(error[1], CommandError):
            text += error[1].result.stdout or ""
        for line in text.splitlines():
            self._say(f"# {line}")

    def startTest(self, test):
        super().startTest(test)
        self._began = time.monotonic()

    def addSuccess(self, test):
        super().addSuccess(test)
        self._result("ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._result("not ok", test)
        self._explain(err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._result("not ok", test)
        self._explain(err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._result("ok", test, f" # SKIP {reason}")

    def plan(self):
        self._say(f"1..{self._count}")


def test_name(test):
    """CLASS.TEST, without the word that every name begins with."""
    end = re.match(r"^(tearDownClass) \(.*\.(\w+)\)$", test.id())
    if end:
        return f"{end.group(2)}.{end.group(1)}"
    parts = test.id().split(".")[-2:]
    return ".".join(part.removeprefix("test_") for part in parts)


def is_thorough(test):
    return getattr(getattr(test, test._testMethodName), "thorough", False)


def _flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flatten(test)
        else:
            yield test


def main():
    """Runs the tests of the module that is the program."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--list", action="store_true", help="print the tests' names")
    parser.add_argument("--thorough", action="store_true",
                        help="with those that are left out because they take their time")
    parser.add_argument("tests", nargs="*", metavar="CLASS[.TEST]", help="run only these")
    options = parser.parse_args()

    loader = unittest.TestLoader()
    tests = list(_flatten(loader.loadTestsFromModule(sys.modules["__main__"])))
    usual = [test for test in tests if options.thorough or not is_thorough(test)]
    if not options.tests:
        tests = usual
    else:
        tests = [test for test in tests
                 if test_name(test) in options.tests
                 or (test in usual and test_name(test).split(".")[0] in options.tests)]
        if not tests:
            parser.error("no such test")
    if options.list:
        for test in tests:
            print(test_name(test))
        return
    if os.geteuid() != 0:
        sys.exit("the lab needs root")

    def on_signal(_number, _frame):
        # Anything else would be taken for the failure of one test.
        raise KeyboardInterrupt
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    result = TapResult(sys.stdout)
    classes = {type(test) for test in tests}
    try:
        unittest.TestSuite(tests).run(result)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        for one in classes:
            one.take_down()
    result.plan()
    sys.exit(0 if result.wasSuccessful() else 1)
