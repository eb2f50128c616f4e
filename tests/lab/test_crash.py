#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""portferryd dies at every point at which that makes a difference, and comes back or doesn't."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import courses  # noqa: E402
from lab.hosts import LabError, wait_until  # noqa: E402
from lab.outside import Outside  # noqa: E402
from lab.points import Point, is_cms, known  # noqa: E402
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, handovers, main, start_portferryd, thorough)

# The way that comes by a point, for each daemon that may. All that the daemon's own list has must
# be here, which Points.complete asserts.
STATES = {
    courses.plain: {
        "destination": "preplug binding ready running collapse active",
        "source": "watch open left clear finish",
    },
    courses.cancelled: {
        "destination": "rollback drain undo",
        "source": "rollback",
    },
    courses.suspended: {"destination": "open", "source": "close"},
    courses.postcopy: {"destination": "ask", "source": "release"},
    courses.source_silent: {"destination": "finish"},
    courses.destination_silent: {"source": "collapse"},
    courses.destination_silent_cancelled: {"source": "undo-wait undo"},
    courses.unmarked: {"source": "orphan"},
}
CHANGES = {
    courses.plain: {"destination": "barrier preplug collapse", "source": "open follow"},
    courses.cancelled: {"destination": "roll-back put-back"},
    courses.suspended: {"source": "close"},
    courses.postcopy: {"destination": "mark", "source": "release"},
    courses.paused: {"destination": "open"},
    courses.source_silent: {"destination": "follow"},
    courses.destination_silent: {"source": "collapse"},
    courses.destination_silent_cancelled: {"source": "roll-back put-back"},
    courses.premature: {"source": "reclaim"},
    courses.twice: {"destination": "twice"},
}
# Those of a guest that has a floating IP.
FLOATING_CHANGES = {
    courses.plain: {"source": "turn"},
    courses.suspended: {"source": "turn-back"},
}
ENDS = {courses.plain: "done", courses.cancelled: "undone"}
STAYS = {courses.cancelled, courses.destination_silent_cancelled, courses.premature,
         courses.twice}


def walks():
    """{(role, point): way}"""
    found = {}
    for way, roles in STATES.items():
        for role, names in roles.items():
            for name in names.split():
                found[role, f"enter-{'src' if role == 'source' else 'dst'}-{name}"] = way
    for way, end in ENDS.items():
        for role in ("source", "destination"):
            found[role, f"enter-{end}"] = way
    for changes in (CHANGES, FLOATING_CHANGES):
        for way, roles in changes.items():
            for role, names in roles.items():
                for name in names.split():
                    found[role, f"sent-{name}"] = way
                    found[role, f"answered-{name}"] = way
    return found


# What is tried even when there is little time.
SAMPLE = {
    "AndBack": ["destination sent-preplug", "destination sent-collapse", "source sent-open",
                "source enter-src-rollback", "source answered-release", "source answered-turn"],
    "AndNotBack": ["destination enter-dst-running", "source enter-src-left"],
    "Both": ["destination enter-dst-collapse"],
}


class Points(LabCase):
    """No lab: whether the walks come by all points."""

    def setUp(self):
        pass

    def test_complete(self):
        # Those of handovers that a CMS runs are test_cms_crash's.
        self.assertEqual({point for _role, point in walks()},
                         {point for point in known() if not is_cms(point)})


