#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The gate: held by an operator, and as the domain's own metadata say."""

import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.hosts import wait_until  # noqa: E402
from lab.scenario import (  # noqa: E402
    MESSAGE, PATIENCE, LabCase, handovers, main, override)

URI = "urn:portferry:domain:1"


class Gate(LabCase):

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic])

    def hold(self, destination):
        """Holds the next handover as soon as it is there."""
        def found():
            new = [h for h in handovers(destination, self.guest.uuid, self.began) if not h.ended]
            return new and override(destination, new[0], "Hold").returncode == 0 and new[0]
        return wait_until(found, "a handover to hold", PATIENCE, interval=0.01)

    def start_held(self, **settings):
        source, destination = self.where(self.guest)
        # Each limit but the hold's own is shorter than what the test takes.
        for host in (source, destination):
            self.configure(host, ready_timeout=2, incoming_timeout=3, **settings)
        migration = self.lab.start_migration(self.guest, source, destination)
        return source, destination, migration, self.hold(destination)

    def test_released(self):
        before = self.ports(self.guest)
        source, destination, migration, held = self.start_held(hold_timeout=60)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for host in (source, destination):
                handover = self.handover_of(host, self.guest)
                self.assertIn(handover.phase, ("binding", "ready", "watch"), handover.phases)
            self.assert_answers(self.guest)
        self.assertEqual(self.handover_of(destination, self.guest).phase, "ready")
        answer = override(destination, held, "Release")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        result = migration.wait(PATIENCE)
        self.assertTrue(result.ok, result.error)
        self.assert_settled(self.guest, destination, self.followed(before, source, destination))
        self.assert_handover(destination, self.guest, "destination", "done")
        self.assert_handover(source, self.guest, "source", "done")
        for message in ("OPERATOR_HOLD", "OPERATOR_RELEASE"):
            self.assertTrue(destination.journal(MESSAGE_ID=MESSAGE[message], HANDOVER=held.id))

    def test_held_too_long(self):
        source, _destination = self.where(self.guest)
        before = self.ports(self.guest)
        source, destination, migration, _held = self.start_held(hold_timeout=6)
        result = migration.wait(PATIENCE)
        self.assertFalse(result.ok)
        self.assertIn("held it for longer than hold-timeout", result.error)
        self.assert_settled(self.guest, source, before)
        self.assert_handover(destination, self.guest, "destination", "undone")

    def test_off(self):
        """A domain that is not to be carried; then one with nonsense in its metadata."""
        source, destination = self.where(self.guest)
        source.virsh("metadata", self.guest.name, "--uri", URI, "--key", "portferry", "--live",
                     "--set", "<policy off='yes'/>")
        self.addCleanup(lambda: [host.virsh("metadata", self.guest.name, "--uri", URI, "--live",
                                            "--remove", check=False)
                                 for host in (source, destination)])
        migration = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE)
        self.assertTrue(migration.ok, migration.error)
        self.assertEqual(handovers(destination, self.guest.uuid, self.began), [])
        self.lab.wait_bound(self.nic.port, destination)

        destination.virsh("metadata", self.guest.name, "--uri", URI, "--key", "portferry",
                          "--live", "--set", "<policy reddy-timeout='5'/>")
        migration = self.lab.migrate(self.guest, destination, source, timeout=PATIENCE)
        self.assertFalse(migration.ok)
        self.assertIn("there are off, ready-timeout", migration.error)
        self.assert_answers(self.guest)


if __name__ == "__main__":
    main()
