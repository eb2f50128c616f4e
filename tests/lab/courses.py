# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ways that a migration goes, driven from outside: by libvirt, whatever the daemons do meanwhile.

A daemon may die, and a database may be away, at any moment of them. So what a way waits for in a
daemon is only waited for as long as nobody has disturbed it.
"""

import signal
import time

from . import scenario
from .hosts import CommandError, wait_until
from .lab import (
    RESUMED, RESUMED_MIGRATED, RESUMED_POSTCOPY, SUSPENDED, SUSPENDED_MIGRATED)

# Long enough for what a daemon does by itself, on a busy machine.
SOON = 20


class Course:
    """One migration, on its way."""

    def __init__(self, case, guest, source, destination, disturbed):
        self.case = case
        self.guest = guest
        self.source = source
        self.destination = destination
        self.before = case.ports(guest)
        self.disturbed = disturbed
        self.migration = None
        self.result = None
        self.gone = []
        """Hosts whose daemon the way itself has taken away."""

    @property
    def _over(self):
        return self.migration.process.poll() is not None

    def start(self, *extra, **options):
        self.migration = self.case.start_slow_migration(
            self.guest, self.source, self.destination, *extra, **options)

    def await_copy(self):
        """Until memory is copied, or libvirt has given up before."""
        def copies():
            info = self.source.virsh("domjobinfo", self.guest.name, check=False)
            return ("Outgoing migration" in info and "Memory processed" in info) or self._over
        wait_until(copies, f"the copy of {self.guest.name}", scenario.PATIENCE, interval=0.05)

    def await_phase(self, host, *phases):
        """Until the daemon of a host shows one of the phases, or that is not to be expected."""
        def seen():
            if self.disturbed():
                return True
            try:
                found = scenario.handovers(host, self.guest.uuid, self.migration.started)
            except CommandError:
                return False
            return found and found[-1].phase in phases
        wait_until(seen, f"phase {' or '.join(phases)} on {host.name}", SOON, interval=0.05)

    def begin(self, *extra):
        """A migration that copies, and that both daemons know of."""
        self.start(*extra)
        self.await_copy()
        self.await_phase(self.destination, "ready")
        self.await_phase(self.source, "watch")

    def take_daemon(self, host):
        self.gone.append(host)
        if "portferryd" in host.services:
            host.stop_portferryd(signal.SIGKILL)

    def finish(self):
        """Lets it come to its end, if it still goes on."""
        for command in (("migrate-setmaxdowntime", self.guest.name, "2000"),
                        ("migrate-setspeed", self.guest.name, "10000")):
            self.source.virsh(*command, check=False)
        self.result = self.migration.wait(scenario.PATIENCE * 2)

    def cancel(self):
        self.source.virsh("domjobabort", self.guest.name, check=False)
        self.result = self.migration.wait(scenario.PATIENCE)


def plain(course):
    course.begin()
    course.finish()


def cancelled(course):
    course.begin()
    course.cancel()


def suspended(course):
    """The guest stops while it is copied, and goes on: libvirt itself resumes none in a copy."""
    course.begin()
    course.source.virsh("suspend", course.guest.name)
    course.await_phase(course.destination, "open")
    course.source.virsh("qemu-monitor-command", "--hmp", course.guest.name, "cont")
    course.await_phase(course.source, "watch")
    course.finish()


def postcopy(course):
    """The guest runs at the destination long before the source has ended."""
    _postcopy(course)


def _postcopy(course, then=lambda: None):
    course.start("--postcopy", "--postcopy-bandwidth", "4")
    course.await_copy()
    course.await_phase(course.destination, "ready")
    course.source.virsh("migrate-postcopy", course.guest.name)
    wait_until(lambda: [event for event in course.case.lab.events(course.destination,
                                                                 course.migration.started)
                        if event.is_lifecycle(RESUMED, RESUMED_POSTCOPY)],
               "post-copy", scenario.PATIENCE)
    course.await_phase(course.destination, "active")
    then()
    course.source.virsh("migrate-setspeed", course.guest.name, "10000", "--postcopy")
    course.result = course.migration.wait(scenario.PATIENCE * 2)


def unmarked(course):
    """In post-copy, somebody takes portferry's traces from the row."""
    before = course.case.followed(course.before, course.source, course.destination)

    def clean():
        for port, row in before.items():
            now = course.case.lab.nb_port(port)
            remove = [["--", "remove", "Logical_Switch_Port", port, name, key]
                      for name in ("options", "external_ids")
                      for key in now[name] if key not in row[name]]
            course.case.lab.nbctl(*sum(remove, [])[1:])
    _postcopy(course, clean)


def paused(course):
    """The guest does not run, neither before nor afterwards."""
    course.source.virsh("suspend", course.guest.name)
    course.begin()
    course.finish()
    course.await_phase(course.destination, "active", "done")
    course.destination.virsh("resume", course.guest.name)


def source_silent(course):
    """There is no daemon at the source any more."""
    course.begin()
    course.take_daemon(course.source)
    course.finish()


def destination_silent(course):
    course.begin()
    course.take_daemon(course.destination)
    course.finish()


def destination_silent_cancelled(course):
    course.begin()
    course.take_daemon(course.destination)
    course.cancel()


def premature(course):
    """An operator activates the destination, and then the migration is cancelled."""
    course.begin()
    if not course.disturbed():
        handover = course.case.handover_of(course.source, course.guest, course.migration.started)
        scenario.override(course.source, handover, "Activate")
    course.await_phase(course.source, "finish", "done")
    course.await_phase(course.destination, "done", "undone")
    course.cancel()


def lose_finish_reply(course, after=lambda: None):
    """The destination resumes the guest; the source hears nothing of it, and resumes it too.

    `after`: what is waited for between the two.
    """
    case, guest, source, destination = (
        course.case, course.guest, course.source, course.destination)
    # libvirt's own words take one way, the guest's memory another.
    for number, host in enumerate((source, destination), 1):
        host.shell(f"ip addr add 172.32.0.{number}/24 dev mgmt0")
        case.add_repair(lambda host=host, number=number: host.shell(
            f"ip addr del 172.32.0.{number}/24 dev mgmt0"))
    since = time.time_ns()
    course.migration = case.lab.start_migration(
        guest, source, destination, "--bandwidth", "2", "--p2p", "--migrateuri",
        "tcp://172.32.0.2", live=False)
    case.wait_for_event(source, guest, SUSPENDED, SUSPENDED_MIGRATED, since)
    course.await_phase(source, "open")
    course.await_phase(destination, "open")
    destination.shell(f"ip route add blackhole {source.mgmt_ip}/32")
    source.virsh("migrate-setspeed", guest.name, "10000")
    case.wait_for_event(destination, guest, RESUMED, RESUMED_MIGRATED, since)
    after()
    # The source's libvirtd need not wait for its keepalive to be told.
    source.run(["ss", "-K", "dst", destination.mgmt_ip, "dport", "=", "16509"])
    case.wait_for_event(source, guest, RESUMED, RESUMED_MIGRATED, since)
    destination.shell(f"ip route del blackhole {source.mgmt_ip}/32")
    course.result = course.migration.wait(scenario.PATIENCE)


def twice(course):
    """... which has the port, until somebody ends the guest at the destination."""
    lose_finish_reply(course)
    course.await_phase(course.destination, "drain")
    wait_until(course.disturbed, "the destination to say that the guest runs twice", SOON)
    course.destination.virsh("destroy", course.guest.name)
