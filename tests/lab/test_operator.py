#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An operator overrides a handover, over the bus."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.scenario import (  # noqa: E402
    MESSAGE, PATIENCE, LabCase, busctl, main, manager_property, override)


class Operator(LabCase):

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)

    def roll_back(self, at_source):
        """Rolled back in the middle of the copy, then the migration is cancelled."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        there = self.wait_for_phase(destination, self.guest, "ready")
        here = self.wait_for_phase(source, self.guest, "watch")
        self.wait_for_copy(self.guest, source)
        host, handover = (source, here) if at_source else (destination, there)
        count = manager_property(host, "Counters")["handovers-overridden"]
        answer = override(host, handover, "Rollback")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(manager_property(host, "Counters")["handovers-overridden"], count + 1)
        (entry,) = [entry for entry in host.journal(MESSAGE_ID=MESSAGE["OPERATOR_ROLLBACK"],
                                                    HANDOVER=handover.id)]
        self.assertEqual(entry["DOMAIN_UUID"], self.guest.uuid)
        # The other side follows.
        self.wait_for_phase(source, self.guest, "drain", "undo", "undone")
        self.wait_for_phase(destination, self.guest, "drain", "undo", "undone")
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_settled(self.guest, source, before)
        self.assert_handover(destination, self.guest, "destination", "undone")
        self.assert_handover(source, self.guest, "source", "undone")

    def test_rollback_at_destination(self):
        self.roll_back(at_source=False)

    def test_rollback_at_source(self):
        self.roll_back(at_source=True)

    def activate(self, at_source):
        """Activated shortly before the switchover, which then happens."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        there = self.wait_for_phase(destination, self.guest, "ready")
        here = self.wait_for_phase(source, self.guest, "watch")
        self.wait_for_copy(self.guest, source)
        host, handover = (source, here) if at_source else (destination, there)
        answer = override(host, handover, "Activate")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(len(host.journal(MESSAGE_ID=MESSAGE["OPERATOR_ACTIVATE"],
                                          HANDOVER=handover.id)), 1)
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        self.assert_settled(self.guest, destination, before)
        for one in (source, destination):
            self.assertEqual(self.handover_of(one, self.guest).phase, "done")

    def test_activate_at_destination(self):
        self.activate(at_source=False)

    def test_activate_at_source(self):
        self.activate(at_source=True)

    def test_too_late(self):
        """What has ended can't be overridden, and what does not exist neither."""
        source, destination = self.where(self.guest)
        self.carry(self.guest)
        before = self.ports(self.guest)
        for host in (source, destination):
            handover = self.handover_of(host, self.guest)
            counters = manager_property(host, "Counters")
            for method in ("Activate", "Rollback"):
                answer = override(host, handover, method)
                self.assertNotEqual(answer.returncode, 0)
                self.assertIn("phase 'done', in which there is nothing to override",
                              answer.stderr)
            self.assertEqual(manager_property(host, "Counters"), counters)
        self.assertEqual(self.ports(self.guest), before)
        answer = busctl(source, "call", "org.portferry1",
                        "/org/portferry1/handover/0000000000000000", "org.portferry1.Handover",
                        "Rollback", check=False)
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("Unknown object", answer.stderr)


if __name__ == "__main__":
    main()
