#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""OVN's databases as clusters of three, whose leaders die."""

import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import courses, wait_until  # noqa: E402
from lab.points import Point, known  # noqa: E402
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, Watch, main, restart_portferryd, thorough)

SCHEMAS = {"nb": ("OVN_Northbound", 6641), "sb": ("OVN_Southbound", 6642)}
MEMBERS = 3


class Cluster:
    """Three servers of one database, on the central host, at ports 10000 apart."""

    def __init__(self, lab, name):
        self._lab = lab
        self._host = lab.central
        self.name = name
        self.schema, port = SCHEMAS[name]
        self.ports = [port + 10000 * number for number in range(1, MEMBERS + 1)]
        self.remote = ",".join(f"tcp:{lab.central.mgmt_ip}:{port}" for port in self.ports)
        self.sockets = [f"/run/ovn/{name}{number}.sock" for number in range(MEMBERS)]

    def _service(self, number):
        return f"{self.name}{number}"

    def start(self):
        """Takes over what the single server has."""
        host, first = self._host, None
        host.stop_service(self.name)
        for number, port in enumerate(self.ports):
            file = f"/var/lib/ovn/{self._service(number)}.db"
            address = f"tcp:127.0.0.1:{port + 5000}"
            if first is None:
                host.run(["ovsdb-tool", "create-cluster", file, f"/var/lib/ovn/{self.name}.db",
                          address])
                first = address
            else:
                host.run(["ovsdb-tool", "join-cluster", file, self.schema, address, first])
            socket = self.sockets[number]
            host.start_service(
                self._service(number),
                ["ovsdb-server", file, f"--unixctl=/run/ovn/{self._service(number)}.ctl",
                 "-vconsole:off", f"--log-file=/var/log/ovn/{self._service(number)}.log",
                 f"--remote=punix:{socket}", f"--remote=ptcp:{port}:0.0.0.0"],
                ready=lambda socket=socket: host.listening(socket))
        for number in range(MEMBERS):
            wait_until(lambda number=number: "Status: cluster member" in self.status(number),
                       f"{self._service(number)} to join", PATIENCE)

    def status(self, number):
        return self._host.run(
            ["ovs-appctl", "-t", f"/run/ovn/{self._service(number)}.ctl", "cluster/status",
             self.schema], check=False).stdout

    def leader(self):
        def found():
            return [number for number in range(MEMBERS)
                    if self._service(number) in self._host.services
                    and "Role: leader" in self.status(number)]
        return wait_until(found, f"a leader of {self.name}", PATIENCE)[0]

    def kill(self, number):
        """Returns what starts it again."""
        service = self._host.services[self._service(number)]
        self._host.stop_service(self._service(number), signal.SIGKILL)

        def start():
            if self._service(number) not in self._host.services:
                self._host.start_service(self._service(number), service.command,
                                         **service.options)
                wait_until(lambda: "Status: cluster member" in self.status(number),
                           f"{self._service(number)} to come back", PATIENCE)
        return start


class Leader(LabCase):
    """The leader of one of the databases dies at a moment of a migration."""

    @classmethod
    def furnish(cls):
        cls.clusters = {name: Cluster(cls.lab, name) for name in SCHEMAS}
        for cluster in cls.clusters.values():
            cluster.start()
        remotes = {name: cluster.remote for name, cluster in cls.clusters.items()}
        central = cls.lab.central
        northd = central.services["northd"]
        central.stop_service("northd")
        command = [f"--ovnnb-db={remotes['nb']}" if word.startswith("--ovnnb-db") else
                   f"--ovnsb-db={remotes['sb']}" if word.startswith("--ovnsb-db") else word
                   for word in northd.command]
        central.start_service("northd", command, **northd.options)
        central.sockets = {name: cluster.sockets for name, cluster in cls.clusters.items()}
        cls.lab.forget_databases()
        for host in [cls.lab.client, *cls.lab.hypervisors]:
            host.vsctl("set", "Open_vSwitch", ".", f"external_ids:ovn-remote=\"{remotes['sb']}\"")
        for host in cls.lab.hypervisors:
            # Some of OVN's own clients take their time to find a new leader.
            cls.write_configuration(host, {"ready_timeout": PATIENCE})
            restart_portferryd(host, "--ovn-nb", remotes["nb"])
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)

    def lose_leader(self, name, role, point_name):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        cluster = self.clusters[name]
        starts = []

        def strike():
            starts.append(cluster.kill(cluster.leader()))
            point.go_on()
        point = Point(source if role == "source" else destination, point_name, strike, how="STOP")
        self.add_repair(point.forget)
        course = courses.Course(self, self.guest, source, destination, lambda: point.reached)
        courses.plain(course)
        point.end(PATIENCE)
        # Two of three go on, and nobody waits for the third.
        self.assertTrue(course.result.ok, course.result.error)
        wait_until(lambda: not self.complaints(self.guest, destination, before), "the right state",
                   PATIENCE, interval=0.2)
        starts[0]()
        self.assert_settled(self.guest, destination, before)

    def test_follower_without_quorum(self):
        """Two of three die: nothing can be written, the guest migrates, then it is made up for."""
        for name in SCHEMAS:
            source, destination = self.where(self.guest)
            before = self.ports(self.guest)
            cluster = self.clusters[name]
            course = courses.Course(self, self.guest, source, destination, lambda: False)
            course.begin()
            leader = cluster.leader()
            others = [number for number in range(MEMBERS) if number != leader]
            starts = [cluster.kill(number) for number in (leader, others[0])]
            began = time.monotonic()
            course.finish()
            self.assertTrue(course.result.ok, course.result.error)
            self.assertLess(time.monotonic() - began, PATIENCE)
            for start in starts:
                start()
            self.assert_settled(self.guest, destination, before)
            for host, role in ((source, "source"), (destination, "destination")):
                self.assert_handover(host, self.guest, role, "done", course.migration.started)

    def test_leader_leaves(self):
        """Leadership moves in good order, under the probes."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        course = courses.Course(self, self.guest, source, destination, lambda: False)
        with Watch(self.lab, self.guest, destination) as watch:
            course.begin()
            starts = [self.clusters[name].kill(self.clusters[name].leader()) for name in SCHEMAS]
            course.finish()
            self.assertTrue(course.result.ok, course.result.error)
            self.assert_settled(self.guest, destination, before)
        self.assert_network_kept(watch, self.lab.guest_pause(
            self.guest, source, destination, course.migration.started))
        for start in starts:
            start()


POINTS = {
    "preplug": ("destination", "sent-preplug"),
    "copy": ("destination", "enter-dst-ready"),
    "pause": ("source", "sent-open"),
    "arrival": ("destination", "enter-dst-running"),
    "collapse": ("destination", "sent-collapse"),
    "teardown": ("source", "sent-follow"),
}
for _name in SCHEMAS:
    for _phase, (_role, _point) in POINTS.items():
        def test(self, name=_name, role=_role, point=_point):
            if not known():
                self.skipTest("this build has no crash points")
            self.lose_leader(name, role, point)
        if (_name, _phase) not in {("nb", "collapse"), ("sb", "pause"), ("nb", "preplug")}:
            test = thorough(test)
        setattr(Leader, f"test_{_phase}_{_name}", test)
del test


if __name__ == "__main__":
    main()
