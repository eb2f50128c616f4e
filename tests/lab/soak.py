#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Migrates guests among hosts at random, with random faults, and looks after each whether all is
as it must be. Ends with the first that isn't.

    tests/lab/soak.py --rounds 300 [--seed N]

tests/run runs a short one.
"""

import argparse
import dataclasses
import pathlib
import random
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.faults import FAULTS, Recoveries  # noqa: E402
from lab.hosts import CommandError, LabError, wait_until  # noqa: E402
from lab.lab import handle_signals  # noqa: E402
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, handovers, start_portferryd, wait_connected)

GUESTS = 4
HOSTS = 3


@dataclasses.dataclass
class Round:
    """What the generator has in mind: drawn before anything happens, so that a seed is enough."""

    guest: int
    destination: int
    way: str
    fault: str
    after: float
    length: float

    def __str__(self):
        fault = f", {self.fault} after {self.after:.1f} s for {self.length:.1f} s"
        return f"vm{self.guest + 1}, {self.way}{fault if self.fault else ''}"


WAYS = ["live", "live", "live", "p2p", "postcopy", "not-live", "cancelled", "client-killed"]
# What dies and is started again; the others are in faults.py.
DAEMON_FAULTS = ["source-portferryd-killed", "destination-portferryd-killed",
                 "both-portferryd-killed"]


def draw(rng):
    faults = [None, None, *sorted(FAULTS), *DAEMON_FAULTS]
    return Round(rng.randrange(GUESTS), rng.randrange(HOSTS - 1), rng.choice(WAYS),
                 rng.choice(faults), rng.uniform(0, 2.5), rng.choice([0.2, 1, 3, 7]))


class Soak(LabCase):
    """Not run by unittest: main() drives it."""

    HYPERVISORS = HOSTS

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.guests = [
            cls.add_guest(f"vm{number + 1}", [cls.add_nic("ls0", f"10.0.0.{11 + number}/24")],
                          cls.lab.hypervisors[number % HOSTS], dirty_kib=8000)
            for number in range(GUESTS)]
        cls.settle_for(incoming_timeout=10, release_timeout=2, teardown_timeout=5)

    def runTest(self):
        pass

    def where(self, guest):
        hosts = [host for host in self.lab.hypervisors
                 if guest.name in host.virsh("list", "--name").split()]
        self.assertEqual(len(hosts), 1, f"{guest.name} is on {hosts}")
        return hosts[0], [host for host in self.lab.hypervisors if host is not hosts[0]]

    def kill_daemons(self, *hosts):
        for host in hosts:
            host.stop_portferryd(signal.SIGKILL)

        def end():
            for host in hosts:
                if "portferryd" not in host.services:
                    start_portferryd(host)
        return end

    def begin_fault(self, name, source, destination):
        if name in DAEMON_FAULTS:
            chosen = {"source": [source], "destination": [destination],
                      "both": [source, destination]}[name.partition("-")[0]]
            return self.kill_daemons(*chosen)
        return FAULTS[name](self, source, destination)

    def migrate(self, one, guest, source, destination):
        """Drives the migration to its end, whichever it is."""
        options = {"p2p": ["--p2p"], "postcopy": ["--postcopy"]}.get(one.way, [])
        migration = self.lab.start_migration(guest, source, destination, "--bandwidth", "16",
                                             *options, live=one.way != "not-live")
        if one.way in ("cancelled", "client-killed", "postcopy"):
            time.sleep(1)
            if one.way == "cancelled":
                source.virsh("domjobabort", guest.name, check=False)
            elif one.way == "postcopy":
                source.virsh("migrate-postcopy", guest.name, check=False)
            else:
                migration.process.kill()
        return migration.wait(PATIENCE * 2)

    def states(self, guest):
        return {host: state for host in self.lab.hypervisors for state in ("running", "paused")
                if guest.name in host.virsh("list", "--name", f"--state-{state}").split()}

    def wait_for_guest(self, guest):
        """Where the guest has ended up, as an operator would see to it."""
        found = {}

        def one():
            found.clear()
            try:
                found.update(self.states(guest))
            except CommandError:
                return False
            return len(found) == 1
        try:
            wait_until(one, "one guest", 15, interval=0.5)
        except LabError:
            self.assertEqual(len(found), 2, f"{guest.name} is on {found}")
            # Nobody but libvirt has made two of it: see docs/endings.md.
            port = guest.nics[0].port
            (right,) = [host for host in found
                        if host.chassis == self.lab.binding(port)["chassis"]]
            (wrong,) = [host for host in found if host is not right]
            wrong.virsh("destroy", guest.name)
            del found[wrong]
        (host, state), = found.items()
        if state == "paused":
            host.virsh("resume", guest.name)
        return host

    def help_out(self, guest):
        """What portferry says that an operator has to do: see docs/endings.md."""
        waiting = [handover.waiting for host in self.lab.hypervisors
                   for handover in handovers(host, guest.uuid) if not handover.ended]
        for nic in guest.nics:
            if any("clear additional_chassis" in text for text in waiting):
                self.lab.sbctl("clear", "Port_Binding", nic.port, "additional_chassis",
                               "additional_encap")
                self.helped += 1

    # How long portferry has to do it by itself: longer than its deadlines.
    ALONE_S = 30
    helped = 0

    def assert_right(self, guest, host, expected):
        try:
            wait_until(lambda: not self.complaints(guest, host, expected), "the right state",
                       self.ALONE_S, interval=0.2)
        except LabError:
            self.help_out(guest)
        self.assert_settled(guest, host, expected)

    def run_round(self, one, recoveries):
        self.began = time.time_ns()
        guest = self.guests[one.guest]
        source, others = self.where(guest)
        destination = others[one.destination]
        before = {each.name: self.ports(each) for each in self.guests}
        places = {each.name: self.where(each)[0] for each in self.guests}
        errors = []

        def strike():
            try:
                time.sleep(one.after)
                end = self.begin_fault(one.fault, source, destination)
                time.sleep(one.length)
                end()
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)
        thread = threading.Thread(target=strike)
        if one.fault:
            thread.start()
        result = self.migrate(one, guest, source, destination)
        if one.fault:
            thread.join()
        if errors:
            raise errors[0]

        def right():
            places[guest.name] = here = self.wait_for_guest(guest)
            for each in self.guests:
                self.assert_right(each, places[each.name], before[each.name])
            for host in self.lab.hypervisors:
                wait_connected(host)
                for handover in handovers(host, guest.uuid, self.began):
                    self.assertEqual(handover.phase,
                                     "undone" if here is source else "done", handover)
        recoveries.measure(right)
        self.doCleanups()
        return "moved" if places[guest.name] is destination else \
            f"stayed ({(result.error.strip().splitlines() or ['-'])[-1][:90]})"

    def resident_kib(self):
        """The largest of the daemons."""
        sizes = []
        for host in self.lab.hypervisors:
            path = f"/proc/{host.services['portferryd'].pid}/status"
            with open(path, encoding="utf-8") as file:
                sizes += [int(line.split()[1]) for line in file if line.startswith("VmRSS")]
        return max(sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="how many migrations (300)")
    parser.add_argument("--seed", type=int, default=None, help="as a former run has printed it")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="ROUND",
                        help="leave out what comes before")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10 ** 6)
    print(f"# seed {seed}", flush=True)
    handle_signals()
    rng = random.Random(seed)
    rounds = [draw(rng) for _ in range(options.rounds)]
    recoveries, sizes = Recoveries(), []
    case = Soak()
    failed = True
    try:
        Soak.stand_up()
        for number, one in enumerate(rounds, 1):
            if number < options.first:
                continue
            began = time.monotonic()
            how = case.run_round(one, recoveries)
            sizes.append(case.resident_kib())
            print(f"ok {number} - {one}: {how}, {time.monotonic() - began:.1f} s, "
                  f"{sizes[-1]} KiB", flush=True)
        failed = False
    except Exception:
        print(f"not ok {number} - {one}; again: --seed {seed} --from {number}", flush=True)
        raise
    finally:
        Soak.take_down(failed=failed)
    print(f"1..{len(sizes)}")
    print(f"# seed {seed}: {recoveries}; an operator helped {case.helped} times, as told")
    fifth = max(1, len(sizes) // 5)
    curve = [max(sizes[start:start + fifth]) for start in range(0, len(sizes), fifth)]
    print(f"# the largest daemon, in KiB, over time: {' '.join(map(str, curve))}")


if __name__ == "__main__":
    main()
