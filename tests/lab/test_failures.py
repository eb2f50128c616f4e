#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Migrations that somebody or something else ends: before the guest's pause, in it, after it."""

import os
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import courses, wait_until  # noqa: E402
from lab.faults import killed, libvirtd_killed  # noqa: E402
from lab.lab import (  # noqa: E402
    RESUMED, RESUMED_MIGRATED, RESUMED_POSTCOPY, SUSPENDED, SUSPENDED_MIGRATED)
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, handovers, main, thorough)


class Terminal:
    """virsh takes no SIGINT for an answer: it reads Ctrl-C itself, from a terminal."""

    def __enter__(self):
        self._outside, self.inside = os.openpty()
        return self

    def __exit__(self, *_error):
        os.close(self._outside)
        os.close(self.inside)

    def interrupt(self):
        os.write(self._outside, b"\x03")


OTHER_HOOK = "/etc/libvirt/hooks/qemu.d/zz-other"


class Failures(LabCase):
    """One guest that changes its memory all the time."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)
        cls.settle_for(incoming_timeout=5)

    def assert_ended(self, source, destination, end, since):
        for host, role in ((source, "source"), (destination, "destination")):
            for handover in handovers(host, self.guest.uuid, since):
                self.check_handover(host, self.guest, handover, role, end)

    def assert_stays(self, source, destination, before, since, running=True):
        self.assert_settled(self.guest, source, before, running)
        self.assert_ended(source, destination, "undone", since)

    def assert_lost(self, source, destination, before, end):
        """The guest is no more; and can be started again where it is defined."""
        self.assert_settled(self.guest, None, before)
        for host in (source, destination):
            for handover in handovers(host, self.guest.uuid, self.began):
                self.assertIn(handover.phase, end, handover)
        home = self.lab.hypervisors[0]
        self.lab.boot(self.guest, home)
        self.assert_settled(self.guest, home, before)


class Before(Failures):
    """Nothing has been copied yet, or not all."""

    def break_hook(self, host, operation):
        """A hook of somebody else's, that runs after portferry's."""
        host.write(OTHER_HOOK, f"#!/bin/sh\n[ $2 != {operation} ] || exit 1\n", 0o755)

    def mend_hook(self, host):
        pathlib.Path(host.path(OTHER_HOOK)).unlink(missing_ok=True)

    def fail_and_retry(self, fail):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        for again in (False, True):
            since = time.time_ns()
            fail(source, destination)
            if not again:
                self.assert_stays(source, destination, before, since)
        # At once: nobody waits for a time to be over.
        retry = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE)
        self.assertTrue(retry.ok, retry.error)
        self.assert_settled(self.guest, destination, before)

    def refused_by_other_hook(self, operation):
        def fail(source, destination):
            self.break_hook(destination, operation)
            failed = self.lab.migrate(self.guest, source, destination)
            self.mend_hook(destination)
            self.assertFalse(failed.ok)
            self.assertIn("zz-other", failed.error)
        self.fail_and_retry(fail)

    def test_other_hook_migrate(self):
        """Nothing whatever tells of this failure."""
        self.refused_by_other_hook("migrate")

    def test_retry_at_once(self):
        """The retry itself is what tells that the one before is over."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        for host in self.lab.hypervisors:
            self.configure(host, incoming_timeout=300)
        for fails in (True, True, False):
            if fails:
                self.break_hook(destination, "migrate")
            migration = self.lab.migrate(self.guest, source, destination)
            self.mend_hook(destination)
            self.assertEqual(migration.ok, not fails, migration.error)
            self.assertNotIn("portferry:", migration.error)
        self.assert_settled(self.guest, destination, before)
        self.assertEqual([one.phase for one in handovers(destination, self.guest.uuid, self.began)],
                         ["undone", "undone", "done"])

    def test_libvirtd_killed_in_hook(self):
        """What libvirt had plugged, and then forgot, does not stay in the switch."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        for host in self.lab.hypervisors:
            self.configure(host, incoming_timeout=5, teardown_timeout=2)
        destination.write(OTHER_HOOK, "#!/bin/sh\n[ $2 != started ] || sleep 20\n", 0o755)
        migration = self.lab.start_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready")
        restart = libvirtd_killed("destination")(self, source, destination)
        self.mend_hook(destination)
        restart()
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_stays(source, destination, before, self.began)
        # A libvirtd that has been killed a moment later still knows of it, and does it itself.
        self.assertLessEqual(len(self.entries(destination, "LEFT_BEHIND")), 1)

    def test_switch_away_at_rollback(self):
        """libvirt can't unplug anything, and all is over before the switch's database is back."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        for host in self.lab.hypervisors:
            self.configure(host, teardown_timeout=2)
        migration = self.start(source, destination)
        restart = killed("ovsdb", "destination")(self, source, destination)
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        for host in (source, destination):
            self.wait_for_phase(host, self.guest, "undone")
        restart()
        self.assert_stays(source, destination, before, self.began)

    def test_controller_dead_at_rollback(self):
        """The destination's ovn-controller dies, and the interface goes before it is back."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start(source, destination)
        restart = killed("ovn-controller", "destination")(self, source, destination)
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        for host in (source, destination):
            self.wait_for_phase(host, self.guest, "rollback")
        restart()
        self.assert_answers(self.guest)

        def told():
            found = [self.handover_of(host, self.guest) for host in (source, destination)]
            return all(one.ended or "clear additional_chassis" in one.waiting for one in found)
        wait_until(told, "what to do", PATIENCE, interval=0.2)
        self.assertEqual(self.lab.binding(self.nic.port)["chassis"], source.chassis)
        self.lab.sbctl("clear", "Port_Binding", self.nic.port, "additional_chassis",
                       "additional_encap")
        self.assert_stays(source, destination, before, self.began)

    @thorough
    def test_other_hook_prepare(self):
        self.refused_by_other_hook("prepare")

    @thorough
    def test_other_hook_start(self):
        self.refused_by_other_hook("start")

    def test_other_hook_started(self):
        self.refused_by_other_hook("started")

    @thorough
    def test_name_clash(self):
        """Another domain of that name: libvirt looks for it when the hook has run already."""
        def fail(source, destination):
            home = destination is self.lab.hypervisors[0]
            if home:
                destination.virsh("undefine", self.guest.name)
            other = self.lab.define_guest(destination, self.guest.name, [])
            failed = self.lab.migrate(self.guest, source, destination)
            destination.virsh("undefine", other.uuid)
            if home:
                destination.write("/run/lab/again.xml", self.guest.xml())
                destination.virsh("define", "/run/lab/again.xml")
            self.assertFalse(failed.ok)
            self.assertIn("already exists", failed.error)
        self.fail_and_retry(fail)

    def start(self, source, destination, **options):
        migration = self.start_slow_migration(self.guest, source, destination, **options)
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_phase(source, self.guest, "watch", since=migration.started)
        self.wait_for_copy(self.guest, source)
        return migration

    @thorough
    def test_interrupted(self):
        """Ctrl-C."""
        def fail(source, destination):
            with Terminal() as terminal:
                migration = self.start(source, destination, stdin=terminal.inside)
                terminal.interrupt()
                self.assertFalse(migration.wait(PATIENCE).ok)
        self.fail_and_retry(fail)

    @thorough
    def test_destination_qemu_killed(self):
        def fail(source, destination):
            migration = self.start(source, destination)
            self.kill_qemu(destination, self.guest)
            self.assertFalse(migration.wait(PATIENCE).ok)
        self.fail_and_retry(fail)

    def test_source_qemu_killed(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start(source, destination)
        self.kill_qemu(source, self.guest)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_lost(source, destination, before, {"undone"})


class InThePause(Failures):
    """Without --live the guest stands still for the whole copy: time to do something."""

    def start(self, *extra, **options):
        source, destination = self.where(self.guest)
        since = time.time_ns()
        migration = self.lab.start_migration(self.guest, source, destination, "--bandwidth", "2",
                                             *extra, live=False, **options)
        self.wait_for_event(source, self.guest, SUSPENDED, SUSPENDED_MIGRATED, since)
        self.wait_for_phase(source, self.guest, "open", since=since)
        self.wait_for_phase(destination, self.guest, "open", since=since)
        return source, destination, migration

    def finish_copy(self, source):
        source.virsh("migrate-setspeed", self.guest.name, "10000")

    def assert_failed(self, migration, source, destination, before):
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_stays(source, destination, before, self.began)

    def test_cancelled(self):
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        source.virsh("domjobabort", self.guest.name)
        self.assert_failed(migration, source, destination, before)

    @thorough
    def test_interrupted(self):
        before = self.ports(self.guest)
        with Terminal() as terminal:
            source, destination, migration = self.start(stdin=terminal.inside)
            terminal.interrupt()
            self.assert_failed(migration, source, destination, before)

    @thorough
    def test_client_killed(self):
        """libvirt gives the migration up by itself, and lets the guest go on."""
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        os.killpg(migration.process.pid, signal.SIGKILL)
        self.assert_failed(migration, source, destination, before)

    def test_client_killed_before_finish(self):
        """All is copied, and nobody says so: the guest stays paused, and nobody tells."""
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        os.killpg(migration.process.pid, signal.SIGSTOP)
        self.finish_copy(source)
        wait_until(lambda: "Unbounded" not in source.virsh("domjobinfo", self.guest.name)
                   or "Completed" in source.virsh("domjobinfo", self.guest.name),
                   "the end of the copy", PATIENCE, interval=0.1)
        time.sleep(1)
        os.killpg(migration.process.pid, signal.SIGKILL)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_stays(source, destination, before, self.began, running=False)
        source.virsh("resume", self.guest.name)
        self.assert_settled(self.guest, source, before)

    @thorough
    def test_destination_qemu_killed(self):
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        self.kill_qemu(destination, self.guest)
        self.assert_failed(migration, source, destination, before)

    def test_source_qemu_killed(self):
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        self.kill_qemu(source, self.guest)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_lost(source, destination, before, {"undone"})

    def lose_finish_reply(self, *phases):
        """The destination is in one of the phases when the source takes its guest back."""
        source, destination = self.where(self.guest)
        course = courses.Course(self, self.guest, source, destination, lambda: False)
        courses.lose_finish_reply(course, lambda: course.await_phase(destination, *phases))
        self.assertFalse(course.result.ok)
        return source, destination

    def run_twice(self, winner, loser):
        """One of the two has the port and keeps it, for as long as nobody has ended the other."""
        def told(host):
            handover = self.handover_of(host, self.guest)
            return not handover.ended and "runs on both hosts" in handover.last_error
        wait_until(lambda: told(winner) and told(loser), "a word about it", PATIENCE, interval=0.2)
        binding = self.lab.binding(self.nic.port)
        self.assertEqual((binding["chassis"], binding["additional"]), (winner.chassis, []))
        self.assert_answers(self.guest)
        loser.virsh("destroy", self.guest.name)

    def test_finish_reply_lost(self):
        """The source has said first where the guest runs: before it was asked to let go."""
        before = self.ports(self.guest)
        for host in self.lab.hypervisors:
            self.configure(host, release_timeout=30, teardown_timeout=2)
        source, destination = self.lose_finish_reply("running")
        self.run_twice(source, destination)
        self.assert_stays(source, destination, before, self.began)

    @thorough
    def test_finish_reply_lost_late(self):
        """The destination has said first where the guest runs, and the source has let go."""
        before = self.ports(self.guest)
        for host in self.lab.hypervisors:
            self.configure(host, release_timeout="0.2", teardown_timeout=2)
        source, destination = self.lose_finish_reply("active")
        self.run_twice(destination, source)
        self.assert_settled(self.guest, destination, before)
        self.assert_ended(source, destination, "done", self.began)


class After(Failures):
    """The guest runs at the destination already."""

    def test_destination_qemu_killed(self):
        before = self.ports(self.guest)
        source, destination = self.where(self.guest)
        migration = self.lab.start_migration(self.guest, source, destination)
        self.wait_for_event(destination, self.guest, RESUMED, RESUMED_MIGRATED, self.began)
        self.kill_qemu(destination, self.guest)
        migration.wait(PATIENCE)
        hosts = self.lab.guest_location(self.guest)
        if hosts == [source]:  # it was killed before libvirt had finished
            self.assert_stays(source, destination, before, self.began)
        else:
            self.assert_lost(source, destination, before, {"done", "undone"})

    def start_postcopy(self):
        source, destination = self.where(self.guest)
        migration = self.start_slow_migration(
            self.guest, source, destination, "--postcopy", "--postcopy-bandwidth", "4")
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_copy(self.guest, source)
        source.virsh("migrate-postcopy", self.guest.name)
        self.wait_for_event(destination, self.guest, RESUMED, RESUMED_POSTCOPY, migration.started)
        return source, destination, migration

    def test_postcopy_source_qemu_killed(self):
        """What is left of the guest is at the destination, and so is its port."""
        before = self.ports(self.guest)
        source, destination, migration = self.start_postcopy()
        self.kill_qemu(source, self.guest)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_settled(self.guest, destination, before, check_guest=False)
        destination.virsh("destroy", self.guest.name)
        self.assert_lost(source, destination, before, {"done"})

    @thorough
    def test_postcopy_destination_qemu_killed(self):
        """Neither half is of any use; the source's waits for somebody to destroy it."""
        before = self.ports(self.guest)
        source, destination, migration = self.start_postcopy()
        self.kill_qemu(destination, self.guest)
        self.assertFalse(migration.wait(PATIENCE).ok)
        source.virsh("destroy", self.guest.name)
        self.assert_lost(source, destination, before, {"done", "undone"})


if __name__ == "__main__":
    main()
