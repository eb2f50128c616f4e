#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Daemons that die, restart or start before what they need."""

import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import artifacts, wait_until  # noqa: E402
from lab.scenario import (  # noqa: E402
    MESSAGE, PATIENCE, LabCase, Watch, handovers, main, start_portferryd, wait_connected)


class Killed(LabCase):
    """portferryd dies without a word in the middle of a handover."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)

    def kill_portferryd(self, host):
        host.stop_portferryd(signal.SIGKILL)

        def restore():
            if "portferryd" not in host.services:
                start_portferryd(host)
        self.add_repair(restore)

    def assert_recovered(self, host, role, end, handover_id):
        """A new daemon has taken up the old one's handover, and ended it."""
        found = handovers(host, self.guest.uuid, self.began)
        self.assertEqual([(one.id, one.role, one.phase) for one in found],
                         [(handover_id, role, end)])
        self.assertEqual(len(host.journal(MESSAGE_ID=MESSAGE["HANDOVER_RECOVERED"],
                                          HANDOVER=handover_id)), 1)

    def start(self):
        """A migration whose memory is being copied."""
        source, destination = self.where(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        there = self.wait_for_phase(destination, self.guest, "ready")
        self.wait_for_phase(source, self.guest, "watch")
        self.wait_for_copy(self.guest, source)
        return source, destination, migration, there.id

    def test_destination_while_copying(self):
        before = self.ports(self.guest)
        source, destination, migration, handover_id = self.start()
        self.kill_portferryd(destination)
        start_portferryd(destination)
        self.wait_for_phase(destination, self.guest, "binding", "ready", since=0)
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        self.assert_settled(self.guest, destination, before)
        self.assert_recovered(destination, "destination", "done", handover_id)

    def test_destination_until_the_end(self):
        """The guest arrives while nobody watches."""
        before = self.ports(self.guest)
        source, destination, migration, handover_id = self.start()
        self.kill_portferryd(destination)
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        # The source opened the port, and has let go of it with its guest.
        self.lab.wait_for_ping(self.nic)
        start_portferryd(destination)
        self.assert_settled(self.guest, destination, before)
        self.assert_recovered(destination, "destination", "done", handover_id)

    def test_destination_then_cancelled(self):
        """The migration is cancelled while nobody watches at the destination."""
        before = self.ports(self.guest)
        # For so long QEMU may still be about to be started there.
        self.configure(self.where(self.guest)[1], incoming_timeout=5)
        source, destination, migration, handover_id = self.start()
        self.kill_portferryd(destination)
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        start_portferryd(destination)
        self.assert_settled(self.guest, source, before)
        self.assert_recovered(destination, "destination", "undone", handover_id)

    def test_source_while_copying(self):
        before = self.ports(self.guest)
        source, destination, migration, handover_id = self.start()
        self.kill_portferryd(source)
        start_portferryd(source)
        self.wait_for_phase(source, self.guest, "watch", since=0)
        with Watch(self.lab, self.guest, destination) as watch:
            self.release(self.guest, source)
            ended = migration.wait(PATIENCE)
            self.assertTrue(ended.ok, ended.error)
            self.assert_settled(self.guest, destination, before)
        self.assert_network_kept(
            watch, self.lab.guest_pause(self.guest, source, destination, migration.started))
        self.assert_recovered(source, "source", "done", handover_id)

    def test_source_while_opening(self):
        """At the moment when the port is opened at the destination."""
        before = self.ports(self.guest)
        source, destination, migration, handover_id = self.start()
        self.release(self.guest, source)
        wait_until(
            lambda: "additional-chassis-activated" in self.lab.binding(self.nic.port)["options"]
            or self.lab.binding(self.nic.port)["chassis"] == destination.chassis,
            "the port to be open", PATIENCE, interval=0.002)
        self.kill_portferryd(source)
        start_portferryd(source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        self.assert_settled(self.guest, destination, before)
        done = self.handover_of(destination, self.guest)
        self.assertEqual((done.id, done.phase), (handover_id, "done"))
        for handover in handovers(source, self.guest.uuid, self.began):
            self.assertEqual((handover.id, handover.phase), (handover_id, "done"))

    def test_source_until_the_end(self):
        before = self.ports(self.guest)
        source, destination, migration, handover_id = self.start()
        self.kill_portferryd(source)
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        start_portferryd(source)
        self.assert_settled(self.guest, destination, before)
        self.assert_recovered(source, "source", "done", handover_id)

    def test_both(self):
        before = self.ports(self.guest)
        source, destination, migration, handover_id = self.start()
        for host in (source, destination):
            self.kill_portferryd(host)
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        # OVN itself has opened the port, by the guest's RARP.
        self.lab.wait_for_ping(self.nic)
        for host in (source, destination):
            start_portferryd(host)
        self.assert_settled(self.guest, destination, before)
        self.assert_recovered(source, "source", "done", handover_id)
        self.assert_recovered(destination, "destination", "done", handover_id)

    def test_both_then_cancelled(self):
        before = self.ports(self.guest)
        for host in self.lab.hypervisors:
            self.configure(host, incoming_timeout=5)
        source, destination, migration, handover_id = self.start()
        for host in (source, destination):
            self.kill_portferryd(host)
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        for host in (destination, source):
            start_portferryd(host)
        self.assert_settled(self.guest, source, before)
        self.assert_recovered(destination, "destination", "undone", handover_id)


class Restarted(LabCase):
    """What portferryd works with is restarted."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic])

    def restart_libvirtd(self, host):
        if host.services["libvirtd"].running:
            host.restart_service("libvirtd")
        else:
            service = host.services["libvirtd"]
            host.start_service("libvirtd", service.command, **service.options)
        # The lab's own log of events has lost its connection as well.
        events = host.services.pop("events")
        wait_until(lambda: not events.running, "the end of the log of events", PATIENCE)
        host.start_service("events", events.command)
        wait_connected(host)

    def test_libvirtd(self):
        for host in self.lab.hypervisors:
            self.restart_libvirtd(host)
            self.assertEqual(
                [entry["MESSAGE_ID"] for entry in self.warnings(host)], [MESSAGE["LIBVIRT_LOST"]])
        self.began = time.time_ns()
        for _ in range(2):
            self.carry(self.guest)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_central(self):
        """Both databases, while nothing goes on."""
        for name in ("nb", "sb"):
            self.lab.central.restart_service(name)
        for host in self.lab.hypervisors:
            for name in ("northbound", "southbound"):
                wait_until(
                    lambda host=host, name=name: [
                        entry for entry in self.entries(host, "DATABASE_LOST")
                        if entry["MESSAGE"].startswith(name)],
                    f"a word about the {name} database on {host.name}", PATIENCE)
            wait_connected(host)
        self.lab.nbctl("--wait=hv", "--timeout=60", "sync", timeout=90)
        self.began = time.time_ns()
        self.carry(self.guest)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_bus(self):
        """dbus-daemon, while nothing goes on."""
        for host in self.lab.hypervisors:
            libvirtd = host.services["libvirtd"]
            host.restart_service("dbus")
            # It does not outlive its bus: that is how GDBus does it.
            wait_until(lambda service=libvirtd: not service.running, "libvirtd's end", PATIENCE)
            self.restart_libvirtd(host)
            self.assertEqual(len(self.entries(host, "BUS_LOST")), 1)
        self.began = time.time_ns()
        self.carry(self.guest)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_daemon(self):
        """portferryd itself, by the book: it says what it does, and ends well."""
        for host in self.lab.hypervisors:
            self.assertEqual(host.stop_portferryd(), 0)
            self.assertTrue(host.notifications.has("STOPPING=1"))
            start_portferryd(host)
        self.carry(self.guest)

    def test_second_daemon(self):
        """A second one on the same host says so and ends; the first one goes on."""
        host = self.lab.hypervisors[0]
        answer = host.run([artifacts.BUILD / "daemon" / "portferryd", "--ovn-nb",
                           self.lab.nb_remote], check=False, timeout=PATIENCE)
        self.assertEqual(answer.returncode, 1)
        self.assertEqual(len(self.entries(host, "ANOTHER_DAEMON")), 1)
        self.assertTrue(host.services["portferryd"].running)
        self.carry(self.guest)


class FirstOfAll(LabCase):
    """portferryd is there before libvirtd, Open vSwitch and OVN."""

    PORTFERRY = False

    # What runs on the hosts, in the order in which it is started.
    CENTRAL = ["nb", "sb", "northd"]
    CHASSIS = ["ovsdb", "vswitchd", "ovn-controller"]

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")

    def stop(self, host, names):
        """Stops services; returns what starts them again, one after the other."""
        services = [(name, host.services[name]) for name in names]
        for name in reversed(names):
            host.stop_service(name)

        def start():
            for name, service in services:
                host.start_service(name, service.command, **service.options)
                yield name
        return start()

    def test_first_of_all(self):
        lab = self.lab
        starts = [self.stop(lab.central, self.CENTRAL)]
        for host in lab.hypervisors:
            starts.append(self.stop(host, [*self.CHASSIS, "libvirtd", "events"]))
            host.run(["rm", "-f", "/run/libvirt/libvirt-sock"])
        for host in lab.hypervisors:
            host.install_hook()
            # Returns when it has said READY.
            host.start_portferryd()
        for host in lab.hypervisors:
            self.assertTrue(host.services["portferryd"].running)
        for start in starts:
            for _name in start:
                pass
        for host in lab.hypervisors:
            # The tunnels' address went with the old switch.
            host.shell(f"""
                ethtool -K br-phys tx off >/dev/null
                ip addr replace {host.phys_ip}/24 dev br-phys
                ip link set br-phys up
            """)
        for host in lab.hypervisors:
            wait_connected(host)
            self.assertTrue(host.services["portferryd"].running)
        guest = self.add_guest("vm1", [self.nic])
        type(self).guest = guest
        self.began = time.time_ns()
        for _ in range(2):
            self.carry(guest)


if __name__ == "__main__":
    main()
