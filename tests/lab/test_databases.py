#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""OVN's databases: where they are, when they are away, and who else writes there."""

import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import wait_until  # noqa: E402
from lab.scenario import (  # noqa: E402
    MARKER, PATIENCE, LabCase, Watch, handovers, main, restart_portferryd)


class Databases(LabCase):

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)

    # --- where they are ---

    def use_remotes(self, *arguments):
        """Restarts portferryd everywhere with these options, until the test ends."""
        for host in self.lab.hypervisors:
            self.add_repair(lambda host=host: restart_portferryd(host))
            restart_portferryd(host, *arguments)

    def test_first_remote_refuses(self):
        self.use_remotes("--ovn-nb", f"tcp:{self.lab.central.mgmt_ip}:9,{self.lab.nb_remote}")
        self.carry(self.guest)

    def test_first_remote_dead(self):
        """Nobody has the first address, so nobody refuses it either."""
        self.use_remotes("--ovn-nb", f"tcp:172.30.0.250:6641,{self.lab.nb_remote}",
                         "--ovn-sb", f"tcp:172.30.0.250:6642,{self.lab.sb_remote}")
        self.carry(self.guest)

    def test_unix(self):
        """A socket; and in a list, behind one that does not exist."""
        socket = "/var/log/nb.sock"
        self.lab.central.run(["ovs-appctl", "-t", "/run/ovn/nb.ctl", "ovsdb-server/add-remote",
                              f"punix:{socket}"])
        self.add_repair(lambda: self.lab.central.run(
            ["ovs-appctl", "-t", "/run/ovn/nb.ctl", "ovsdb-server/remove-remote",
             f"punix:{socket}"]))
        # The logs' folder is the only one that the hosts share with the machine.
        for host in self.lab.hypervisors:
            os.link(self.lab.central.logs / "nb.sock", host.logs / "nb.sock")
            self.add_repair(lambda host=host: os.unlink(host.logs / "nb.sock"))
        self.use_remotes("--ovn-nb", f"unix:{socket}")
        self.carry(self.guest)
        self.use_remotes("--ovn-nb", f"unix:/var/log/none.sock,unix:{socket}")
        self.carry(self.guest)

    def test_from_switch(self):
        """Without an option, the host's Open_vSwitch row says it; and may say something else."""
        for host in self.lab.hypervisors:
            host.vsctl("set", "Open_vSwitch", ".",
                       f"external_ids:ovn-nb-remote=\"{self.lab.nb_remote}\"")
            self.add_repair(lambda host=host: host.vsctl(
                "remove", "Open_vSwitch", ".", "external_ids", "ovn-nb-remote"))
        self.use_remotes("--ovn-nb", "")
        self.carry(self.guest)

    # --- when they are away ---

    def start(self):
        source, destination = self.where(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready")
        self.wait_for_phase(source, self.guest, "watch")
        self.wait_for_copy(self.guest, source)
        return source, destination, migration

    def test_northbound_away_at_first(self):
        """No pre-plug, no migration: the guest stays, and the reason is told."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.configure(destination, preplug_timeout=1)
        resume = self.suspend_service(self.lab.central, "nb")
        try:
            refused = self.lab.migrate(self.guest, source, destination)
        finally:
            resume()
        self.assertFalse(refused.ok)
        self.assertIn("northbound database", refused.error)
        self.assert_settled(self.guest, source, before)
        self.began = time.time_ns()
        self.carry(self.guest)

    def test_southbound_away_at_first(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.configure(destination, preplug_timeout=1)
        resume = self.suspend_service(self.lab.central, "sb")
        try:
            refused = self.lab.migrate(self.guest, source, destination)
        finally:
            resume()
        self.assertFalse(refused.ok)
        self.assertIn("portferry", refused.error)
        self.assert_settled(self.guest, source, before)
        self.began = time.time_ns()
        self.carry(self.guest)

    def test_northbound_away_at_switchover(self):
        """The port is opened in the southbound database; the rest is made up for."""
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        with Watch(self.lab, self.guest, destination) as watch:
            resume = self.suspend_service(self.lab.central, "nb")
            self.release(self.guest, source)
            ended = migration.wait(PATIENCE)
            self.assertTrue(ended.ok, ended.error)
            self.assert_answers_at(destination)
            resume()
            self.assert_settled(self.guest, destination, before)
        self.assert_network_kept(
            watch, self.lab.guest_pause(self.guest, source, destination, self.began))
        self.assert_done(source, destination)

    def test_southbound_away_at_switchover(self):
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        resume = self.suspend_service(self.lab.central, "sb")
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        resume()
        self.assert_settled(self.guest, destination, before)
        self.assert_done(source, destination)

    def test_restarted_while_copying(self):
        before = self.ports(self.guest)
        source, destination, migration = self.start()
        for name in ("nb", "sb"):
            self.lab.central.restart_service(name)
        self.lab.nbctl("--wait=hv", "--timeout=60", "sync", timeout=90)
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        self.assert_settled(self.guest, destination, before)
        self.assert_done(source, destination)

    def assert_answers_at(self, host):
        """The guest answers where it is now, whatever the northbound database says."""
        wait_until(lambda: self.guest.name in host.virsh("list", "--name").split(), "the guest")
        probe = self.lab.probe(self.nic, rate=20, duration=PATIENCE, name="check")
        probe.wait_for_replies(PATIENCE).stop()

    def assert_done(self, source, destination):
        for host, role in ((source, "source"), (destination, "destination")):
            (handover,) = handovers(host, self.guest.uuid, self.began)
            self.assertEqual((handover.role, handover.phase), (role, "done"))

    # --- who else writes ---

    def test_cms_writes_beside(self):
        """Other keys of the row may change at any time, and are kept."""
        source, destination, migration = self.start()
        self.lab.nbctl("set", "Logical_Switch_Port", self.nic.port,
                       'external_ids:"neutron:revision_number"="8"', "options:vif-plug-type=x")
        expected = self.ports(self.guest)
        self.add_repair(lambda: self.lab.nbctl(
            "remove", "Logical_Switch_Port", self.nic.port, "options", "vif-plug-type", "--",
            "set", "Logical_Switch_Port", self.nic.port,
            'external_ids:"neutron:revision_number"="7"'))
        for row in expected.values():
            row["options"].pop("requested-chassis")
            row["options"].pop("activation-strategy")
            row["external_ids"] = {key: value for key, value in row["external_ids"].items()
                                   if not key.startswith(MARKER)}
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        row = self.wait_for_settled_row()
        self.assertEqual(row["external_ids"]["neutron:revision_number"], "8")
        self.assertEqual(row["options"], expected[self.nic.port]["options"])
        self.assertEqual(row["external_ids"], expected[self.nic.port]["external_ids"])
        self.assert_done(source, destination)

    def wait_for_settled_row(self):
        def settled():
            row = self.lab.nb_port(self.nic.port)
            return row if not any(key.startswith(MARKER) for key in row["external_ids"]) else None
        return wait_until(settled, "the end of the marker", PATIENCE)

    def test_cms_decides_otherwise(self):
        """A CMS pins the port in the middle of it: its word counts."""
        source, destination, migration = self.start()
        self.lab.nbctl("set", "Logical_Switch_Port", self.nic.port,
                       f"options:requested-chassis={destination.chassis}")
        self.add_repair(lambda: self.lab.set_requested_chassis(self.nic.port))
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        wait_until(lambda: all(handover.ended for host in (source, destination)
                               for handover in handovers(host, self.guest.uuid)),
                   "the end", PATIENCE)
        self.lab.wait_bound(self.nic.port, destination, PATIENCE)
        self.assert_answers(self.guest)

    # --- what the daemon has of them ---

    def test_replicas(self):
        """Of a network with many ports, a daemon is only told of its own.

        What its connections carry is recorded. It gets a southbound remote of
        its own, so that ovn-controller's connection is left out.
        """
        strangers = 300
        arguments = []
        for number in range(strangers):
            arguments += ["--", "lsp-add", "ls0", f"stranger-{number}", "--",
                          "lsp-set-addresses", f"stranger-{number}",
                          f"52:54:00:5d:{number >> 8:02x}:{number & 255:02x}"]
        self.lab.nbctl("--wait=sb", *arguments)

        def remove():
            arguments = []
            for number in range(strangers):
                arguments += ["--", "lsp-del", f"stranger-{number}"]
            self.lab.nbctl(*arguments[1:])
        self.add_repair(remove)
        remote = "ptcp:6643:0.0.0.0"
        control = ["ovs-appctl", "-t", "/run/ovn/sb.ctl"]
        self.lab.central.run([*control, "ovsdb-server/add-remote", remote])
        self.add_repair(
            lambda: self.lab.central.run([*control, "ovsdb-server/remove-remote", remote]))

        source, destination = self.where(self.guest)
        records = {host: Record(host, "tcp port 6641 or tcp port 6643")
                   for host in (source, destination)}
        self.use_remotes("--ovn-sb", f"tcp:{self.lab.central.mgmt_ip}:6643")
        self.carry(self.guest)
        for host, record in records.items():
            data = record.stop()
            self.assertIn(self.nic.port, data, host.name)
            self.assertNotIn("stranger-", data, host.name)

    def test_replicas_would_be_seen(self):
        """The same record, of a connection that carries everything."""
        self.lab.nbctl("lsp-add", "ls0", "stranger-0")
        self.add_repair(lambda: self.lab.nbctl("lsp-del", "stranger-0"))
        host = self.lab.hypervisors[0]
        record = Record(host, "tcp port 6641")
        host.run(["ovn-nbctl", f"--db={self.lab.nb_remote}", "list", "Logical_Switch_Port"])
        self.assertIn("stranger-", record.stop())


class Record:
    """What a host's management network carries, by a filter."""

    def __init__(self, host, what):
        self._host = host
        self._file = f"/var/log/record-{host.next_number()}.pcap"
        self._process = host.popen(
            ["tcpdump", "-i", "mgmt0", "--immediate-mode", "-U", "-Z", "root", "-B", "16384",
             "-s", "0", "-w", self._file, what], stderr=subprocess.DEVNULL)
        wait_until(lambda: host.exists(self._file), "tcpdump")
        wait_until(lambda: os.path.getsize(host.path(self._file)) >= 24, "tcpdump")

    def stop(self):
        """All that was sent, as text."""
        # What was sent last may not be written yet.
        time.sleep(1)
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        output = self._host.run(["tcpdump", "-nn", "-A", "-r", self._file]).stdout
        os.unlink(self._host.path(self._file))
        return output


class ThreeHosts(LabCase):
    """A guest that does not stay where it has come."""

    HYPERVISORS = 3

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic])

    def test_round(self):
        """On and on without a pause: each begins while the last one is cleared up."""
        hosts = self.lab.hypervisors
        before = self.ports(self.guest)
        way = [*hosts, hosts[0]]
        for source, destination in zip(way, way[1:]):
            migration = self.lab.migrate(self.guest, source, destination)
            self.assertTrue(migration.ok, migration.error)
        self.assert_settled(self.guest, hosts[0], before)
        for host in hosts:
            found = handovers(host, self.guest.uuid, self.began)
            self.assertCountEqual([(one.role, one.phase) for one in found],
                                  [("source", "done"), ("destination", "done")])


if __name__ == "__main__":
    main()
