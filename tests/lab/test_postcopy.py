#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Post-copy: the guest runs at the destination long before the source has ended."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import wait_until  # noqa: E402
from lab.lab import RESUMED, RESUMED_POSTCOPY  # noqa: E402
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, Watch, claimants, handovers, main, override)


class PostCopy(LabCase):

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)

    def start(self, source, destination):
        """A migration that is in post-copy, and will be for some seconds."""
        migration = self.start_slow_migration(
            self.guest, source, destination, "--postcopy", "--postcopy-bandwidth", "4")
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_copy(self.guest, source)
        source.virsh("migrate-postcopy", self.guest.name)
        wait_until(lambda: [event for event in self.lab.events(destination, migration.started)
                            if event.is_lifecycle(RESUMED, RESUMED_POSTCOPY)],
                   "post-copy", PATIENCE)
        return migration

    def finish(self, migration, source):
        source.virsh("migrate-setspeed", self.guest.name, "10000", "--postcopy")
        ended = migration.wait(PATIENCE * 2)
        self.assertTrue(ended.ok, ended.error)

    def test_there_and_back(self):
        for _ in range(2):
            source, destination = self.where(self.guest)
            before = self.ports(self.guest)
            with Watch(self.lab, self.guest, destination) as watch:
                migration = self.start(source, destination)
                # Nobody else ends it: QEMU is still there at the source.
                self.wait_for_phase(destination, self.guest, "active", since=migration.started)
                self.assertIsNone(migration.process.poll(), "the source has ended already")
                binding = self.lab.binding(self.nic.port)
                self.assertEqual((binding["chassis"], binding["additional"]),
                                 (destination.chassis, []))
                self.assertEqual(claimants(self.lab, self.nic.port), [destination.name])
                self.finish(migration, source)
                self.assert_settled(self.guest, destination, before)
            # How long the guest waits for its pages is the post-copy's business.
            self.assertEqual([result.doubled for result in watch.results], [0])
            for host, role in ((source, "source"), (destination, "destination")):
                handover = self.assert_handover(host, self.guest, role, "done",
                                                migration.started)
                self.assertIn("release", handover.names)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_source_silent(self):
        """A source that can't be asked to let go of the port is not waited for."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.configure(destination, release_timeout="0.5", teardown_timeout=1)
        self.stop_portferryd(source)
        migration = self.start(source, destination)
        self.wait_for_phase(destination, self.guest, "active", "finish", "done",
                            since=migration.started)
        self.finish(migration, source)
        self.assert_settled(self.guest, destination, before)
        self.assert_handover(destination, self.guest, "destination", "done", migration.started)

    def test_operator_activates(self):
        """An operator who knows that the guest has moved does not wait for a silent source."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.configure(destination, release_timeout=60, teardown_timeout=1)
        self.stop_portferryd(source)
        migration = self.start(source, destination)
        there = self.wait_for_phase(destination, self.guest, "running", since=migration.started)
        answer = override(destination, there, "Activate")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.wait_for_phase(destination, self.guest, "active", "finish", "done",
                            since=migration.started)
        self.finish(migration, source)
        self.assert_settled(self.guest, destination, before)
        self.assert_handover(destination, self.guest, "destination", "done", migration.started)

    def test_broken(self):
        """Post-copy breaks and is taken up again: the guest stays where it runs."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start(source, destination)
        self.wait_for_phase(destination, self.guest, "active", since=migration.started)
        source.virsh("domjobabort", self.guest.name, "--postcopy")
        self.assertFalse(migration.wait(PATIENCE).ok)
        binding = self.lab.binding(self.nic.port)
        self.assertEqual((binding["chassis"], binding["additional"]), (destination.chassis, []))
        resumed = self.lab.start_migration(
            self.guest, source, destination, "--postcopy", "--postcopy-resume",
            "--postcopy-bandwidth", "10000")
        ended = resumed.wait(PATIENCE * 2)
        self.assertTrue(ended.ok, ended.error)
        self.assert_settled(self.guest, destination, before)
        for host in (source, destination):
            (handover,) = handovers(host, self.guest.uuid, self.began)
            self.assertEqual(handover.phase, "done")


if __name__ == "__main__":
    main()
