#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ways in which virsh migrates that do not look alike to hooks and listeners."""

import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import Nic  # noqa: E402
from lab.scenario import (  # noqa: E402
    CMS_IDS, PATIENCE, LabCase, handovers, main)


class Variants(LabCase):

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.guest = cls.add_guest("vm1", [cls.add_nic("ls0", "10.0.0.11/24")], dirty_kib=30000)

    def test_tunnelled(self):
        self.carry(self.guest, "--p2p", "--tunnelled")

    def test_not_live(self):
        """The guest stands still for the whole copy."""
        self.carry(self.guest, live=False)

    def test_timeout_suspend(self):
        """virsh suspends a guest whose copy does not end; libvirt resumes it all the same."""
        self.carry(self.guest, "--bandwidth", "16", "--timeout", "1", "--timeout-suspend")

    def test_persistent(self):
        """The definition goes with the guest, and is gone from the source."""
        for _ in range(2):
            source, destination = self.where(self.guest)
            self.carry(self.guest, "--persistent", "--undefinesource")
            self.assertIn(self.guest.name,
                          destination.virsh("list", "--name", "--persistent").split())
            self.assertNotIn(self.guest.name, source.virsh("list", "--all", "--name").split())

    def test_suspend(self):
        """It arrives, and does not run."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.lab.migrate(self.guest, source, destination, "--suspend")
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, destination, before, running=False)
        destination.virsh("resume", self.guest.name)
        self.assert_settled(self.guest, destination, before)
        self.assert_handover(destination, self.guest, "destination", "done")
        self.assert_handover(source, self.guest, "source", "done")

    def test_other_interface(self):
        """--xml gives it another port, which waits for it in another network."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        (old,) = self.guest.nics
        self.lab.add_switch("ls1")
        # The client's address there is another one, for the guest remembers the old one's MAC.
        port = self.lab.add_nic("ls1", "10.0.0.11/25").port
        self.lab.nbctl("lsp-set-addresses", port, f"{old.mac} {old.address}", "--",
                       "set", "Logical_Switch_Port", port,
                       *[f'external_ids:"{key}"="{value}"' for key, value in CMS_IDS.items()])
        new = Nic(old.mac, ip="10.0.0.11/25", port=port)
        xml = source.virsh("dumpxml", self.guest.name, "--migratable")
        source.write("/run/lab/other.xml", xml.replace(old.port, new.port))
        self.guest.nics = [new]
        expected = self.ports(self.guest)
        migration = self.lab.migrate(self.guest, source, destination, "--xml", "/run/lab/other.xml",
                                     timeout=PATIENCE)
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, destination, expected)
        # Nobody has the old one any more, and back again it is the other way round.
        self.guest.nics = [old]
        self.assertEqual(self.lab.binding(old.port)["chassis"], None)
        xml = destination.virsh("dumpxml", self.guest.name, "--migratable")
        destination.write("/run/lab/other.xml", xml.replace(new.port, old.port))
        migration = self.lab.migrate(self.guest, destination, source, "--xml", "/run/lab/other.xml",
                                     timeout=PATIENCE)
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, source, before)


class Storage(LabCase):
    """A guest with a disk of its host's."""

    DISK = "/var/lib/libvirt/images/vm1.raw"

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        for host in cls.lab.hypervisors:
            host.shell(f"mkdir -p $(dirname {cls.DISK}); truncate -s 64M {cls.DISK}")
        cls.guest = cls.add_guest("vm1", [cls.add_nic("ls0", "10.0.0.11/24")], disk=cls.DISK)

    def test_copied(self):
        for _ in range(2):
            self.carry(self.guest, "--copy-storage-all")


class Offline(LabCase):
    """A domain that is shut off: only its definition moves."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.lab.define_guest(cls.lab.hypervisors[0], "vm1", [cls.nic])
        # The switch is known on both hosts, so that only the guest's own port is missing.
        cls.add_guest("beside", [cls.add_nic("ls0", "10.0.0.12/24")])

    def migrate(self):
        source, destination = self.lab.hypervisors
        if self.guest.name not in source.virsh("list", "--all", "--name").split():
            source, destination = destination, source
        before = self.ports(self.guest)
        migration = self.lab.migrate(self.guest, source, destination, "--offline", "--persistent",
                                     "--undefinesource", live=False)
        return source, destination, before, migration

    def test_offline(self):
        for _ in range(2):
            source, destination, before, migration = self.migrate()
            self.assertTrue(migration.ok, migration.error)
            self.assert_settled(self.guest, None, before)
            self.assertIn(self.guest.name, destination.virsh("list", "--all", "--name").split())
            self.assertEqual(handovers(destination, self.guest.uuid), [])
            self.assert_no_warnings(source, destination)
        # It can be started where it has come to.
        self.lab.boot(self.guest, destination)
        self.assert_settled(self.guest, destination, before)
        destination.virsh("destroy", self.guest.name)

    def test_pinned(self):
        """A pin is its CMS's business; it does not follow a guest that does not run."""
        source = next(host for host in self.lab.hypervisors
                      if self.guest.name in host.virsh("list", "--all", "--name").split())
        self.lab.set_requested_chassis(self.nic.port, source.chassis)
        self.add_repair(lambda: self.lab.set_requested_chassis(self.nic.port))
        source, destination, before, refused = self.migrate()
        self.assertFalse(refused.ok)
        self.assertIn("its requested-chassis is another host: set it to this one first",
                      refused.error)
        self.assert_settled(self.guest, None, before)
        self.lab.set_requested_chassis(self.nic.port, destination.chassis)
        _source, _destination, before, migration = self.migrate()
        self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, None, before)


class AtOnce(LabCase):
    """The same domain is migrated twice at once; libvirt refuses one of them."""

    HYPERVISORS = 3

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.guest = cls.add_guest("vm1", [cls.add_nic("ls0", "10.0.0.11/24")], dirty_kib=30000)

    def where(self, guest):
        hosts = [host for host in self.lab.hypervisors
                 if guest.name in host.virsh("list", "--name").split()]
        return [*hosts, *[host for host in self.lab.hypervisors if host not in hosts]]

    def test_twice_at_once(self):
        for how in ([], ["--p2p"]):
            began = time.time_ns()
            source, destination, other = self.where(self.guest)
            before = self.ports(self.guest)
            migration = self.start_slow_migration(self.guest, source, destination)
            self.wait_for_phase(destination, self.guest, "ready", since=began)
            self.wait_for_phase(source, self.guest, "watch", since=began)
            self.wait_for_copy(self.guest, source)
            for third in (other, destination):
                refused = self.lab.start_migration(self.guest, source, third, *how)
                time.sleep(1)
                # It may also have been made to wait for the other one.
                refused.process.terminate()
                self.assertFalse(refused.wait(PATIENCE).ok)
                self.wait_for_phase(destination, self.guest, "ready", since=began)
            self.release(self.guest, source)
            ended = migration.wait(PATIENCE)
            self.assertTrue(ended.ok, ended.error)
            self.assert_settled(self.guest, destination, before)
            self.assert_handover(destination, self.guest, "destination", "done", began)
            self.assert_handover(source, self.guest, "source", "done", began)
            self.assertEqual(handovers(other, self.guest.uuid, began), [])


if __name__ == "__main__":
    main()
