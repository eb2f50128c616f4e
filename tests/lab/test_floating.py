#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floating IPs: the world outside follows the guest as its neighbours do."""

import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import wait_until  # noqa: E402
from lab.lab import RESUMED, RESUMED_POSTCOPY  # noqa: E402
from lab.outside import Outside  # noqa: E402
from lab.scenario import (  # noqa: E402
    MARGIN, MAX_SILENCE_MS, PATIENCE, LabCase, Watch, added_silence_ms, main)


class Announcements:
    """Counts on the network outside who says that a MAC is there."""

    def __init__(self, outside, mac):
        self._host = outside.lab.underlay
        self._file = f"/var/log/announcements-{self._host.next_number()}.pcap"
        self._process = self._host.popen(
            ["tcpdump", "-i", "phys", "-nn", "-U", "-Z", "root", "-w", self._file,
             "arp", "and", "ether", "src", mac],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = self._host.logs / self._file.rpartition("/")[2]
        wait_until(lambda: path.exists() and path.stat().st_size >= 24, "tcpdump")

    def count(self):
        output = self._host.run(["tcpdump", "-nn", "-r", self._file]).stdout
        return len(output.splitlines())

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=10)
        return self.count()


class Floating(LabCase):
    """A guest with a floating IP of its own MAC, and one behind the gateway."""

    DISTRIBUTED, CENTRAL = "198.51.100.11", "198.51.100.12"
    # OVN itself says it once or twice, beginning a second after the collapse.
    ANNOUNCEMENTS = 4

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.outside = Outside(cls.lab)
        cls.outside.connect("ls0", "10.0.0.1/24")
        cls.guest, nic = cls.add_routed_guest("vm1", "10.0.0.11/24")
        cls.port = nic.port
        cls.mac = cls.outside.add_floating_ip(nic, cls.DISTRIBUTED, distributed=True)
        cls.central, nic = cls.add_routed_guest("vm2", "10.0.0.12/24")
        cls.outside.add_floating_ip(nic, cls.CENTRAL, distributed=False)

    @classmethod
    def add_routed_guest(cls, name, ip):
        nic = cls.add_nic("ls0", ip)
        nic.gateway = "10.0.0.1"
        return cls.add_guest(name, [nic], dirty_kib=30000), nic

    def setUp(self):
        super().setUp()
        host, _other = self.where(self.guest)
        self.assert_outside(host)

    # --- what the world outside sees ---

    def assert_outside(self, host):
        """The floating IP answers, and where the guest is."""
        self.outside.probe(self.DISTRIBUTED, rate=20).wait_for_replies(20).stop()
        self.assertEqual(self.outside.host_of(self.mac), host.name)

    def carry_outside(self, guest, address, **options):
        """Migrates a guest under a probe from outside."""
        source, destination = self.where(guest)
        since = time.time_ns()
        probe = self.outside.probe(address, duration=PATIENCE * 4).wait_for_replies()
        time.sleep(MARGIN)
        self.carry(guest, **options)
        time.sleep(MARGIN)
        result = probe.stop()
        pause = self.lab.guest_pause(guest, source, destination, since)
        self.assertGreater(len(result.replies), 0)
        self.assertLess(added_silence_ms(result, pause, 0), MAX_SILENCE_MS,
                        f"gaps {result.gaps(200)}, pause {pause}")
        self.assertEqual(result.doubled, 0)
        return source, destination

    def list_is(self, *hosts):
        wanted = ",".join(host.chassis for host in hosts)
        return self.lab.nb_port(self.port)["options"].get("requested-chassis") == wanted

    def served_by(self, host):
        return self.lab.binding(self.port)["chassis"] == host.chassis

    # --- tests ---

    def test_there_and_back(self):
        for _ in range(2):
            announcements = Announcements(self.outside, self.mac)
            _source, destination = self.carry_outside(self.guest, self.DISTRIBUTED)
            self.assertGreaterEqual(announcements.stop(), self.ANNOUNCEMENTS)
            self.assert_outside(destination)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_central(self):
        """What does not live where the guest lives needs nothing."""
        for _ in range(2):
            self.carry_outside(self.central, self.CENTRAL)
        self.assert_no_warnings(*self.lab.hypervisors)

    def test_source_absent(self):
        """The destination alone does it, a little later."""
        source, _destination = self.where(self.guest)
        self.stop_portferryd(source)
        _source, destination = self.carry_outside(self.guest, self.DISTRIBUTED, both=False)
        self.assert_outside(destination)

    def test_cancelled_before_the_pause(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_copy(self.guest, source)
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_settled(self.guest, source, before)
        self.assert_outside(source)
        for host, role in ((source, "source"), (destination, "destination")):
            self.assert_handover(host, self.guest, role, "undone")
        self.carry_outside(self.guest, self.DISTRIBUTED)

    def test_cancelled_after_the_pause(self):
        """The floating IP is at the destination already, and comes back."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        # Not live: the guest stands still while its memory is copied.
        migration = self.lab.start_migration(self.guest, source, destination,
                                             "--bandwidth", 4, live=False)
        wait_until(lambda: self.served_by(destination), "the turn", PATIENCE)
        self.assertTrue(self.list_is(destination, source))
        wait_until(lambda: self.outside.host_of(self.mac) == destination.name,
                   "the announcement", PATIENCE)
        announcements = Announcements(self.outside, self.mac)
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_settled(self.guest, source, before)
        self.assert_outside(source)
        wait_until(lambda: announcements.count() >= self.ANNOUNCEMENTS, "announcements", PATIENCE)
        announcements.stop()
        for host, role in ((source, "source"), (destination, "destination")):
            self.assert_handover(host, self.guest, role, "undone")
        self.carry_outside(self.guest, self.DISTRIBUTED)

    def test_northd_stands_still(self):
        """Nobody waits for northd, which takes the longer the larger the network is."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
        self.wait_for_copy(self.guest, source)
        resume = self.suspend_service(self.lab.central, "northd")
        source.virsh("suspend", self.guest.name)
        wait_until(lambda: self.served_by(destination), "the turn", PATIENCE)
        wait_until(lambda: self.outside.host_of(self.mac) == destination.name,
                   "the announcement", PATIENCE)
        resume()
        self.release(self.guest, source)
        done = migration.wait(PATIENCE)
        self.assertTrue(done.ok, done.error)
        self.assert_settled(self.guest, destination, self.followed(before, source, destination))
        self.assert_outside(destination)

    def test_post_copy(self):
        """The guest is served at its new host long before its memory has followed."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        with Watch(self.lab, self.guest, destination) as watch:
            migration = self.start_slow_migration(
                self.guest, source, destination, "--postcopy", "--postcopy-bandwidth", "4")
            self.wait_for_phase(destination, self.guest, "ready", since=migration.started)
            self.wait_for_copy(self.guest, source)
            source.virsh("migrate-postcopy", self.guest.name)
            wait_until(lambda: [event for event in self.lab.events(destination, migration.started)
                                if event.is_lifecycle(RESUMED, RESUMED_POSTCOPY)],
                       "post-copy", PATIENCE)
            wait_until(lambda: self.served_by(destination), "the turn", PATIENCE)
            self.assert_outside(destination)
            self.assertIsNone(migration.process.poll(), "the source has ended already")
            source.virsh("migrate-setspeed", self.guest.name, "10000", "--postcopy")
            done = migration.wait(PATIENCE * 2)
            self.assertTrue(done.ok, done.error)
            self.assert_settled(self.guest, destination, before)
        self.assertEqual([result.doubled for result in watch.results], [0])
        self.assert_outside(destination)


if __name__ == "__main__":
    main()
