#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Handovers that go well, and migrations that are none of portferry's business."""

import json
import pathlib
import sys
import time
import uuid

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import Nic, wait_until  # noqa: E402
from lab.lab import STARTED  # noqa: E402
from lab.scenario import (  # noqa: E402
    MARKER, PATIENCE, LabCase, Watch, handovers, interfaces, main)


class OneNic(LabCase):
    """One guest with one port."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic])

    def test_there_and_back(self):
        for _ in range(2):
            self.carry(self.guest)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_pin_follows(self):
        source, _destination = self.where(self.guest)
        self.pin(self.guest, source.chassis)
        for _ in range(2):
            self.carry(self.guest)
        self.assertEqual(self.lab.nb_port(self.nic.port)["options"]["requested-chassis"],
                         source.chassis)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_pin_by_host_name(self):
        source, _destination = self.where(self.guest)
        self.pin(self.guest, source.name)
        self.carry(self.guest)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_peer_to_peer(self):
        self.carry(self.guest, "--p2p")

    def test_renamed(self):
        """Another name at the destination, and the old one again on the way back."""
        source, destination = self.where(self.guest)
        if source is not self.lab.hypervisors[0]:
            # It is defined there, and no host takes two names for one UUID.
            self.carry(self.guest)
            source, destination = destination, source
            self.began = time.time_ns()
        name = self.guest.name
        self.addCleanup(setattr, self.guest, "name", name)
        before = self.ports(self.guest)
        with Watch(self.lab, self.guest, destination) as watch:
            migration = self.lab.migrate(self.guest, source, destination, "--dname", "other")
            self.assertTrue(migration.ok, migration.error)
            self.guest.name = "other"
            self.assert_settled(self.guest, destination, before)
        self.assertEqual({result.doubled for result in watch.results}, {0})
        self.assert_handover(destination, self.guest, "destination", "done")
        since = time.time_ns()
        migration = self.lab.migrate(self.guest, destination, source, "--dname", name)
        self.assertTrue(migration.ok, migration.error)
        self.guest.name = name
        self.assert_settled(self.guest, source, before)
        self.assert_handover(source, self.guest, "destination", "done", since)

    def test_paused(self):
        """A paused guest is owned by the destination, though it does not run there."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        source.virsh("suspend", self.guest.name)
        migration = self.lab.migrate(self.guest, source, destination)
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, destination, before, running=False)
        destination.virsh("resume", self.guest.name)
        self.assert_settled(self.guest, destination, before)
        self.assert_handover(destination, self.guest, "destination", "done")
        self.assert_handover(source, self.guest, "source", "done")

    def test_one_after_the_other(self):
        """Back again at once, while the way there is still being cleared up."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        for one, other in ((source, destination), (destination, source)):
            migration = self.lab.migrate(self.guest, one, other)
            self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, source, before)
        for host in (source, destination):
            roles = [(handover.role, handover.phase)
                     for handover in handovers(host, self.guest.uuid, self.began)]
            self.assertCountEqual(roles, [("source", "done"), ("destination", "done")])


class TwoNics(LabCase):
    """One guest with ports on two switches."""

    @classmethod
    def furnish(cls):
        nics = []
        for number in range(2):
            cls.lab.add_switch(f"ls{number}")
            nics.append(cls.add_nic(f"ls{number}", f"10.0.{number}.11/24"))
        cls.guest = cls.add_guest("vm1", nics, dirty_kib=30000)

    def transactions(self, since):
        """The transactions that changed ports, as the database file has them.

        Each is {row: columns}.
        """
        path = pathlib.Path(self.lab.central.path("/var/lib/ovn/nb.db"))
        return [record["Logical_Switch_Port"] for record in read_log(path)
                if record.get("_date", 0) * 1_000_000 >= since
                and "Logical_Switch_Port" in record]

    def test_one_handover(self):
        source, destination = self.where(self.guest)
        since = time.time_ns()
        self.carry(self.guest)
        here = self.handover_of(source, self.guest, since)
        self.assertEqual(len(here.ports), 2)
        rows = {row["_uuid"] for row in self.ports(self.guest).values()}
        changes = [{row for row, columns in transaction.items()
                    if row in rows and ("options" in columns or "external_ids" in columns)}
                   for transaction in self.transactions(since)]
        changes = [change for change in changes if change]
        # The pre-plug, the collapse and the end at least.
        self.assertGreaterEqual(len(changes), 3)
        for change in changes:
            self.assertEqual(change, rows)

    def test_marked_alike(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        there = self.wait_for_phase(destination, self.guest, "ready")
        markers = [{key: value for key, value in row["external_ids"].items()
                    if key.startswith(MARKER)} for row in self.ports(self.guest).values()]
        self.assertEqual(markers[0], markers[1])
        self.assertEqual(markers[0]["portferry-handover"], there.id)
        self.assertEqual(markers[0]["portferry-source"], source.chassis)
        self.assertEqual(markers[0]["portferry-destination"], destination.chassis)
        self.assertEqual(markers[0]["portferry-domain"], self.guest.uuid)
        for row in self.ports(self.guest).values():
            self.assertEqual(row["options"]["requested-chassis"],
                             f"{source.chassis},{destination.chassis}")
        here = self.wait_for_phase(source, self.guest, "watch")
        self.assertEqual(here.id, there.id)
        self.wait_for_copy(self.guest, source)
        self.release(self.guest, source)
        done = migration.wait(PATIENCE)
        self.assertTrue(done.ok, done.error)
        self.assert_settled(self.guest, destination, before)
        self.assert_handover(destination, self.guest, "destination", "done")
        self.assert_handover(source, self.guest, "source", "done")


class Crossing(LabCase):
    """Two guests that change places."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.guests = [
            cls.add_guest(f"vm{number}", [cls.add_nic("ls0", f"10.0.0.{number + 10}/24")], host)
            for number, host in enumerate(cls.lab.hypervisors, 1)]

    def test_crossing(self):
        ways = {guest.name: self.where(guest) for guest in self.guests}
        before = {guest.name: self.ports(guest) for guest in self.guests}
        watches = [Watch(self.lab, guest, ways[guest.name][1]) for guest in self.guests]
        with watches[0], watches[1]:
            migrations = [self.lab.start_migration(guest, *ways[guest.name])
                          for guest in self.guests]
            for migration in migrations:
                done = migration.wait(PATIENCE)
                self.assertTrue(done.ok, done.error)
            for guest in self.guests:
                self.assert_settled(guest, ways[guest.name][1], before[guest.name])
        ids = set()
        for guest, watch in zip(self.guests, watches):
            source, destination = ways[guest.name]
            # The other guest is at the same taps: no telling who woke up when.
            pause = self.lab.guest_pause(guest, source, destination, self.began)
            watch.taps.first_reply = None
            self.assert_network_kept(watch, pause)
            ids.add(self.assert_handover(destination, guest, "destination", "done").id)
            ids.add(self.assert_handover(source, guest, "source", "done").id)
        self.assertEqual(len(ids), 2)
        self.assert_no_warnings(*self.lab.hypervisors)


