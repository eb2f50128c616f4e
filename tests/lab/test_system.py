#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""portferry as a part of the system: restarted in the middle, asked by users, read by monitoring;
and what docs/ says, done."""

import os
import pathlib
import re
import select
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import artifacts  # noqa: E402
from lab.hosts import wait_until  # noqa: E402
from lab.scenario import (  # noqa: E402
    MESSAGE, PATIENCE, LabCase, handovers, main, manager_property, override, start_portferryd)

DOCS = artifacts.REPO / "docs"
POLKITD = "/usr/lib/polkit-1/polkitd"
# For whoever writes: what the commands say, whatever is written.
SHOW = os.environ.get("PORTFERRY_SHOW")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def metrics(host):
    return {(name, *labels.values()): value
            for name, labels, value in manager_property(host, "Metrics")}


class Upgrade(LabCase):
    """As a package does it: SIGTERM, then the new one, in the middle of a handover."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic], dirty_kib=30000)

    def restart(self, host):
        self.assertEqual(host.stop_portferryd(), 0)
        start_portferryd(host)

    def test_while_copying(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        migration = self.start_slow_migration(self.guest, source, destination)
        there = self.wait_for_phase(destination, self.guest, "ready")
        self.wait_for_copy(self.guest, source)
        for host in (destination, source):
            self.restart(host)
        self.wait_for_phase(destination, self.guest, "ready", since=0)
        self.wait_for_phase(source, self.guest, "watch", since=0)
        self.release(self.guest, source)
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        self.assert_settled(self.guest, destination, before)
        for host in (source, destination):
            self.assertEqual([(one.id, one.phase) for one in
                              handovers(host, self.guest.uuid, self.began)], [(there.id, "done")])
        # Measured by the daemon that ended it.
        seen = metrics(destination)
        self.assertEqual(seen[("portferry_handovers_total", "destination", "done")], 1)
        self.assertEqual(seen[("portferry_added_silence_seconds_count",)], 1)
        self.assertLess(seen[("portferry_added_silence_seconds_sum",)], 2)
        seen = metrics(source)
        self.assertEqual(seen[("portferry_open_seconds_count",)], 1)
        self.assertLess(seen[("portferry_open_seconds_sum",)], 2)

    def test_at_the_gate(self):
        """libvirt's hook waits; portferryd goes, and comes back; the migration is not refused."""
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        resume = self.suspend_service(destination, "ovn-controller")
        migration = self.lab.start_migration(self.guest, source, destination)
        there = self.wait_for_phase(destination, self.guest, "binding")

        def waits():
            answer = destination.run(["sh", "-c", "grep -l portferry /proc/[0-9]*/comm"],
                                     check=False)
            names = answer.stdout.split()
            return any("started" in destination.run(
                ["cat", name.replace("comm", "cmdline")], check=False).stdout
                for name in names)
        wait_until(waits, "the hook at the gate", PATIENCE)
        self.restart(destination)
        self.assertTrue(waits())
        self.assertEqual(self.wait_for_phase(destination, self.guest, "binding").id, there.id)
        resume()
        ended = migration.wait(PATIENCE)
        self.assertTrue(ended.ok, ended.error)
        self.assert_settled(self.guest, destination, before)
        self.assertEqual(self.handover_of(destination, self.guest).phase, "done")
        self.assertEqual(metrics(destination)[("portferry_gate_wait_seconds_count",)], 1)


RULES = """
polkit.addRule(function(action, subject) {
    if (action.id == "org.portferry1.hold" && subject.user == "nobody" &&
        action.lookup("domain") == "%s")
        return polkit.Result.YES;
});
"""


class Users(LabCase):
    """Who is not root, with Debian's polkitd."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("vm1", [cls.nic])

    def start_polkitd(self, host):
        host.write("/etc/polkit-1/rules.d/10-lab.rules", RULES % self.guest.uuid)
        policy = pathlib.Path("/usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf")
        host.write("/etc/dbus-1/lab.d/org.freedesktop.PolicyKit1.conf", policy.read_text())
        actions = (artifacts.REPO / "data" / "org.portferry1.policy").read_text()
        host.write("/run/lab/actions/org.portferry1.policy", actions)
        host.shell("""
            chmod -R a+rX /run/lab /etc/polkit-1
            mount --bind /run/lab/actions /usr/share/polkit-1/actions
            busctl call org.freedesktop.DBus / org.freedesktop.DBus ReloadConfig
        """)
        host.start_service(
            "polkitd", [POLKITD, "--no-debug"],
            ready=lambda: "org.freedesktop.PolicyKit1" in host.run(["busctl", "list"]).stdout)

    @unittest.skipUnless(os.path.exists(POLKITD), "there is no polkitd")
    def test_polkit(self):
        source, destination = self.where(self.guest)
        before = self.ports(self.guest)
        self.start_polkitd(destination)
        client = artifacts.BUILD / "client" / "portferry"

        def ask(*words):
            return destination.run([*NOBODY, client, "--no-ask-password", *words], check=False)
        root = destination.run([client, "preplug", self.guest.uuid, self.nic.port])
        self.assertIn("handover", root.stdout)
        (handover,) = handovers(destination, self.guest.uuid, self.began)

        seen = ask("status")
        self.assertEqual(seen.returncode, 0, seen.stderr)
        self.assertIn("destination", seen.stdout)
        for words in (("rollback", handover.id), ("activate", handover.id),
                      ("forget", handover.id), ("preplug", self.guest.uuid, self.nic.port)):
            refused = ask(*words)
            self.assertNotEqual(refused.returncode, 0, words)
            self.assertIn("polkit", refused.stderr)
        # What the administrator's rule allows, for this domain.
        held = ask("hold", handover.id)
        self.assertEqual(held.returncode, 0, held.stderr)
        self.assertEqual(len(destination.journal(MESSAGE_ID=MESSAGE["OPERATOR_HOLD"],
                                                 HANDOVER=handover.id)), 1)
        self.assertTrue(any("user 65534" in entry["MESSAGE"]
                            for entry in destination.journal(HANDOVER=handover.id)))
        self.assertFalse(self.handover_of(destination, self.guest).ended)
        # What is for the hook is not for users, and the bus says so.
        denied = destination.run([*NOBODY, "busctl", "call", "org.portferry1", "/org/portferry1",
                                  "org.portferry1.Manager", "Released", "say", "vm1", "0"],
                                 check=False)
        self.assertNotEqual(denied.returncode, 0)
        self.assertEqual(override(destination, handover, "Rollback").returncode, 0)
        self.wait_for_phase(destination, self.guest, "undone")
        self.assert_settled(self.guest, source, before)


class Shell:
    """A shell on a host that stays, as the reader of a document has one."""

    def __init__(self, host, **variables):
        self.process = host.popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        for name, value in variables.items():
            self.run(f"export {name}={value}")

    def run(self, command):
        """What a command prints, with its end."""
        mark = f"--- {time.monotonic_ns()} ---"
        self.process.stdin.write(f"{command}\necho; echo '{mark}'\n".encode())
        self.process.stdin.flush()
        said, end = b"", time.monotonic() + PATIENCE
        while not said.endswith(mark.encode() + b"\n"):
            left = max(end - time.monotonic(), 0)
            ready, _, _ = select.select([self.process.stdout], [], [], left)
            some = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not some:
                raise AssertionError(f"{command}: no end in {PATIENCE} s: {said.decode()}")
            said += some
        return said.decode().removesuffix(mark + "\n").removesuffix("\n")

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


def blocks(path):
    """(host, command, expected output) of each ```console HOST of a document, in order."""
    for host, text in re.findall(r"^```console (\w+)\n(.*?)^```$", path.read_text(),
                                 re.M | re.S):
        parts = re.split(r"^# (?=\S)", text, flags=re.M)
        assert parts[0] == "", f"{path}: output before a command: {parts[0]}"
        for part in parts[1:]:
            command, _, output = part.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = command[:-1].rstrip() + " " + more.lstrip("> ")
            yield host, command, output


def matches(expected, said):
    """A … stands for anything within a line; alone in a line, for any lines."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += re.escape(line.rstrip()).replace("…", ".*?") + r"[ ]*\n"
    return re.fullmatch(pattern, said.rstrip("\n") + "\n") is not None


class Documents(LabCase):
    """Every command in a console block of docs/ is run, and says what is written there."""

    @classmethod
    def furnish(cls):
        cls.lab.add_switch("ls0")
        cls.nic = cls.add_nic("ls0", "10.0.0.11/24")
        cls.guest = cls.add_guest("web1", [cls.nic])

    def replay(self, name):
        source, destination = self.where(self.guest)
        hosts = {"source": source, "destination": destination}
        # The reader's own.
        variables = {"uuid": self.guest.uuid, "port": self.nic.port, "to": destination.uri,
                     "there": destination.name, "LC_ALL": "C.UTF-8",
                     "PATH": f"{artifacts.BUILD}/client:$PATH"}
        shells = {}
        done = 0
        try:
            for host, command, expected in blocks(DOCS / name):
                if host not in shells:
                    shells[host] = Shell(hosts[host], **variables)
                end = time.monotonic() + 20
                if SHOW:
                    time.sleep(1)
                said = shells[host].run(command)
                if SHOW:
                    print(f"{host} # {command}\n{said}", file=sys.stderr)
                # What is shown may be a moment away.
                while not SHOW and time.monotonic() < end and re.match(
                        r"busctl get|portferry (status|show|history)", command) and \
                        not matches(expected, said):
                    time.sleep(0.2)
                    said = shells[host].run(command)
                if not SHOW and not matches(expected, said):
                    self.fail(f"{name}: {host} # {command}\n{said}\n--- expected:\n{expected}")
                done += 1
        finally:
            for shell in shells.values():
                shell.close()
        self.assertGreater(done, 5, name)

    def test_dbus(self):
        before = self.ports(self.guest)
        self.replay("dbus.md")
        source, _destination = self.where(self.guest)
        self.assert_settled(self.guest, source, before)

    def test_operator(self):
        before = self.ports(self.guest)
        source, destination = self.where(self.guest)
        self.replay("operator.md")
        self.assert_settled(self.guest, destination, self.followed(before, source, destination))


if __name__ == "__main__":
    main()
