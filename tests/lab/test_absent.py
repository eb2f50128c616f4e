#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hosts without a daemon, and what the configuration says to that."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.scenario import MESSAGE, LabCase, handovers, main  # noqa: E402


class Absent(LabCase):

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic])

    def test_at_destination(self):
        """The migration goes on with what the network does by itself, and says so once."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.stop_portferryd(destination)
        migration = self.lab.migrate(self.guest, source, destination)
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, destination, before)
        (warning,) = self.warnings(destination)
        self.assertEqual(warning["MESSAGE_ID"], MESSAGE["DAEMON_MISSING"])
        self.assertEqual(warning["DOMAIN"], self.guest.name)
        self.assertEqual(warning["SYSLOG_IDENTIFIER"], "portferry-hook")
        self.assertIn(self.guest.name, warning["MESSAGE"])
        self.assertEqual(handovers(source, self.guest.uuid, self.began), [])
        self.assert_no_warnings(source)

    def test_at_destination_refuse(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.configure(destination, on_daemon_missing="refuse")
        self.stop_portferryd(destination)
        migration = self.lab.migrate(self.guest, source, destination)
        self.assertFalse(migration.ok)
        self.assertIn("portferry: cannot take care of the network", migration.error)
        self.assertIn(self.guest.name, migration.error)
        self.assert_settled(self.guest, source, before)
        self.assertEqual(handovers(source, self.guest.uuid, self.began), [])

    def test_at_source(self):
        """The destination alone makes a correct handover of it."""
        source, destination = self.where(self.guest)
        self.configure(destination, teardown_timeout=1)
        self.stop_portferryd(source)
        self.carry(self.guest, both=False)

    def test_at_source_pinned(self):
        source, destination = self.where(self.guest)
        self.pin(self.guest, source.chassis)
        self.configure(destination, teardown_timeout=1)
        self.stop_portferryd(source)
        self.carry(self.guest, both=False)
        self.assertEqual(self.lab.nb_port(self.nic.port)["options"]["requested-chassis"],
                         destination.chassis)

    def test_at_both(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        for host in (source, destination):
            self.stop_portferryd(host)
        migration = self.lab.migrate(self.guest, source, destination)
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, destination, before)
        self.assertEqual(len(self.entries(destination, "DAEMON_MISSING")), 1)

    def test_proceed_when_not_ready(self):
        """on-not-ready=proceed: the guest moves, and its network follows when it can."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.configure(destination, on_not_ready="proceed", ready_timeout=1)
        resume = self.suspend_service(destination, "ovn-controller")
        migration = self.lab.migrate(self.guest, source, destination)
        resume()
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, destination, before)
        self.assertEqual(len(self.entries(destination, "NOT_READY_IN_TIME")), 1)
        self.assertEqual(self.entries(destination, "MIGRATION_REFUSED"), [])
        self.assert_handover(destination, self.guest, "destination", "done")
        self.assert_handover(source, self.guest, "source", "done")


if __name__ == "__main__":
    main()
