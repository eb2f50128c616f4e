# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ways of getting a guest's ports to the host that it is migrated to."""

import dataclasses
import json

from . import artifacts
from .hosts import wait_until

# Generous: how long it takes is measured, not decided here.
PATIENCE = 120


@dataclasses.dataclass
class Move:
    """One or more guests about to be migrated from one host to another."""

    lab: object
    ports: list
    """All logical ports of all these guests."""
    source: object
    destination: object

    def wait_bound(self):
        for port in self.ports:
            self.lab.wait_bound(port, self.destination, timeout=PATIENCE)

    def request(self, *chassis, activation_strategy=None):
        self.lab.request_chassis(self.ports, chassis, activation_strategy)


class Way:
    """How the ports get to the destination.

    A way is armed while it is in use; before() comes before the probes, after()
    when virsh migrate has returned, cleanup() when the probes have ended.
    """

    key = ""
    name = ""

    def arm(self, lab):
        """Puts in place what makes this way happen."""

    def disarm(self, lab):
        """Takes it away, so that the other ways are measured without it."""

    def before(self, move):
        """What a management system does before the migration."""

    def after(self, move):
        """What is left to do after it."""

    def cleanup(self, move):
        """Leaves the ports to the next way as they were at first."""
        move.request()
        # Else the next one would begin before northd has told the hosts.
        move.lab.nbctl("--wait=hv", f"--timeout={PATIENCE}", "sync", timeout=PATIENCE)
        move.wait_bound()


class Unpinned(Way):
    key = "unpinned"
    name = "nothing pinned"

    def after(self, move):
        move.wait_bound()


class Pinned(Way):
    key = "rebound"
    name = "pinned, rebound after virsh migrate"

    def before(self, move):
        move.request(move.source.chassis)
        for port in move.ports:
            wait_until(lambda port=port: move.lab.binding(port)["requested"]
                       == move.source.chassis, "the pin", PATIENCE)

    def after(self, move):
        move.request(move.destination.chassis)
        move.wait_bound()


class MultichassisByHand(Way):
    key = "rarp"
    name = "multichassis, rarp, by hand"
    strategy = "rarp"

    def before(self, move):
        move.request(move.source.chassis, move.destination.chassis,
                     activation_strategy=self.strategy)
        for port in move.ports:
            wait_until(lambda port=port: move.lab.binding(port)["requested_additional"]
                       == [move.destination.chassis], "the additional chassis", PATIENCE)

    def after(self, move):
        move.request(move.destination.chassis)
        move.wait_bound()


class MultichassisOpen(MultichassisByHand):
    """Open at both hosts all the time.

    Nothing keeps the packets back, but they wait for the guest in the queue of
    its tap at the destination while it still answers at the source.
    """

    key = "open"
    name = "multichassis, no strategy, by hand"
    strategy = None


class ShellHook(Way):
    """What an engineer writes in an afternoon: byhand/ovn-move."""

    key = "script"
    name = "hook and events in shell, OVN's tools"
    HOOK = "ovn-move"

    def __init__(self, ready_s=10):
        self._ready_s = ready_s

    def arm(self, lab):
        script = (artifacts.HERE / "byhand" / self.HOOK).read_text()
        for host in lab.hypervisors:
            host.write("/etc/default/ovn-move", f"NB={lab.nb_remote}\nREADY={self._ready_s}\n")
            host.write("/run/lab/ovn-move", script, 0o755)
            host.install_hook(artifacts.HERE / "byhand" / self.HOOK, name=self.HOOK, timed=True)
            host.start_service("ovn-move", ["/run/lab/ovn-move", "watch"])

    def disarm(self, lab):
        for host in lab.hypervisors:
            host.remove_hook(self.HOOK)
            # Its children go with the pipe.
            host.stop_service("ovn-move")

    def after(self, move):
        move.wait_bound()


class Portferry(Way):
    """The daemons are up and connected before anything begins.

    They are not there while the other ways are measured: what a management
    system does by itself, they would take for its wish and help.
    """

    key = "portferry"
    name = "portferry"

    def __init__(self, ready_s=None):
        self.running = False
        self._ready_s = ready_s

    @staticmethod
    def available():
        return all(path.exists() for path in (artifacts.BUILD / "daemon" / "portferryd",
                                              artifacts.BUILD / "hooks" / "portferry-hook"))

    def start(self, lab):
        """Starts the daemons, if they don't run yet."""
        if self.running:
            return
        for host in lab.hypervisors:
            if self._ready_s:
                host.write("/etc/portferry/portferry.conf",
                           f"[portferry]\nready-timeout={self._ready_s}\n")
            host.start_portferryd(timeout=PATIENCE)
        for host in lab.hypervisors:
            wait_until(lambda host=host: is_connected(host),
                       f"portferryd's connections on {host.name}", PATIENCE)
        self.running = True

    def stop(self, lab):
        if self.running:
            for host in lab.hypervisors:
                host.stop_portferryd()
            self.running = False

    def arm(self, lab):
        self.start(lab)
        for host in lab.hypervisors:
            host.install_hook(timed=True)

    def disarm(self, lab):
        for host in lab.hypervisors:
            host.remove_hook()
        self.stop(lab)

    def after(self, move):
        move.wait_bound()

        def settled(port):
            row = move.lab.nb_port(port)
            return not any(key.startswith("portferry-") for key in row["external_ids"])
        for port in move.ports:
            wait_until(lambda port=port: settled(port), "the end of the handover", PATIENCE)


class PortferryPinned(Way):
    """The same for a port that its management system keeps pinned to the guest's host."""

    key = "portferry-pinned"
    name = "portferry, the port pinned before"

    def __init__(self, portferry):
        self._portferry = portferry

    def arm(self, lab):
        self._portferry.arm(lab)

    def disarm(self, lab):
        self._portferry.disarm(lab)

    def before(self, move):
        Pinned().before(move)

    def after(self, move):
        self._portferry.after(move)


def is_connected(host):
    """Whether the daemon of a host is connected to all that it works with."""
    def state(name):
        answer = host.run(["busctl", "--json=short", "get-property", "org.portferry1",
                           "/org/portferry1", "org.portferry1.Manager", name], check=False)
        return json.loads(answer.stdout)["data"] if answer.returncode == 0 else None
    return (state("LibvirtState") == "connected"
            and all(state(name) == "synced"
                    for name in ("NorthboundState", "SouthboundState", "SwitchState")))


def handovers(host, since):
    """The handovers that the daemon of a host shows, of those begun since then.

    [(role, phase, domain's UUID, [(phase, ns)])], oldest first.
    """
    answer = host.run(
        ["busctl", "--json=short", "call", "org.portferry1", "/org/portferry1",
         "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"], check=False)
    if answer.returncode != 0:
        return []
    found = []
    for interfaces in json.loads(answer.stdout)["data"][0].values():
        properties = interfaces.get("org.portferry1.Handover")
        if not properties:
            continue
        value = {name: variant["data"] for name, variant in properties.items()}
        if value["Started"] * 1000 >= since:
            found.append((value["Role"], value["Phase"], value["UUID"],
                          [(phase, micros * 1000) for phase, micros in value["Phases"]]))
    return sorted(found, key=lambda one: one[3][0][1])