class Walk(LabCase):
    """Dies once, and what then becomes of the migration and the handover."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.plain = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)
        outside = Outside(cls.lab)
        outside.connect("ls0", "10.0.0.1/24")
        nic = cls.add_nic("ls0", "10.0.0.12/24")
        outside.add_floating_ip(nic, "198.51.100.12", distributed=True)
        cls.floating = cls.add_guest("vm2", [nic], dirty_kib=30000)
        cls.settle_for(incoming_timeout=4, release_timeout=4, teardown_timeout=3)

    def revive(self, host):
        """Starts a daemon that has died."""
        if "portferryd" in host.services and not host.services["portferryd"].running:
            host.services.pop("portferryd")
            host.notifications.close()
        if "portferryd" not in host.services:
            start_portferryd(host)

    def bury(self, host):
        if "portferryd" in host.services:
            host.services.pop("portferryd").process.wait(PATIENCE)
            host.notifications.close()

    def walk(self, role, name, way):
        turns = name.partition("-")[2] in " ".join(
            names for roles in FLOATING_CHANGES.values() for names in roles.values()).split()
        self.guest = self.floating if turns else self.plain
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        host, other = (source, destination) if role == "source" else (destination, source)
        for one in (source, destination):
            self.add_repair(lambda one=one: self.revive(one))
        point = Point(host, name, lambda: self.on_death(host, other))
        self.add_repair(point.forget)
        course = courses.Course(self, self.guest, source, destination, lambda: point.reached)
        way(course)
        point.end(PATIENCE)
        moved = way not in STAYS
        if moved and not course.result.ok and self.refused_for(host, course, name):
            moved = False
        self.assertEqual(course.result.ok, moved, course.result.error)
        here = destination if moved else source
        expected = self.followed(before, source, destination) if moved else before
        self.then(course, host, here, expected)
        for one in (source, destination):
            self.revive(one)
        self.assert_settled(self.guest, here, expected)
        self.assert_truth(course, way, moved)

    # While libvirt's hook waits for the daemon.
    AT_GATE = {"enter-dst-preplug", "enter-dst-binding", "enter-dst-ready", "sent-preplug",
               "answered-preplug", "sent-barrier", "answered-barrier"}

    def refused_for(self, host, course, name):
        """Whether on-not-ready=refuse has done what it says: nobody is there to open the gate."""
        return (name in self.AT_GATE and host is course.destination
                and "portferryd" not in host.services
                and "portferry: cannot take care of the network" in course.result.error)

    def assert_truth(self, course, way, moved):
        """What is still known of it on the bus is what has happened."""
        for host in (course.source, course.destination):
            if way is courses.premature and host is course.destination:
                continue  # what an operator has said is not libvirt's truth
            for handover in handovers(host, self.guest.uuid, course.migration.started):
                self.assertEqual(handover.phase, "done" if moved else "undone",
                                 f"{host.name}: {handover}")


def add_walks(case):
    for (role, name), way in walks().items():
        def test(self, role=role, name=name, way=way):
            self.walk(role, name, way)
        test.__doc__ = f"{name} at the {role}"
        if f"{role} {name}" not in SAMPLE[case.__name__]:
            test = thorough(test)
        setattr(case, f"test_{role}_{name.replace('-', '_')}", test)
    return case


@add_walks
class AndBack(Walk):
    """Started again at once, as a service manager does."""

    def on_death(self, host, _other):
        self.revive(host)

    def then(self, course, _host, here, expected):
        self.assert_settled(self.guest, here, expected)


@add_walks
class Both(Walk):
    """The other one dies as well; both are started again."""

    def on_death(self, host, other):
        if "portferryd" in other.services:
            other.stop_portferryd(9)
        self.revive(host)
        self.revive(other)

    def then(self, course, _host, here, expected):
        self.assert_settled(self.guest, here, expected)


@add_walks
class AndNotBack(Walk):
    """Nobody starts it again."""

    # Longer than all limits together.
    SETTLES = 25

    def on_death(self, host, _other):
        self.bury(host)

    def then(self, course, host, here, expected):
        """The other one makes it right, or shows that somebody has to help."""
        alive = [one for one in (course.source, course.destination)
                 if one is not host and one not in course.gone]

        if not alive:
            return
        wrong = []

        def right():
            wrong[:] = [text for text in self.complaints(self.guest, here, expected)
                        if " in phase " not in text]
            return not wrong
        try:
            wait_until(right, "the right state", self.SETTLES, interval=0.2)
        except LabError:
            waiting = [(one.role, one.phase, one.waiting) for each in alive
                       for one in handovers(each, self.guest.uuid) if not one.ended]
            self.assertTrue(waiting and all(text for _role, _phase, text in waiting),
                            f"nobody shows that somebody has to help: {wrong}")
            print(f"# {self.id()}: waits for an operator: {waiting}: {wrong}", flush=True)
        else:
            self.assert_answers(self.guest)


if __name__ == "__main__":
    main()
