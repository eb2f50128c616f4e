#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A CMS that writes the port's row while the guest migrates."""

import pathlib
import random
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import courses, wait_until  # noqa: E402
from lab.scenario import (  # noqa: E402
    CMS_IDS, CMS_OPTIONS, PATIENCE, LabCase, handovers, main)

SEED = 4


class Writer:
    """Changes keys of a row at random, for as long as the block lasts."""

    KEYS = {"options": ["vif-plug-type", "vif-plug-mtu", "hostname"],
            "external_ids": ["neutron:cidrs", "neutron:project_id", "owner"]}

    def __init__(self, lab, port):
        self._lab = lab
        self._port = port
        self._random = random.Random(SEED)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.written = {"options": {}, "external_ids": {}}
        self.count = 0
        self.error = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._over.set()
        self._thread.join()

    def _write(self):
        try:
            while not self._over.is_set():
                self._write_once()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _write_once(self):
        column = self._random.choice(list(self.KEYS))
        key = self._random.choice(self.KEYS[column])
        if self._random.random() < 0.3 and key in self.written[column]:
            self._lab.nbctl("remove", "Logical_Switch_Port", self._port, column, f'"{key}"')
            del self.written[column][key]
        else:
            value = str(self._random.randrange(10 ** 6))
            self._lab.nbctl("set", "Logical_Switch_Port", self._port,
                            f'{column}:"{key}"="{value}"')
            self.written[column][key] = value
        self.count += 1


class Cms(LabCase):

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)
        cls.settle_for(incoming_timeout=5, teardown_timeout=3)

    def course(self):
        source, destination = self.where(self.guest)
        return courses.Course(self, self.guest, source, destination, lambda: False)

    def write_beside(self, way):
        """None of its keys is lost, and none of ours is left."""
        course = self.course()
        with Writer(self.lab, self.nic.port) as writer:
            way(course)
            for host in self.lab.hypervisors:
                wait_until(lambda host=host: handovers(host, self.guest.uuid, self.began)
                           and all(one.ended for one in
                                   handovers(host, self.guest.uuid, self.began)),
                           f"the end on {host.name}", PATIENCE)
        if writer.error:
            raise writer.error
        self.assertGreater(writer.count, 10)
        expected = {self.nic.port: {
            **course.before[self.nic.port],
            "options": {**course.before[self.nic.port]["options"], **writer.written["options"]},
            "external_ids": {**course.before[self.nic.port]["external_ids"],
                             **writer.written["external_ids"]}}}
        here = course.destination if course.result.ok else course.source
        self.assert_settled(self.guest, here, expected)
        for column, keys in writer.written.items():
            for key in keys:
                self.lab.nbctl("remove", "Logical_Switch_Port", self.nic.port, column, f'"{key}"')

    def test_writes_beside(self):
        self.write_beside(courses.plain)

    def test_writes_beside_cancelled(self):
        self.write_beside(courses.cancelled)

    def test_takes_destination_away(self):
        """Its word counts for the handover; but where the guest arrives, its port arrives."""
        course = self.course()
        course.begin()
        self.lab.nbctl("set", "Logical_Switch_Port", self.nic.port,
                       f"options:requested-chassis={course.source.chassis}")
        course.finish()
        self.assertTrue(course.result.ok, course.result.error)
        self.assert_settled(self.guest, course.destination, course.before)
        for host in self.lab.hypervisors:
            self.assertEqual(self.handover_of(host, self.guest).phase, "undone")

    def test_deletes_port(self):
        """There is nothing to carry any more; a new port of that name finds the guest."""
        course = self.course()
        course.begin()
        self.lab.nbctl("lsp-del", self.nic.port)
        for host in self.lab.hypervisors:
            self.wait_for_phase(host, self.guest, "undone", "done")
        course.finish()
        self.assertTrue(course.result.ok, course.result.error)
        self.lab.add_port("ls0", self.nic.port, self.nic.mac, self.nic.ip, **CMS_OPTIONS)
        self.lab.nbctl("set", "Logical_Switch_Port", self.nic.port,
                       *[f'external_ids:"{key}"="{value}"' for key, value in CMS_IDS.items()])
        self.lab.wait_bound(self.nic.port, course.destination, PATIENCE)
        self.assert_settled(self.guest, course.destination, self.ports(self.guest))


if __name__ == "__main__":
    main()
