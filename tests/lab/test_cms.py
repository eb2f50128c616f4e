#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A CMS that owns requested-chassis, as Neutron does: with northbound access beside
it, and with none at all."""

import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab import wait_until  # noqa: E402
from lab.cms import ACTIVATED, CmsCase  # noqa: E402
from lab.scenario import (  # noqa: E402
    MARKER, MESSAGE, PATIENCE, Watch, handovers, main, manager_property, restart_portferryd,
    start_portferryd)
from lab.tls import close_northbound, secure_southbound  # noqa: E402

GOOD = {
    "destination": ["binding", "ready", "open", "running", "cms-activate", "done"],
    "source": ["watch", "open", "cms-activate", "done"],
}
# What a machine that is slow, or a RARP that is fast, may leave out.
OPTIONAL = {"open", "running"}


class CmsTests:
    """What holds with and without northbound access."""

    # --- what must be true ---

    def assert_order(self, handover, good, optional=OPTIONAL):
        """The phases, those left out that may be."""
        rest = [name for name in handover.names if name not in ("preplug", "cms-preplug")]
        self.assertEqual([name for name in good if name in rest or name not in optional], rest)

    def assert_nothing_written(self):
        """Not a transaction of ours in the northbound database's log, but the barrier's."""
        log = self.lab.central.run(["ovsdb-tool", "show-log", "/var/lib/ovn/nb.db"]).stdout
        self.assertNotIn("portferryd", log)
        for row in self.ports(self.guest).values():
            self.assertFalse([key for key in row["external_ids"] if key.startswith(MARKER)])

    def start(self):
        """A migration that copies memory, begun by the CMS."""
        source, destination = self.where(self.guest)
        self.cms_begins(source, destination)
        migration = self.start_slow_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "ready")
        self.wait_for_phase(source, self.guest, "watch")
        self.wait_for_copy(self.guest, source)
        return source, destination, migration

    def finish(self, source, migration):
        self.release(self.guest, source)
        result = migration.wait(PATIENCE)
        self.assertTrue(result.ok, result.error)

    def carry_beside_cms(self):
        """There, with the CMS's turn at the end of it."""
        source, destination = self.where(self.guest)
        since = time.time_ns()
        with Watch(self.lab, self.guest, destination) as watch:
            self.cms_begins(source, destination)
            migration = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE * 2)
            self.assertTrue(migration.ok, migration.error)
            # Until the CMS has its turn, the guest's network is there.
            for host in (source, destination):
                self.assert_turn(host, "cms-activate", destination)
            self.assertEqual(self.binding()["additional"], [destination.chassis])
            self.assertEqual(self.binding()["options"][ACTIVATED], destination.chassis)
            self.assert_answers(self.guest)
            self.cms_ends(destination)
            self.assert_settled(self.guest, destination, self.ports(self.guest))
        self.assert_network_kept(
            watch, self.lab.guest_pause(self.guest, source, destination, since))
        for host, role in ((source, "source"), (destination, "destination")):
            handover = self.handover_of(host, self.guest, since)
            self.assertEqual(handover.role, role)
            self.assert_order(handover, GOOD[role])
            self.assertEqual(handover.last_error, "")
        self.assert_nothing_written()

    # --- the tests of both ---

    def test_there_and_back(self):
        for _ in range(2):
            self.began = time.time_ns()
            self.carry_beside_cms()

    def test_opened_by_the_pause(self):
        """The destination is open before the guest runs there: the source has done it."""
        source, destination, migration = self.start()
        self.assertEqual(self.is_open(), [False, False])
        self.finish(source, migration)
        self.cms_ends(destination)
        self.assert_settled(self.guest, destination, self.ports(self.guest))
        opened = dict(self.handover_of(source, self.guest).phases)["open"]
        running = dict(self.handover_of(destination, self.guest).phases)["running"]
        self.assertLess(opened, running)
        for host in (source, destination):
            self.assert_no_warnings(host)

    def test_cancelled(self):
        source, destination, migration = self.start()
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_turn(destination, "cms-rollback", source)
        self.assertEqual(self.is_open(), [False, False])
        self.cms_ends(source)
        self.assert_settled(self.guest, source, self.ports(self.guest))
        for host in (source, destination):
            self.assertEqual(self.last(host).phase, "undone")

    def test_failed_while_paused(self):
        """The destination dies when it has been opened: the source closes it."""
        source, destination, migration = self.start()
        # What is left to be copied takes seconds at this speed, and the guest stands still.
        source.virsh("migrate-setmaxdowntime", self.guest.name, 30000)
        self.wait_for_phase(source, self.guest, "open")
        wait_until(lambda: all(self.is_open()), "the ports to be open", PATIENCE)
        destination.virsh("destroy", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.assert_turn(destination, "cms-rollback", source)
        # libvirt only says that the guest goes on: for the source, the copy may go on too.
        self.wait_for_phase(source, self.guest, "watch", "cms-rollback")
        self.assertEqual(self.is_open(), [False, False])
        self.assert_answers(self.guest)
        self.cms_ends(source)
        self.assert_settled(self.guest, source, self.ports(self.guest))
        for host in (source, destination):
            self.assertEqual(self.last(host).phase, "undone")

    def test_cms_asleep(self):
        """Its turn never ends: it is told so, and nothing is written in its place."""
        source, destination = self.where(self.guest)
        for host in (source, destination):
            self.set_up(host, cms_timeout=2)
        self.cms_begins(source, destination)
        before = self.ports(self.guest)
        migration = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE * 2)
        self.assertTrue(migration.ok, migration.error)
        for host in (source, destination):
            handover = self.wait_for_phase(host, self.guest, "unfinished")
            self.assertIn("waited for 2 s in vain for the CMS", handover.last_error)
            self.assertIn(destination.chassis, handover.last_error)
        for name in ("options", "external_ids"):
            self.assertEqual(self.lab.nb_port(self.nic.port)[name], before[self.nic.port][name])
        self.assert_answers(self.guest)
        self.assert_nothing_written()
        # It is not taken up again, and again. What it left behind is no hindrance.
        time.sleep(3)
        for host in (source, destination):
            self.handover_of(host, self.guest)
        self.cms_ends(destination)
        self.lab.wait_bound(self.nic.port, destination)
        self.began = time.time_ns()
        self.cms_begins(destination, source)
        back = self.lab.migrate(self.guest, destination, source, timeout=PATIENCE * 2)
        self.assertTrue(back.ok, back.error)
        self.cms_ends(source)
        self.assert_settled(self.guest, source, self.ports(self.guest))

    def kill(self, *hosts):
        for host in hosts:
            host.stop_portferryd(signal.SIGKILL)

    def start_again(self, *hosts):
        for host in hosts:
            start_portferryd(host, *self.ARGUMENTS)

    def test_retried(self):
        """The CMS leaves the lists of a failed migration as they are for the next one."""
        source, destination, migration = self.start()
        source.virsh("domjobabort", self.guest.name)
        self.assertFalse(migration.wait(PATIENCE).ok)
        self.wait_for_phase(destination, self.guest, "cms-rollback")
        retry = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE)
        self.assertTrue(retry.ok, retry.error)
        self.assert_turn(destination, "cms-activate", destination)
        # And straight back, by lists that it has only turned round.
        self.cms_begins(destination, source)
        back = self.lab.migrate(self.guest, destination, source, timeout=PATIENCE)
        self.assertTrue(back.ok, back.error)
        self.assert_turn(source, "cms-activate", source)
        self.cms_ends(source)
        self.assert_settled(self.guest, source, self.ports(self.guest))
        self.assertEqual([one.phase for one in handovers(source, self.guest.uuid, self.began)
                          if one.role == "destination"], ["done"])

    def test_killed_while_copying(self):
        """Both daemons, without any journal of theirs: the rows and libvirt tell."""
        source, destination, migration = self.start()
        self.kill(source, destination)
        self.start_again(source, destination)
        self.wait_for_phase(destination, self.guest, "ready")
        self.wait_for_phase(source, self.guest, "watch")
        with Watch(self.lab, self.guest, destination) as watch:
            self.finish(source, migration)
            self.assert_turn(destination, "cms-activate", destination)
            self.cms_ends(destination)
            self.assert_settled(self.guest, destination, self.ports(self.guest))
        self.assert_network_kept(
            watch, self.lab.guest_pause(self.guest, source, destination, migration.started))
        for host, role in ((source, "source"), (destination, "destination")):
            handover = self.handover_of(host, self.guest)
            self.assertEqual((handover.role, handover.phase), (role, "done"))

    def test_killed_until_the_end(self):
        """The guest arrives while nobody watches."""
        source, destination, migration = self.start()
        self.kill(source, destination)
        self.finish(source, migration)
        self.start_again(source, destination)
        self.assert_turn(destination, "cms-activate", destination)
        self.assert_answers(self.guest)
        self.cms_ends(destination)
        self.assert_settled(self.guest, destination, self.ports(self.guest))
        self.assertEqual(self.last(destination).phase, "done")
        self.assertEqual(handovers(source, self.guest.uuid), [])

    def set_up(self, host, **settings):
        """As configure(), with this class's arguments."""
        path = "/etc/portferry/portferry.conf"
        lines = [f"{key.replace('_', '-')}={value}" for key, value in settings.items()]
        host.write(path, "\n".join(["[portferry]", *lines, ""]))
        restart_portferryd(host, *self.ARGUMENTS)

        def restore():
            pathlib.Path(host.path(path)).unlink()
            restart_portferryd(host, *self.ARGUMENTS)
        self.add_repair(restore)


