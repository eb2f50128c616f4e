#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many migrations, done and cancelled: the daemons' memory stays what it is. A sanitized build says
when they end whether anything was lost. PORTFERRY_MIGRATIONS: how many (12)."""

import os
import pathlib
import re
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.scenario import PATIENCE, LabCase, main, restart_portferryd  # noqa: E402

MIGRATIONS = int(os.environ.get("PORTFERRY_MIGRATIONS", "12"))
# The second third of the migrations against the last one, in KiB: what an allocator does anyway, and
# far less than to keep one handover in a hundred would cost in the long run.
GROWTH = 1024


def memory(host):
    """What the daemon of a host has in memory, in KiB."""
    status = pathlib.Path(f"/proc/{host.services['portferryd'].pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+)", status).group(1))


def is_sanitized(host):
    maps = pathlib.Path(f"/proc/{host.services['portferryd'].pid}/maps").read_text()
    return "libasan" in maps or "libtsan" in maps


class Memory(LabCase):

    @classmethod
    def furnish(cls):
        for host in cls.lab.hypervisors:
            # Few that are kept, so that nothing grows on purpose.
            host.write("/etc/portferry/portferry.conf", "[portferry]\nhistory=3\n")
            restart_portferryd(host)
        cls.lab.add_switch("ls0")
        nics = [cls.add_nic("ls0", f"10.0.0.{number}/24") for number in (11, 12)]
        cls.guest = cls.add_guest("vm1", nics, dirty_kib=20000)

    def cancel(self, source, destination):
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_copy(self.guest, source)
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)

    def test_migrations(self):
        curves = {host: [] for host in self.lab.hypervisors}
        for number in range(1, MIGRATIONS + 1):
            source, destination = self.where(self.guest)
            before = self.ports(self.guest)
            if number % 4 == 0:
                self.cancel(source, destination)
                self.assert_settled(self.guest, source, before)
            else:
                migration = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE * 2)
                self.assertTrue(migration.ok, migration.error)
                self.assert_settled(self.guest, destination,
                                    self.followed(before, source, destination))
            for host, curve in curves.items():
                curve.append(memory(host))
        third = MIGRATIONS // 3
        for host, curve in curves.items():
            shown = curve[::max(1, MIGRATIONS // 25)]
            print(f"# {host.name}, KiB: {' '.join(map(str, shown))}; "
                  f"at the end {curve[-1]}", flush=True)
        for host, curve in curves.items():
            if third and not is_sanitized(host):
                growth = statistics.median(curve[-third:]) - statistics.median(
                    curve[third:2 * third])
                self.assertLess(growth, GROWTH, host.name)


if __name__ == "__main__":
    main()
