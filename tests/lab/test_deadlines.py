#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""However much is dead or stands still: libvirt's hook ends in time, and what holds libvirt meanwhile
lets go in time. Both are timed from outside."""

import contextlib
import os
import pathlib
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import artifacts, wait_until  # noqa: E402
from lab.faults import kill_service  # noqa: E402
from lab.scenario import (  # noqa: E402
    PATIENCE, LabCase, busctl, interfaces, main, start_portferryd, wait_connected)

# Seconds. The hook's own time is a second more at the pre-plug, and two at the gate.
PREPLUG, READY = 1, 3
LIMITS = {"migrate": PREPLUG + 1, "started": READY + 2, "release": 0.5}
# What processes take to start on a machine that is busy. A hang would be longer.
SLACK = 3

# Notes when the hook that it calls begins and ends.
WRAPPER = """#!/bin/sh
echo "begin $2 $3 $(date +%s.%N)" >>/var/log/hook-times
{hook} "$@"
status=$?
echo "end $2 $3 $(date +%s.%N) $status" >>/var/log/hook-times
exit $status
"""


class Deadlines(LabCase):

    @classmethod
    def furnish(cls):
        for host in cls.lab.hypervisors:
            host.write(host.hook_path(), WRAPPER.format(hook=artifacts.BUILD / "hooks/portferry-hook"),
                       0o755)
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic])

    # --- times ---

    def hook_times(self, host):
        """[operation, begin, end or None, status] of the hook's calls since the test began."""
        calls, path = [], host.logs / "hook-times"
        for line in path.read_text().splitlines() if path.exists() else []:
            word, operation, _suboperation, when, *status = line.split()
            if float(when) * 1e9 < self.began:
                continue
            if word == "begin":
                calls.append([operation, float(when), None, None])
            else:
                call = next(call for call in calls if call[0] == operation and call[2] is None)
                call[2:] = [float(when), int(status[0])]
        return calls

    def assert_in_time(self, host):
        for operation, begin, end, _status in self.hook_times(host):
            self.assertIsNotNone(end, f"{operation} on {host.name} has not ended")
            self.assertLess(end - begin, LIMITS.get(operation, 0) + SLACK, operation)

    def took(self, host, operation):
        """How long the only call of that operation took, and its status."""
        ((_operation, begin, end, status),) = [
            call for call in self.hook_times(host) if call[0] == operation]
        return end - begin, status

    @contextlib.contextmanager
    def listing(self, host):
        """Meanwhile `virsh list` is called over and over, and never takes longer than a hook."""
        times, over = [], threading.Event()

        def work():
            while not over.is_set():
                began = time.monotonic()
                host.virsh("list", "--all", timeout=PATIENCE)
                times.append(time.monotonic() - began)
                over.wait(0.2)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        self.assertTrue(times)
        self.assertLess(max(times), max(LIMITS.values()) + SLACK)

    # --- what goes wrong ---

    def follow_policy(self, host, policy):
        host.write("/etc/portferry/portferry.conf",
                   f"[portferry]\npreplug-timeout={PREPLUG}\nready-timeout={READY}\n"
                   f"incoming-timeout=5\non-daemon-missing={policy}\non-not-ready={policy}\n")
        busctl(host, "call", "org.portferry1", "/org/portferry1", "org.portferry1.Manager",
               "Reload")

    def freeze(self, host, name):
        return lambda: self.suspend_service(host, name)

    def kill(self, host, name):
        """For something that is started again when the migration is over."""
        return lambda: kill_service(self, host, name)

    def kill_portferryd(self, host):
        def kill():
            host.stop_portferryd(signal.SIGKILL)

            def start():
                if "portferryd" not in host.services:
                    start_portferryd(host)
            self.add_repair(start)
            return start
        return kill

    def migrate_with(self, fault, policy, in_gate, clean=None, listed=True):
        """Migrates while `fault()` lasts; it returns what ends it. Returns the result.

        `clean(destination)`: what is to be done before OVN works there again.
        """
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.follow_policy(destination, policy)
        self.began = time.time_ns()
        ends = []
        if in_gate:
            # Without it the ports are never ready.
            ends.append(self.suspend_service(destination, "ovn-controller"))
        else:
            ends.append(fault())
        with self.listing(destination) if listed else contextlib.nullcontext():
            migration = self.lab.start_migration(self.guest, source, destination)
            if in_gate:
                wait_until(lambda: [call for call in self.hook_times(destination)
                                    if call[0] == "started"], "the hook at the gate", PATIENCE)
                time.sleep(0.5)
                ends.append(fault())
            result = migration.wait(PATIENCE)
        ends.pop()()
        if clean:
            clean(destination)
        for end in ends:
            end()
        for host in (source, destination):
            self.assert_in_time(host)
        wait_connected(destination)
        self.assert_settled(self.guest, destination if result.ok else source,
                            self.followed(before, source, destination) if result.ok else before)
        return destination, result

    # --- before the migration ---

    def check_daemon(self, fault):
        """At the pre-plug, on-daemon-missing decides."""
        for policy in ("refuse", "proceed"):
            _source, destination = self.where(self.guest)
            destination, result = self.migrate_with(fault(destination), policy, in_gate=False)
            _seconds, status = self.took(destination, "migrate")
            self.assertEqual((result.ok, status), (True, 0) if policy == "proceed" else (False, 1))

    def test_daemon_frozen(self):
        self.check_daemon(lambda host: self.freeze(host, "portferryd"))

    def test_daemon_dead(self):
        self.check_daemon(self.kill_portferryd)

    def check_databases(self, fault, in_gate):
        """on-not-ready decides."""
        for name in ("nb", "sb"):
            for policy in ("refuse", "proceed"):
                destination, result = self.migrate_with(
                    fault(self.lab.central, name), policy, in_gate)
                # Both get their answer from portferryd, before their own time is over.
                for operation in ("migrate", "started") if result.ok or in_gate else ("migrate",):
                    seconds, _status = self.took(destination, operation)
                    self.assertLess(seconds, LIMITS[operation] + SLACK)
                self.assertEqual(result.ok, policy == "proceed", f"{name}: {result.error}")

    def test_databases_frozen(self):
        self.check_databases(self.freeze, in_gate=False)

    def test_databases_dead(self):
        self.check_databases(self.kill, in_gate=False)

    def test_switch_database(self):
        """libvirt itself needs it to plug the guest, and has a limit of its own."""
        for fault in (self.freeze, self.kill):
            _source, destination = self.where(self.guest)
            _destination, result = self.migrate_with(fault(destination, "ovsdb"), "proceed", False)
            self.assertFalse(result.ok)

    # --- at the gate ---

    def test_daemon_frozen_in_gate(self):
        """on-not-ready decides, at the hook's deadline."""
        for policy in ("refuse", "proceed"):
            _source, destination = self.where(self.guest)
            destination, result = self.migrate_with(
                self.freeze(destination, "portferryd"), policy, in_gate=True)
            seconds, status = self.took(destination, "started")
            self.assertGreater(seconds, LIMITS["started"] - 0.1)
            self.assertEqual((result.ok, status), (True, 0) if policy == "proceed" else (False, 1))
            if policy == "refuse":
                self.assertIn("portferryd did not answer in time", result.error)

    def test_daemon_dead_in_gate(self):
        """It is waited for, within the deadline."""
        for policy in ("refuse", "proceed"):
            _source, destination = self.where(self.guest)
            destination, result = self.migrate_with(
                self.kill_portferryd(destination), policy, in_gate=True)
            _seconds, status = self.took(destination, "started")
            self.assertEqual((result.ok, status), (True, 0) if policy == "proceed" else (False, 1))

    def test_daemon_restarted_in_gate(self):
        """The migration that waits there goes on, and only when the network is ready."""
        for how in (signal.SIGKILL, signal.SIGTERM):
            source, destination = self.where(self.guest)
            before = self.ports(self.guest)
            self.began = time.time_ns()
            resume = self.suspend_service(destination, "ovn-controller")
            with self.listing(destination):
                migration = self.lab.start_migration(self.guest, source, destination)
                wait_until(lambda host=destination: [
                    call for call in self.hook_times(host) if call[0] == "started"],
                    "the hook at the gate", PATIENCE)
                destination.stop_portferryd(how)
                start_portferryd(destination)
                self.wait_for_phase(destination, self.guest, "binding")
                time.sleep(0.5)
                self.assertIsNone(migration.process.poll())
                resume()
                result = migration.wait(PATIENCE)
            self.assertTrue(result.ok, result.error)
            self.assert_settled(self.guest, destination,
                                self.followed(before, source, destination))
            self.assertEqual(self.took(destination, "started")[1], 0)
            done = self.handover_of(destination, self.guest)
            self.assertEqual(done.phase, "done")
            self.assertIn("ready", done.names)

    def test_databases_frozen_in_gate(self):
        self.check_databases(self.freeze, in_gate=True)

    def test_databases_dead_in_gate(self):
        self.check_databases(self.kill, in_gate=True)

    def test_switch_database_in_gate(self):
        def clean(host):
            # libvirt has given up to remove the interface that it had plugged.
            for name, ids in interfaces(host).items():
                if ids.get("iface-id") == self.nic.port:
                    host.vsctl("--if-exists", "del-port", name)

        for fault in (self.freeze, self.kill):
            _source, destination = self.where(self.guest)
            _destination, result = self.migrate_with(
                fault(destination, "ovsdb"), "refuse", in_gate=True, clean=clean)
            self.assertFalse(result.ok)

    # --- the bus ---

    def test_bus_frozen(self):
        _source, destination = self.where(self.guest)
        destination, result = self.migrate_with(
            self.freeze(destination, "dbus"), "refuse", in_gate=False)
        self.assertFalse(result.ok)
        self.assertEqual(self.took(destination, "migrate")[1], 1)
        # What follows then is libvirt's own: it asks systemd-machined for half a minute.
        destination, result = self.migrate_with(
            self.freeze(destination, "dbus"), "proceed", in_gate=False, listed=False)
        self.assertEqual(self.took(destination, "migrate")[1], 0)

    def test_bus_frozen_in_gate(self):
        for policy in ("refuse", "proceed"):
            _source, destination = self.where(self.guest)
            destination, result = self.migrate_with(
                self.freeze(destination, "dbus"), policy, in_gate=True)
            seconds, status = self.took(destination, "started")
            self.assertGreater(seconds, LIMITS["started"] - 0.1)
            self.assertEqual((result.ok, status), (True, 0) if policy == "proceed" else (False, 1))


if __name__ == "__main__":
    main()