class BesideCms(CmsTests, CmsCase):
    """portferry may write northbound, and does not."""

    ARGUMENTS = ()

    def test_told(self):
        source, destination, migration = self.start()
        self.finish(source, migration)
        self.cms_ends(destination)
        self.assert_settled(self.guest, destination, self.ports(self.guest))
        self.assertEqual(len(self.entries(destination, "CMS_IN_CHARGE")), 1)


class SouthboundOnly(CmsTests, CmsCase):
    """No way to the northbound database, and southbound none but ovn-controller's own: TLS with the
    host's certificate, and the role that OVN gives it."""

    ARGUMENTS = ("--ovn-nb", "none")
    PORTFERRY = False

    @classmethod
    def furnish(cls):
        secure_southbound(cls.lab)
        close_northbound(cls.lab)
        for host in cls.lab.hypervisors:
            host.install_hook()
            start_portferryd(host, *cls.ARGUMENTS)
        super().furnish()

    def test_no_other_way(self):
        """The lab is what it says."""
        host = self.lab.hypervisors[0]
        self.assertEqual(manager_property(host, "NorthboundState"), "none")
        for port in (6641, 6642):
            answer = host.run(["ovsdb-client", "list-dbs", f"tcp:{self.lab.central.mgmt_ip}:{port}",
                               "--timeout=3"], check=False)
            self.assertNotEqual(answer.returncode, 0)
        tls = ["ovn-sbctl", f"--db=ssl:{self.lab.central.mgmt_ip}:6642", "--timeout=5",
               "--private-key=/etc/lab-tls/key.pem", "--certificate=/etc/lab-tls/cert.pem",
               "--ca-cert=/etc/lab-tls/ca.pem"]
        host.run([*tls, "show"])
        for denied in (["set", "Port_Binding", self.nic.port, "external_ids:x=y"],
                       ["set", "SB_Global", ".", "nb_cfg=99"]):
            answer = host.run([*tls, *denied], check=False)
            self.assertIn("permission error", answer.stderr)
        host.run([*tls, "set", "Port_Binding", self.nic.port, "options:portferry-lab=1", "--",
                  "remove", "Port_Binding", self.nic.port, "options", "portferry-lab"])

    def test_cms_never_begins(self):
        """There is no second host in the list: the migration is refused, with the reason."""
        source, destination = self.where(self.guest)
        self.set_up(destination, preplug_timeout=1)
        before = self.ports(self.guest)
        migration = self.lab.migrate(self.guest, source, destination, timeout=PATIENCE)
        self.assertFalse(migration.ok)
        self.assertIn("its requested-chassis doesn't name both hosts", migration.error)
        self.assert_settled(self.guest, source, before)
        self.assertEqual(self.last(destination).phase, "undone")

    def test_cms_is_late(self):
        """It names both when libvirt is already on its way."""
        source, destination = self.where(self.guest)
        migration = self.lab.start_migration(self.guest, source, destination)
        self.wait_for_phase(destination, self.guest, "cms-preplug")
        self.cms_begins(source, destination)
        result = migration.wait(PATIENCE)
        self.assertTrue(result.ok, result.error)
        self.assert_turn(destination, "cms-activate", destination)
        self.cms_ends(destination)
        self.assert_settled(self.guest, destination, self.ports(self.guest))

    def test_without_flows(self):
        """Nobody can say when the flows of a switch that is new here are all installed."""
        source, destination = self.where(self.guest)
        self.carry_beside_cms()
        said = [entry for entry in destination.journal(HANDOVER=self.last(destination).id)
                if "going by ovn-controller's word alone" in entry["MESSAGE"]]
        self.assertEqual(len(said), 1)
        self.assertIsNotNone(source)


if __name__ == "__main__":
    main()