class NotOurs(LabCase):
    """Guests that OVN knows nothing of, in whole or in part."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.bridged = cls.add_guest("bridged", [Nic(cls.lab.new_mac(), kind="bridge")])
        cls.unknown = cls.add_guest("unknown", [Nic(cls.lab.new_mac(), port=str(uuid.uuid4()))])
        cls.mixed = cls.add_guest("mixed", [
            Nic(cls.lab.new_mac(), kind="bridge"), cls.nic,
            Nic(cls.lab.new_mac(), port=str(uuid.uuid4()))])

    HOOK_S = 60

    def migrate_unnoticed(self, guest):
        source, destination = self.where(guest)
        before = self.lab.nbctl("list", "Logical_Switch_Port")
        migration = self.lab.migrate(guest, source, destination)
        self.assertTrue(migration.ok, migration.error)
        prepared = wait_until(
            lambda: [event.time for event in self.lab.events(destination, migration.started)
                     if event.domain == guest.name and event.is_lifecycle(STARTED)],
            "its start")
        # Had the hook waited for anything, it would have been for HOOK_S.
        self.assertLess((prepared[0] - migration.started) / 1e9, self.HOOK_S / 2)
        for host in self.lab.hypervisors:
            self.assertEqual(handovers(host, guest.uuid), [])
            self.assertEqual([entry for entry in host.journal(DOMAIN=guest.name)
                              if int(entry["PRIORITY"]) <= 6], [])
        self.assertEqual(self.lab.nbctl("list", "Logical_Switch_Port"), before)
        self.assertEqual(self.where(guest), (destination, source))
        self.assert_no_warnings(source, destination)

    def setUp(self):
        super().setUp()
        for host in self.lab.hypervisors:
            self.configure(host, preplug_timeout=self.HOOK_S, ready_timeout=self.HOOK_S)

    def test_linux_bridge(self):
        for _ in range(2):
            self.migrate_unnoticed(self.bridged)

    def test_unknown_interface_id(self):
        for _ in range(2):
            self.migrate_unnoticed(self.unknown)
        (port,) = [nic.port for nic in self.unknown.nics]
        host, other = self.where(self.unknown)
        self.assertIn(port, [ids.get("iface-id") for ids in interfaces(host).values()])
        self.assertNotIn(port, [ids.get("iface-id") for ids in interfaces(other).values()])

    def test_mixed(self):
        for _ in range(2):
            self.carry(self.mixed)
        self.assert_no_warnings(*self.lab.hypervisors)


def read_log(path):
    """The records of an OVSDB file: see ovsdb(5), "standalone format"."""
    records = []
    data = path.read_bytes()
    position = 0
    while position < len(data):
        end = data.index(b"\n", position)
        length = int(data[position:end].split()[2])
        records.append(json.loads(data[end + 1:end + 1 + length]))
        position = end + 1 + length
    return records


if __name__ == "__main__":
    main()
