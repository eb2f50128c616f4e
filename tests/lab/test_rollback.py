#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Migrations that fail: the port stays with the guest, and the next one succeeds."""

import os
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import artifacts  # noqa: E402
from lab.scenario import (  # noqa: E402
    MESSAGE, PATIENCE, LabCase, Watch, handovers, main)


class Rollback(LabCase):
    """One guest that changes its memory all the time, with two ports."""

    @classmethod
    def furnish(cls):
        nics = []
        for number in range(2):
            cls.lab.add_switch(f"ls{number}")
            nics.append(cls.add_nic(f"ls{number}", f"10.0.{number}.11/24"))
        cls.guest = cls.add_guest("vm1", nics, dirty_kib=30000)

    def fail_and_retry(self, fail):
        """`fail` makes one migration fail; the next one follows at once.

        Then the same way again, and this time nothing follows.
        """
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        since = time.time_ns()
        with Watch(self.lab, self.guest, destination) as watch:
            fail(source, destination)
            self.assert_settled(self.guest, source, before)
        self.assert_network_kept(watch)
        for host, role in ((source, "source"), (destination, "destination")):
            self.assert_handover(host, self.guest, role, "undone", since)

        since = time.time_ns()
        fail(source, destination)
        retry = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE * 2)
        self.assertTrue(retry.ok, retry.error)
        self.assert_settled(self.guest, destination, self.followed(before, source, destination))
        for host, role in ((source, "source"), (destination, "destination")):
            undone, done = handovers(host, self.guest.uuid, since)
            self.check_handover(host, self.guest, undone, role, "undone")
            self.check_handover(host, self.guest, done, role, "done")

    def refuse_at_gate(self, source, destination):
        resume = self.suspend_service(destination, "ovn-controller")
        try:
            refused = self.lab.migrate(self.guest, source, destination)
        finally:
            resume()
        self.assertFalse(refused.ok)
        self.assertIn("not ready within 1.0 s", refused.error)
        self.assertIn("ovn-controller has not bound it here", refused.error)
        self.assertIn(self.guest.name, refused.error)
        self.assertEqual(len([entry for entry in destination.journal(
            MESSAGE_ID=MESSAGE["MIGRATION_REFUSED"], DOMAIN_UUID=self.guest.uuid)
            if int(entry["__REALTIME_TIMESTAMP"]) * 1000 >= refused.started]), 1)

    def break_qemu(self, source, destination):
        # QEMU itself starts, and then finds no kernel. libvirt has plugged the
        # taps by then.
        kernel = artifacts.kernel()
        destination.run(["mount", "--bind", "/dev/null", kernel])
        try:
            failed = self.lab.migrate(self.guest, source, destination)
        finally:
            destination.run(["umount", kernel])
        self.assertFalse(failed.ok)
        self.assertNotIn("portferry", failed.error)

    def cancel(self, source, destination):
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_copy(self.guest, source)
        source.virsh("domjobabort", self.guest.name)
        cancelled = migration.wait(PATIENCE)
        self.assertFalse(cancelled.ok)
        self.assertNotIn("portferry", cancelled.error)

    def kill_qemu(self, source, destination):
        """The destination's QEMU dies in the middle of the copy."""
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_copy(self.guest, source)
        destination.virsh("destroy", self.guest.name)
        failed = migration.wait(PATIENCE)
        self.assertFalse(failed.ok)

    def kill_client(self, source, destination):
        """Who drives the migration goes away: virsh, and with it its connections."""
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_copy(self.guest, source)
        os.killpg(migration.process.pid, signal.SIGKILL)
        self.assertFalse(migration.wait(PATIENCE).ok)

    def test_refused_at_gate(self):
        for host in self.lab.hypervisors:
            self.configure(host, ready_timeout=1)
        self.fail_and_retry(self.refuse_at_gate)

    def test_qemu_does_not_start(self):
        self.fail_and_retry(self.break_qemu)

    def test_cancelled(self):
        self.fail_and_retry(self.cancel)

    def test_qemu_dies(self):
        self.fail_and_retry(self.kill_qemu)

    def test_client_dies(self):
        self.fail_and_retry(self.kill_client)

    def test_pin_stays(self):
        """A pin to the source is there again after a failure, and follows the retry."""
        source, destination = self.where(self.guest)
        self.pin(self.guest, source.chassis)
        self.fail_and_retry(self.cancel)
        for row in self.ports(self.guest).values():
            self.assertEqual(row["options"]["requested-chassis"], destination.chassis)


if __name__ == "__main__":
    main()
