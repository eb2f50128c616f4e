#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every fault in every phase of a migration; when it is over, all is as it must be."""

import hashlib
import pathlib
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import courses  # noqa: E402
from lab.faults import FAULTS, Recoveries  # noqa: E402
from lab.hosts import CommandError, LabError, wait_until  # noqa: E402
from lab.points import Point  # noqa: E402
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, handovers, main, thorough, wait_connected)

# Where a daemon stands still for a moment, so that the fault begins there.
PHASES = {
    "preplug": ("destination", "sent-preplug", courses.plain),
    "gate": ("destination", "enter-dst-binding", courses.plain),
    "copy": ("destination", "enter-dst-ready", courses.plain),
    "pause": ("source", "enter-src-open", courses.plain),
    "arrival": ("destination", "enter-dst-running", courses.plain),
    "collapse": ("destination", "sent-collapse", courses.plain),
    "teardown": ("source", "enter-src-finish", courses.plain),
    "rollback": ("destination", "enter-dst-rollback", courses.cancelled),
}
SAMPLE = {
    "preplug nb-killed", "copy central-cut-off", "pause sb-frozen", "arrival sb-killed",
    "collapse nb-frozen", "rollback destination-ovsdb-killed", "copy destination-libvirtd-killed",
    "gate destination-controller-killed", "arrival source-cut-off-from-central",
}
SEED = "1"


class Faults(LabCase):

    recoveries = Recoveries()

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)
        cls.settle_for(incoming_timeout=10, teardown_timeout=5)

    @classmethod
    def tearDownClass(cls):
        print(f"# {cls.recoveries}", flush=True)
        super().tearDownClass()

    def states(self):
        """{host: state} where libvirt knows the guest."""
        found = {}
        for host in self.lab.hypervisors:
            for state in ("running", "paused"):
                if self.guest.name in host.virsh("list", "--name", f"--state-{state}").split():
                    found[host] = state
        return found

    # How long libvirt may take to make up its mind.
    UNDECIDED_S = 12

    def wait_for_guest(self):
        """The host that the guest has ended up on; it runs there, or is made to."""
        found = {}

        def one():
            found.clear()
            try:
                found.update(self.states())
            except CommandError:
                return False
            return len(found) == 1
        try:
            wait_until(one, "the guest to be on one host", self.UNDECIDED_S, interval=0.3)
        except LabError:
            self.decide(found)
        (host, state), = found.items()
        if state == "paused":
            host.virsh("resume", self.guest.name)
        return host

    def decide(self, found):
        """libvirt itself has lost its way: the guest is on both hosts.

        One of them has the port nevertheless, a running one; and an operator, who is told, ends
        the other one.
        """
        self.assertEqual(len(found), 2, f"the guest is on {found}")
        binding = self.lab.binding(self.nic.port)
        self.assertEqual(binding["additional"], [])
        (right,) = [host for host in found if host.chassis == binding["chassis"]]
        (wrong,) = [host for host in found if host is not right]
        self.assertEqual(found[right], "running", found)
        told = [one.last_error or one.waiting for host in found
                for one in handovers(host, self.guest.uuid) if not one.ended]
        self.assertTrue(any(told), "nobody shows it")
        try:
            wrong.virsh("destroy", self.guest.name)
        except CommandError:
            # A libvirtd that was killed at a bad moment waits for a lock that nobody holds.
            FAULTS["destination-libvirtd-killed"](self, right, wrong)()
            wrong.virsh("destroy", self.guest.name, check=False)
        del found[wrong]

    def strike(self, phase, name):
        role, point_name, way = PHASES[phase]
        seed = f"{SEED} {phase} {name}"
        # As long as a hiccup, or longer than a transaction waits.
        length = random.Random(hashlib.sha256(seed.encode()).digest()).choice([0.5, 2, 7])
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        end = []

        def begin():
            end.append(FAULTS[name](self, source, destination))
            point.go_on()
            time.sleep(length)
            end.append(end[0]())
            end.append(time.monotonic())
        point = Point(source if role == "source" else destination, point_name, begin, how="STOP")
        self.add_repair(point.forget)
        course = courses.Course(self, self.guest, source, destination, lambda: point.reached)
        try:
            way(course)
        except CommandError as error:
            # The way itself asks the libvirt that is away.
            self.assertIn("libvirtd", name, error)
        point.end(PATIENCE)
        if course.result is None:
            course.finish()

        def recover():
            here = self.wait_for_guest()
            expected = self.followed(before, source, here) if here is destination else before
            self.assert_settled(self.guest, here, expected)
        self.recoveries.measure(recover)
        here = self.wait_for_guest()
        for host in self.lab.hypervisors:
            wait_connected(host)
            for handover in handovers(host, self.guest.uuid, self.began):
                self.assertEqual(handover.phase, "done" if here is destination else "undone",
                                 f"{host.name}: {handover}")


for _phase in PHASES:
    for _name in FAULTS:
        def test(self, phase=_phase, name=_name):
            self.strike(phase, name)
        if f"{_phase} {_name}" not in SAMPLE:
            test = thorough(test)
        setattr(Faults, f"test_{_phase}_{_name.replace('-', '_')}", test)
del test


if __name__ == "__main__":
    main()
