#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""portferryd dies in a handover that a CMS runs, of which there is no journal anywhere."""

import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import courses, wait_until  # noqa: E402
from lab.cms import CmsCase  # noqa: E402
from lab.points import Point, is_cms, known  # noqa: E402
from lab.scenario import PATIENCE, handovers, main, start_portferryd, thorough  # noqa: E402

# The way that comes by a state, for each daemon that may.
STATES = {
    courses.plain: {
        "destination": "cms-lists cms-binding cms-ready cms-running cms-activate",
        "source": "cms-watch cms-pause cms-left",
    },
    courses.suspended: {"destination": "cms-open", "source": "cms-close"},
    courses.cancelled: {"destination": "cms-rollback", "source": "cms-shut cms-back"},
}
SAMPLE = {"destination cms-lists", "destination cms-activate", "source cms-pause",
          "source cms-back"}


class Points(CmsCase):
    """No lab: whether the walks come by all points, but the end, at which nothing is left to do."""

    def setUp(self):
        pass

    def test_complete(self):
        walked = {f"enter-{name}" for roles in STATES.values() for names in roles.values()
                  for name in names.split()}
        self.assertEqual(walked, {point for point in known()
                                  if is_cms(point) and point != "enter-unfinished"})


class AndBack(CmsCase):
    """Started again at once, as a service manager does."""

    @classmethod
    def furnish(cls):
        super().furnish()
        cls.settle_for(incoming_timeout=4, cms_timeout=20)

    def revive(self, host):
        if "portferryd" in host.services and not host.services["portferryd"].running:
            host.services.pop("portferryd")
            host.notifications.close()
        if "portferryd" not in host.services:
            start_portferryd(host)

    def start_slow_migration(self, guest, source, destination, *extra, **options):
        """Begun by the CMS, which is when the source takes notice."""
        began = time.time_ns()
        self.cms_begins(source, destination)
        migration = super().start_slow_migration(guest, source, destination, *extra, **options)
        migration.started = began
        return migration

    def walk(self, role, name, way):
        source, destination = self.where(self.guest)
        host = source if role == "source" else destination
        self.add_repair(lambda: self.revive(host))
        point = Point(host, f"enter-{name}", lambda: self.revive(host))
        self.add_repair(point.forget)
        course = courses.Course(self, self.guest, source, destination, lambda: point.reached)
        way(course)
        moved = way is not courses.cancelled
        self.assertEqual(course.result.ok, moved, course.result.error)
        here = destination if moved else source
        if moved:
            # Whoever died, the ports are open where the guest runs before the CMS says anything.
            wait_until(lambda: all(self.is_open()), "the ports to be open", PATIENCE)
        self.cms_ends(here)
        point.end(PATIENCE)
        self.assert_settled(self.guest, here, self.ports(self.guest))
        for one in (source, destination):
            for handover in handovers(one, self.guest.uuid, course.migration.started):
                self.assertEqual(handover.phase, "done" if moved else "undone",
                                 f"{one.name}: {handover}")


def add_walks(case):
    for way, roles in STATES.items():
        for role, names in roles.items():
            for name in names.split():
                def test(self, role=role, name=name, way=way):
                    self.walk(role, name, way)
                test.__doc__ = f"{name} at the {role}"
                if f"{role} {name}" not in SAMPLE:
                    test = thorough(test)
                setattr(case, f"test_{role}_{name.replace('-', '_')}", test)


add_walks(AndBack)

if __name__ == "__main__":
    main()
