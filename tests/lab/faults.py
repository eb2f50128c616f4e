# SPDX-License-Identifier: LGPL-2.1-or-later
"""What can go wrong around a migration: begun at one moment, over at another.

A fault is a function of the case and the two hosts; it begins at once, and
returns what ends it.
"""

import signal
import time

from .hosts import CommandError, wait_until


def frozen(name, where=None):
    """A process stands still, and its connections stay open."""
    def begin(case, source, destination):
        return case.suspend_service(host_of(case, source, destination, where), name)
    return begin


def kill_service(case, host, name):
    """A process dies; returns what starts it again, which the end of the test does at the latest."""
    service = host.services[name]
    host.stop_service(name, signal.SIGKILL)

    def start():
        if name not in host.services:
            host.start_service(name, service.command, **service.options)
    case.add_repair(start)
    return start


def killed(name, where=None):
    """A process dies, and is started again."""
    return lambda case, source, destination: kill_service(
        case, host_of(case, source, destination, where), name)


def vswitchd_killed(where):
    """The switch dies, with all its ports."""
    def begin(case, source, destination):
        host = host_of(case, source, destination, where)
        start = killed("vswitchd", where)(case, source, destination)

        def end():
            start()
            give_address(host)
        return end
    return begin


def give_address(host):
    """A new br-phys has none."""
    wait_until(lambda: host.exists("/sys/class/net/br-phys")
               or host.run(["ip", "link", "show", "br-phys"], check=False).returncode == 0,
               f"br-phys on {host.name}")
    host.shell(f"""
        ethtool -K br-phys tx off >/dev/null
        ip addr replace {host.phys_ip}/24 dev br-phys
        ip link set br-phys up
    """)


def libvirtd_killed(where):
    def begin(case, source, destination):
        host = host_of(case, source, destination, where)
        service = host.services["libvirtd"]
        host.stop_service("libvirtd", signal.SIGKILL)

        def end():
            if "libvirtd" in host.services:
                return
            host.run(["rm", "-f", "/run/libvirt/libvirt-sock"])
            host.start_service("libvirtd", service.command, **service.options)
            events = host.services.pop("events")
            wait_until(lambda: not events.running, "the end of the log of events", 60)
            host.start_service("events", events.command)
        case.add_repair(end)
        return end
    return begin


def central_cut_off(case, _source, _destination):
    """Nobody reaches the databases, and nobody is told so."""
    central = case.lab.central
    central.shell("ip link set mgmt0 down")

    def end():
        central.shell("ip link set mgmt0 up")
    case.add_repair(end)
    return end


def cut_off_from_central(where):
    """One host does not reach the databases any more; libvirt's way is open."""
    def begin(case, source, destination):
        host = host_of(case, source, destination, where)
        host.shell(f"ip route add blackhole {case.lab.central.mgmt_ip}/32")

        def end():
            try:
                host.shell(f"ip route del blackhole {case.lab.central.mgmt_ip}/32")
            except CommandError:
                pass  # ended already
        case.add_repair(end)
        return end
    return begin


def host_of(case, source, destination, where):
    return {"source": source, "destination": destination, None: case.lab.central}[where]


FAULTS = {
    "nb-frozen": frozen("nb"),
    "nb-killed": killed("nb"),
    "sb-frozen": frozen("sb"),
    "sb-killed": killed("sb"),
    "northd-frozen": frozen("northd"),
    "northd-killed": killed("northd"),
    "central-cut-off": central_cut_off,
}
for _where in ("source", "destination"):
    FAULTS |= {
        f"{_where}-cut-off-from-central": cut_off_from_central(_where),
        f"{_where}-ovsdb-frozen": frozen("ovsdb", _where),
        f"{_where}-ovsdb-killed": killed("ovsdb", _where),
        f"{_where}-controller-frozen": frozen("ovn-controller", _where),
        f"{_where}-controller-killed": killed("ovn-controller", _where),
        f"{_where}-vswitchd-killed": vswitchd_killed(_where),
        f"{_where}-libvirtd-frozen": frozen("libvirtd", _where),
        f"{_where}-libvirtd-killed": libvirtd_killed(_where),
    }


class Recoveries:
    """How long it took from a fault's end until all was right."""

    def __init__(self):
        self.times = []

    def measure(self, function):
        began = time.monotonic()
        function()
        self.times.append(time.monotonic() - began)

    def __str__(self):
        times = sorted(self.times)
        return (f"{len(times)} faults, right again after {times[len(times) // 2]:.1f} s (median), "
                f"{times[-1]:.1f} s (worst)") if times else "no fault"
