#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A host disappears as a whole in the middle of a copy: every process, and its network."""

import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.faults import give_address  # noqa: E402
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, handovers, main, start_portferryd, thorough)


class Hosts(LabCase):

    WAIT_FOR = "sb"

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)
        cls.settle_for(incoming_timeout=5, teardown_timeout=3)

    def start(self):
        source, destination = self.where(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready")
        self.wait_for_phase(source, self.guest, "watch")
        self.wait_for_copy(self.guest, source)
        return source, destination, migration

    def lose(self, host):
        """From one moment to the next; what is left of the lab knows nothing of the host."""
        host.shell("ip link set mgmt0 down; ip link set phys0 down; kill -9 -1", check=False)
        self.lost = host.services
        host.services = {}
        for service in self.lost.values():
            service.process.wait(PATIENCE)
        host.notifications.close()
        self.lab.hypervisors.remove(host)

    def boot_host(self, host):
        """Its disk is as it was, and nothing else."""
        host.shell("""
            rm -rf /run/ovn/* /run/openvswitch/* /run/libvirt /run/portferry
            rm -rf /run/dbus/* /run/systemd/journal/socket
            mkdir /run/libvirt
            ip link set mgmt0 up; ip link set phys0 up
        """)
        for name in ("journal", "dbus", "ovsdb", "vswitchd", "ovn-controller", "libvirtd"):
            service = self.lost[name]
            host.start_service(name, service.command, **service.options)
            if name == "vswitchd":
                give_address(host)
                # Open vSwitch's own script does this to what is transient.
                for port in host.vsctl("list-ports", "br-int").split():
                    if port.startswith("vnet"):
                        host.vsctl("del-port", "br-int", port)
        host.start_service("events", self.lost["events"].command)
        self.lab.hypervisors.append(host)
        self.lab.hypervisors.sort(key=lambda one: one.name)
        start_portferryd(host)

    def test_destination(self):
        """Somebody cancels the migration, since libvirt would wait for the host for long."""
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        self.lose(destination)
        source.virsh("domjobabort", self.guest.name)
        os.killpg(migration.process.pid, signal.SIGKILL)
        self.assertFalse(migration.wait(PATIENCE).ok)
        # OVN does not know that the host is dead; until somebody says so, that is shown.
        here = self.wait_for_phase(source, self.guest, "rollback")
        self.assertIn("only chassis", here.waiting)
        self.assertEqual(self.lab.binding(self.nic.port)["chassis"], source.chassis)
        self.assert_answers(self.guest)
        self.lab.sbctl("chassis-del", destination.chassis)
        self.assert_settled(self.guest, source, before)
        self.assert_handover(source, self.guest, "source", "undone")
        self.boot_host(destination)
        self.assert_settled(self.guest, source, before)
        self.carry(self.guest)

    @thorough
    def test_source(self):
        """With the guest: somebody starts it where it was to go."""
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        self.lose(source)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.wait_for_phase(destination, self.guest, "undone")
        self.assertEqual(self.ports(self.guest)[self.nic.port]["options"],
                         before[self.nic.port]["options"])
        destination.write("/run/lab/again.xml", self.guest.xml())
        destination.virsh("define", "/run/lab/again.xml")
        self.lab.boot(self.guest, destination)
        self.assert_settled(self.guest, destination, before)
        self.boot_host(source)
        self.assert_settled(self.guest, destination, before)
        self.assertEqual([one.phase for one in handovers(destination, self.guest.uuid)][-1],
                         "undone")


if __name__ == "__main__":
    main()
