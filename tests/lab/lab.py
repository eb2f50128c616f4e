# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lab: a network of hosts, and what happens in it.

    with Lab() as lab:
        hv1, hv2 = lab.hypervisors
        lab.add_switch("ls0")
        nic = lab.add_nic("ls0", ip="10.0.0.11/24")
        guest = lab.define_guest(hv1, "vm1", [nic])
        lab.boot(guest, hv1)
        probe = lab.probe(nic).wait_for_replies()
        lab.migrate(guest, hv1, hv2)
        print(probe.stop().silence_ms)

Nothing of it is visible from the machine it runs on, and nothing of it is left
when it ends, even when its process is killed.
"""

import concurrent.futures
import dataclasses
import ipaddress
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from . import artifacts
from .guest import BOOTED, Guest, Nic
from .hosts import Central, Chassis, Client, Host, Hypervisor, LabError, wait_until
from .ovsdb import Ovsdb
from .probe import Probe

# libvirt's numbers, as the event log has them.
STARTED, SUSPENDED, RESUMED, STOPPED = 2, 3, 4, 5
SUSPENDED_PAUSED, SUSPENDED_MIGRATED, SUSPENDED_POSTCOPY = 0, 1, 7
RESUMED_UNPAUSED, RESUMED_MIGRATED, RESUMED_POSTCOPY = 0, 1, 3
STOPPED_MIGRATED = 3


@dataclasses.dataclass
class Event:
    """A line of the event log; `fields` as eventlog.c describes them."""

    time: int
    domain: str
    kind: str
    fields: list

    def is_lifecycle(self, event, detail=None):
        return (self.kind == "lifecycle" and int(self.fields[0]) == event
                and (detail is None or int(self.fields[1]) == detail))


@dataclasses.dataclass
class Pause:
    """When a guest stood still, in CLOCK_REALTIME ns."""

    start: int
    end: int

    @property
    def ms(self):
        return (self.end - self.start) / 1e6


@dataclasses.dataclass
class Migration:
    """How a `virsh migrate` went."""

    code: int
    output: str
    error: str
    started: int
    ended: int

    @property
    def ok(self):
        return self.code == 0

    @property
    def duration_ms(self):
        return (self.ended - self.started) / 1e6


class RunningMigration:
    """A `virsh migrate` under way."""

    def __init__(self, process):
        self.process = process
        self.started = time.time_ns()

    def wait(self, timeout=60):
        try:
            output, error = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, error = self.process.communicate()
            error += f"\nvirsh did not end within {timeout} s"
        return Migration(self.process.returncode, output, error, self.started, time.time_ns())


class Lab:
    """Hosts: `central`, `hypervisors` (hv1, hv2, ...), `client`, `underlay`.

    And `gateways` (gw1, ...), which are chassis without libvirt.
    """

    def __init__(self, hypervisors=2, libvirt_log_level=3, keep_logs=False, gateways=0):
        self.keep_logs = keep_logs
        self.libvirt_log_level = libvirt_log_level
        self.logs = pathlib.Path(tempfile.mkdtemp(prefix="portferry-lab-"))
        self.underlay = Host(self, "underlay", 1)
        self.central = Central(self, "central", 2)
        self.client = Client(self, "client", 3)
        self.hypervisors = [Hypervisor(self, f"hv{n}", 10 + n) for n in range(1, hypervisors + 1)]
        self.gateways = [Chassis(self, f"gw{n}", 100 + n) for n in range(1, gateways + 1)]
        self.hosts = [self.underlay, self.central, self.client, *self.hypervisors, *self.gateways]
        self.kept = False
        self._ports = {}
        self._client_ports = {}
        self._databases = {}
        self._macs = itertools.count(1)
        self._lock = threading.Lock()

    # --- life ---

    def __enter__(self):
        try:
            self.start()
        except BaseException as error:
            self._end(type(error))
            raise
        return self

    def __exit__(self, kind, value, traceback):
        if not self.kept:
            self._end(kind)

    def _end(self, failure):
        # Who interrupts it does not ask for the logs.
        if failure and not issubclass(failure, (KeyboardInterrupt, SystemExit)):
            self.keep_logs = True
        self.stop()

    def start(self):
        """Everything up and ready, except guests and portferry."""
        if os.geteuid() != 0:
            raise LabError("the lab needs root")
        # Compiled once, before several threads ask for them.
        for name in [*artifacts.TOOLS, *artifacts.LIBRARIES]:
            artifacts.tool(name)
        artifacts.initramfs()
        self._for_all(self.hosts, lambda host: host.create())
        self._connect_hosts()
        self._for_all([self.central, self.client, *self.hypervisors, *self.gateways],
                      lambda host: host.start())
        self._for_all([*self.hypervisors, *self.gateways], self._wait_for_chassis)

    @staticmethod
    def _for_all(items, function):
        with concurrent.futures.ThreadPoolExecutor(max_workers=len(items)) as pool:
            for future in [pool.submit(function, item) for item in items]:
                future.result()

    def _connect_hosts(self):
        bridges = "".join(f"""
            ip link add {name} type bridge
            ip link set {name} mtu 2000 up
        """ for name in ("mgmt", "phys"))
        self.underlay.shell("ip link set lo up" + bridges)
        members = [host for host in self.hosts if host is not self.underlay]
        # Made in their namespaces, so that the machine never sees them.
        lines = [f"link add name {end}0 mtu 2000 netns {host.pid} type veth "
                 f"peer name {host.name}-{end} mtu 2000 netns {self.underlay.pid}"
                 for host in members for end in ("mgmt", "phys")]
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                       check=True, stdout=subprocess.DEVNULL)
        script = []
        for host in members:
            script += [f"ip link set {host.name}-mgmt master mgmt up",
                       f"ip link set {host.name}-phys master phys up",
                       f"ethtool -K {host.name}-phys tx off >/dev/null"]
        self.underlay.shell("\n".join(script))
        for host in members:
            host.shell(f"""
                ip link set lo up
                ip addr add {host.mgmt_ip}/24 dev mgmt0
                ip link set mgmt0 up
                ethtool -K phys0 tx off >/dev/null
                ip link set phys0 up
            """)

    def _wait_for_chassis(self, host):
        wait_until(
            lambda: self.sb().select(("Chassis", [["name", "==", host.chassis]]))[0],
            f"{host.chassis} in the southbound database")

    def stop(self):
        """Ends every host; keeps the logs if something went wrong."""
        # A second Ctrl-C must not leave half of it behind.
        previous = {}
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                previous[number] = signal.signal(number, signal.SIG_IGN)
        except ValueError:
            pass  # Not the main thread: signals don't come here anyway.
        try:
            for database in self._databases.values():
                database.close()
            self._databases.clear()
            self._for_all(self.hosts, lambda host: host.destroy())
            if self.keep_logs:
                print(f"lab: the logs are in {self.logs}", file=sys.stderr)
            else:
                shutil.rmtree(self.logs, ignore_errors=True)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def keep(self):
        """Lets the lab outlive this process; returns what destroy() needs."""
        for host in self.hosts:
            host.keep()
        self.kept = True
        return {
            "logs": str(self.logs),
            "hosts": {host.name: {"pid": host.pid, "born": _birth(host.pid)}
                      for host in self.hosts},
        }

    @staticmethod
    def destroy_kept(state):
        """Ends a lab that was kept."""
        for host in state["hosts"].values():
            # The number may belong to somebody else by now.
            if _birth(host["pid"]) == host["born"]:
                os.kill(host["pid"], signal.SIGKILL)
        for host in state["hosts"].values():
            wait_until(lambda host=host: _birth(host["pid"]) != host["born"], "the hosts' end")
        shutil.rmtree(state["logs"], ignore_errors=True)

    # --- addresses and remotes ---

    @property
    def nb_remote(self):
        return f"tcp:{self.central.mgmt_ip}:6641"

    @property
    def sb_remote(self):
        return f"tcp:{self.central.mgmt_ip}:6642"

    def host(self, name):
        return next(host for host in self.hosts if host.name == name)

    # --- OVN ---

    def nbctl(self, *arguments, **options):
        return self.central.nbctl(*arguments, **options)

    def sbctl(self, *arguments, **options):
        return self.central.sbctl(*arguments, **options)

    def _database(self, name, schema):
        with self._lock:
            if name not in self._databases:
                self._databases[name] = Ovsdb(
                    schema, *[self.central.path(path) for path in self.central.sockets[name]])
            return self._databases[name]

    def forget_databases(self):
        """They are somewhere else from now on: central.sockets."""
        with self._lock:
            for database in self._databases.values():
                database.close()
            self._databases.clear()

    def nb(self):
        """The northbound database, for select()."""
        return self._database("nb", "OVN_Northbound")

    def sb(self):
        """The southbound database, for select()."""
        return self._database("sb", "OVN_Southbound")

    def new_mac(self):
        return f"52:54:00:4c:00:{next(self._macs):02x}"

    def add_switch(self, name):
        self.nbctl("ls-add", name)
        return name

    def add_port(self, switch, port, mac, *ips, **options):
        """A logical port; `ips` may have a prefix length, which OVN ignores."""
        addresses = " ".join(str(ipaddress.ip_interface(ip).ip) for ip in ips)
        arguments = ["lsp-add", switch, port, "--",
                     "lsp-set-addresses", port, f"{mac} {addresses}"]
        if options:
            arguments += ["--", "lsp-set-options", port,
                          *[f"{key.replace('_', '-')}={value}" for key, value in options.items()]]
        self.nbctl(*arguments)
        self._ports[port] = switch
        return port

    def add_nic(self, switch, ip, ip6=None, gateway=None, gateway6=None, **options):
        """A logical port and the guest interface that belongs to it."""
        nic = Nic(mac=self.new_mac(), ip=ip, port=str(uuid.uuid4()), gateway=gateway, ip6=ip6,
                  gateway6=gateway6)
        self.add_port(switch, nic.port, nic.mac, *[one for one in (ip, ip6) if one], **options)
        return nic

    def nb_port(self, port):
        """The northbound row of a port: options, external_ids, up, ..."""
        (rows,) = self.nb().select(("Logical_Switch_Port", [["name", "==", port]]))
        if not rows:
            return None
        row = rows[0]
        row["up"] = row["up"] is True
        return row

    def binding(self, port):
        """Who is bound to a port, by chassis name."""
        rows, chassis = self.sb().select(
            ("Port_Binding", [["logical_port", "==", port]]),
            ("Chassis", [], ["_uuid", "name"]))
        if not rows:
            return None
        names = {row["_uuid"]: row["name"] for row in chassis}

        def all_names(value):
            return sorted(names[one] for one in (value if isinstance(value, list) else [value]))

        def one_name(value):
            return (all_names(value) or [None])[0]

        row = rows[0]
        return {
            "chassis": one_name(row["chassis"]),
            "additional": all_names(row["additional_chassis"]),
            "requested": one_name(row["requested_chassis"]),
            "requested_additional": all_names(row["requested_additional_chassis"]),
            "options": row["options"],
            "external_ids": row["external_ids"],
            "up": row["up"] is True,
        }

    def set_requested_chassis(self, port, *chassis, activation_strategy=None):
        """Pins a port by hand; without a chassis it is unpinned."""
        self.request_chassis([port], chassis, activation_strategy)

    def request_chassis(self, ports, chassis=(), activation_strategy=None):
        """The same for several ports, in one transaction."""
        arguments = []
        for port in ports:
            for key, value in (("requested-chassis", ",".join(chassis)),
                               ("activation-strategy", activation_strategy)):
                arguments += ["--", "remove", "Logical_Switch_Port", port, "options", key]
                if value:
                    arguments += ["--", "set", "Logical_Switch_Port", port,
                                  f"options:{key}=\"{value}\""]
        self.nbctl(*arguments[1:])

    def wait_bound(self, port, host, timeout=30):
        """Until one host alone has the port."""
        def bound():
            binding = self.binding(port)
            return (binding["chassis"] == host.chassis and not binding["additional"]
                    and binding["up"])
        wait_until(bound, f"{port} on {host.name}", timeout)

    # --- guests ---

    def define_guest(self, host, name, nics, **options):
        """A guest, defined on a host. See Guest for the options."""
        guest = Guest(name, nics, **options)
        host.write(f"/run/lab/{name}.xml", guest.xml())
        host.virsh("define", f"/run/lab/{name}.xml")
        return guest

    def boot(self, guest, host, timeout=60, ping=True):
        """Starts a guest and waits until it is up, bound, and answers a client on its switch."""
        host.virsh("start", guest.name)
        console = pathlib.Path(host.path(guest.console))
        wait_until(lambda: console.exists() and BOOTED in console.read_text(errors="replace"),
                   f"{guest.name} to boot", timeout, interval=0.05)
        for nic in guest.nics:
            if nic.port in self._ports and nic.ip:
                self.wait_bound(nic.port, host, timeout)
                if ping:
                    self.wait_for_ping(nic)

    def wait_for_ping(self, nic, timeout=60):
        self.probe(nic, rate=20, duration=timeout, name="boot").wait_for_replies(timeout).stop()

    def guest_location(self, guest):
        """The hosts where libvirt says that the guest runs."""
        return [host for host in self.hypervisors
                if guest.name in host.virsh("list", "--name", "--state-running").split()]

    def start_migration(self, guest, source, destination, *extra, live=True, **options):
        command = ["virsh", "-q", "-c", "qemu:///system", "migrate",
                   *(["--live"] if live else []), *extra, guest.name, destination.uri]
        return RunningMigration(source.popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options))

    def migrate(self, guest, source, destination, *extra, live=True, timeout=60):
        """Migrates a guest as an operator would."""
        return self.start_migration(guest, source, destination, *extra, live=live).wait(timeout)

    # --- what happened ---

    def events(self, host, since=0):
        events = []
        with open(host.logs / "events.log", encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if line.endswith("\n") and len(words) > 2 and words[0].isdigit():
                    if int(words[0]) >= since:
                        events.append(Event(int(words[0]), words[1], words[2], words[3:]))
        return events

    def guest_pause(self, guest, source, destination, since, timeout=30):
        """The time a migrated guest stood still, from libvirt's events.

        From SUSPENDED/MIGRATED at the source to RESUMED/MIGRATED (or POSTCOPY)
        at the destination, both since a given time.
        """
        def find():
            start = [event.time for event in self.events(source, since)
                     if event.domain == guest.name
                     and event.is_lifecycle(SUSPENDED, SUSPENDED_MIGRATED)]
            end = [event.time for event in self.events(destination, since)
                   if event.domain == guest.name
                   and (event.is_lifecycle(RESUMED, RESUMED_MIGRATED)
                        or event.is_lifecycle(RESUMED, RESUMED_POSTCOPY))]
            return start and end and Pause(start[-1], end[0])
        return wait_until(find, f"the end of {guest.name}'s pause", timeout)

    def qemu_pause(self, guest, source, destination, since):
        """The same as QEMU itself tells it: STOP to RESUME."""
        def times(host, name):
            return [int(event.fields[1]) for event in self.events(host, since)
                    if event.domain == guest.name and event.kind == "qemu"
                    and event.fields[0] == name]
        start, end = times(source, "STOP"), times(destination, "RESUME")
        return Pause(start[-1], end[-1]) if start and end else None

    # --- probes ---

    def client_port(self, switch, *networks):
        """An interface of the client on a switch, made at the first use."""
        if switch not in self._client_ports:
            addresses = []
            for network in (ipaddress.ip_interface(one).network for one in networks if one):
                # Far from where guests have theirs.
                addresses.append(f"{network.network_address + min(250, network.num_addresses - 6)}"
                                 f"/{network.prefixlen}")
            port, mac = str(uuid.uuid4()), self.new_mac()
            self.add_port(switch, port, mac, *addresses)
            self._client_ports[switch] = self.client.add_port(port, mac, *addresses)
        return self._client_ports[switch]

    def probe(self, nic, rate=1000, duration=120, name="probe", kind="icmp", family=4):
        """Starts a probe from the client to a guest's interface; see probe.c for the kinds."""
        interface = self.client_port(self._ports[nic.port], nic.ip, nic.ip6)
        address = nic.address if family == 4 else nic.address6
        # The answer to an ARP request is not what is measured.
        self.client.run(["ip", "neigh", "replace", address, "lladdr", nic.mac,
                         "dev", interface, "nud", "permanent"])
        return Probe(self.client, address, interface, rate, duration, name, kind)


def _birth(pid):
    """When a process started, or None if there is no such process."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie has ended.
    return None if fields[0] == "Z" else fields[19]


def handle_signals():
    """Turns a request to end into an exception, so that labs are taken down."""
    def on_signal(number, _frame):
        raise SystemExit(128 + number)
    # SIGINT too: a shell starts what runs in the background with it ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
