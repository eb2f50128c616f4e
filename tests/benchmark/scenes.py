# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where is measured: the paths from a client to the guest, and the sizes of the network.

A scene is a lab with guests in it. Every path ends at an interface of the
host `client`, be it a port of OVN or one of the physical network.
"""

import dataclasses
import time
import uuid

from lab import Lab
from lab.probe import TCP_PORT, Probe

PATIENCE = 300
# What all probes of one kind together send per second, so that many guests or
# interfaces don't measure the machine.
TOTAL_RATE = 4000
# Of the filling: as many ports on each of its switches.
PORTS_PER_SWITCH = 100
COLD_ACLS = 3000
# Bytes a second: enough to have something under way at any time.
TCP_RATE = 1000000


@dataclasses.dataclass
class Target:
    """An address of a guest, as the client reaches it."""

    label: str
    guest: object
    address: str
    interface: str
    mac: str = None
    """The neighbour's, where it is the guest itself: ARP is not what is measured."""

    def probe(self, host, kind, rate):
        if self.mac:
            host.run(["ip", "neigh", "replace", self.address, "lladdr", self.mac,
                      "dev", self.interface, "nud", "permanent"])
        return Probe(host, self.address, self.interface, rate, name=kind, kind=kind)


class Scene:
    """One guest and the client on a logical switch: everything goes through a tunnel."""

    key = "tunnel"
    title = "the same logical switch, through a tunnel"
    probes = (("icmp", 1000), ("udp", 1000), ("stream", 1000))
    kind = "bare"
    memory_mib = None
    programs = ()
    # Between suspend and resume.
    floor_pause_s = 0.2
    gateways = 0
    # Both hypervisors have a port of the guest's switch anyway, as hosts have
    # that run more than one guest.
    residents = True

    def __init__(self, ports=100, guests=1, nics=1, hypervisors=2):
        self.ports = ports
        self.n_guests = guests
        self.n_nics = nics
        self.lab = Lab(hypervisors=hypervisors, gateways=self.gateways)
        self.source, self.destination = self.lab.hypervisors[:2]
        self.guests = []
        self.targets = []

    @property
    def size(self):
        return {"ports": self.ports, "guests": self.n_guests, "nics": self.n_nics}

    @property
    def probe_kinds(self):
        """[(kind, rate)] of the probes of each target."""
        share = max(1, self.n_guests * self.n_nics)
        if share == 1:
            return list(self.probes)
        return [("icmp", min(1000, max(100, TOTAL_RATE // share)))]

    @property
    def movers(self):
        """The ports that move."""
        return [nic.port for guest in self.guests for nic in guest.nics]

    # --- life ---

    def __enter__(self):
        self.lab.__enter__()
        try:
            self.furnish()
            self.fill(self.ports - len(self.movers))
            for guest in self.guests:
                self.lab.boot(guest, self.source, timeout=PATIENCE, ping=False)
            self.add_targets()
            self.wait_for_answers()
        except BaseException as error:
            self.lab.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, *arguments):
        return self.lab.__exit__(*arguments)

    def wait_for_answers(self):
        for target in self.targets:
            target.probe(self.lab.client, "icmp", 20).wait_for_replies(PATIENCE).stop()

    def turn_round(self):
        self.source, self.destination = self.destination, self.source

    # --- what is in it ---

    def furnish(self):
        """Makes switches, ports and guests."""
        self.lab.add_switch("ls0")
        self.add_guests("ls0")
        if self.residents:
            self.add_residents("ls0")

    def add_targets(self):
        """Says where the probes go."""
        for guest in self.guests:
            for number, nic in enumerate(guest.nics):
                interface = self.lab.client_port("ls0", nic.ip, nic.ip6)
                self.targets.append(Target(f"{guest.name}.{number}", guest, nic.address, interface,
                                           nic.mac))

    def add_guests(self, switch, **options):
        for guest in range(self.n_guests):
            nics = [self.lab.add_nic(switch, ip=f"10.0.{guest}.{11 + nic}/16", **options)
                    for nic in range(self.n_nics)]
            self.guests.append(self.lab.define_guest(
                self.source, f"vm{guest + 1}", nics, kind=self.kind, memory_mib=self.memory_mib,
                programs=list(self.programs)))

    def add_residents(self, switch):
        """A port on either hypervisor that stays."""
        for number, host in enumerate(self.lab.hypervisors):
            port, mac = str(uuid.uuid4()), self.lab.new_mac()
            self.lab.add_port(switch, port, mac, f"10.0.200.{number + 1}")
            host.vsctl("add-port", "br-int", "resident0", "--", "set", "Interface", "resident0",
                       "type=internal", f'mac="{mac}"', f"external_ids:iface-id={port}")

    def fill(self, ports):
        """Other people's ports, so many of them."""
        database = self.lab.nb()
        made = 0
        while made < ports:
            count = min(PORTS_PER_SWITCH, ports - made)
            number = made // PORTS_PER_SWITCH
            operations = []
            for index in range(count):
                high, low = divmod(index, 250)
                mac = f"0a:00:{number >> 8:02x}:{number & 255:02x}:{high:02x}:{low:02x}"
                operations.append({
                    "op": "insert", "table": "Logical_Switch_Port", "uuid-name": f"p{index}",
                    "row": {"name": str(uuid.uuid4()),
                            "addresses": f"{mac} 10.9.{high}.{low + 1}"}})
            operations.append({
                "op": "insert", "table": "Logical_Switch",
                "row": {"name": f"others{number}",
                        "ports": ["set", [["named-uuid", f"p{index}"]
                                          for index in range(count)]]}})
            database.transact(*operations)
            made += count
        self.lab.nbctl("--wait=sb", "--timeout=600", "sync", timeout=PATIENCE * 3)

    # --- what northd takes ---

    def northd_costs(self):
        """A northbound change's way to the southbound database, in ms; northd's own times."""
        began = time.monotonic()
        self.lab.nbctl("--wait=sb", "sync", timeout=PATIENCE)
        whole = (time.monotonic() - began) * 1000
        pid = self.lab.central.run(["cat", "/run/ovn/ovn-northd.pid"]).stdout.strip()
        text = self.lab.central.run(
            ["ovn-appctl", "-t", f"/run/ovn/ovn-northd.{pid}.ctl", "stopwatch/show"]).stdout
        times, name = {}, None
        for line in text.splitlines():
            if line.startswith("Statistics for"):
                name = line.split("'")[1]
            elif name and ":" in line:
                key, _colon, value = line.strip().partition(":")
                if key in ("Maximum", "50th percentile", "95th percentile", "Total samples"):
                    times.setdefault(name, {})[key] = float(value.split()[0])
        return {"sync_ms": whole, "stopwatches": times}


class Router(Scene):
    key = "router"
    title = "across a logical router"

    def furnish(self):
        lab = self.lab
        lab.add_switch("ls0")
        lab.add_switch("ls1")
        lab.nbctl("lr-add", "lr0")
        add_router_port(lab, "lr0", "ls0", "0a:01:00:00:00:01", "10.0.0.1/16")
        add_router_port(lab, "lr0", "ls1", "0a:01:00:00:00:02", "10.1.0.1/24")
        self.add_guests("ls0", gateway="10.0.0.1")
        self.add_residents("ls0")

    def add_targets(self):
        interface = self.lab.client_port("ls1", "10.1.0.1/24")
        self.lab.client.shell(f"ip route add 10.0.0.0/16 via 10.1.0.1 dev {interface}")
        for guest in self.guests:
            self.targets.append(Target(guest.name, guest, guest.nics[0].address, interface))


class Ip6(Scene):
    key = "ipv6"
    title = "the same logical switch, IPv6"

    def furnish(self):
        self.lab.add_switch("ls0")
        nics = [self.lab.add_nic("ls0", ip="10.0.0.11/16", ip6="fd00::11/64")]
        self.guests.append(self.lab.define_guest(self.source, "vm1", nics, kind=self.kind))
        self.add_residents("ls0")

    def add_targets(self):
        for guest in self.guests:
            nic = guest.nics[0]
            interface = self.lab.client_port("ls0", nic.ip, nic.ip6)
            self.targets.append(Target(guest.name, guest, nic.address6, interface, nic.mac))


class Physical(Scene):
    """Guests that the physical network reaches through the hosts' own br-phys."""

    OUTSIDE = "br-phys"

    def map_physical(self, *hosts):
        for host in hosts:
            host.vsctl("set", "Open_vSwitch", ".",
                       "external_ids:ovn-bridge-mappings=physnet:br-phys")

    def add_localnet(self, switch, tag=None):
        port = f"{switch}-physnet"
        self.lab.nbctl("lsp-add", switch, port, "--", "lsp-set-type", port, "localnet", "--",
                       "lsp-set-addresses", port, "unknown", "--",
                       "lsp-set-options", port, "network_name=physnet",
                       *(["--", "set", "Logical_Switch_Port", port, f"tag_request={tag}",
                          f"tag={tag}"] if tag else []))


class FloatingIp(Physical):
    key = "fip"
    title = "a distributed floating IP, from outside"
    gateways = 1
    ADDRESS = "172.31.0.200"
    MAC = "0a:02:00:00:00:01"
    ROUTER_MAC = "0a:01:00:00:00:02"

    def furnish(self):
        lab = self.lab
        (gateway,) = lab.gateways
        self.map_physical(*lab.hypervisors, gateway)
        lab.add_switch("ls0")
        lab.add_switch("outside")
        self.add_localnet("outside")
        lab.nbctl("lr-add", "lr0")
        add_router_port(lab, "lr0", "ls0", "0a:01:00:00:00:01", "10.0.0.1/16")
        add_router_port(lab, "lr0", "outside", self.ROUTER_MAC, "172.31.0.199/24")
        lab.nbctl("lrp-set-gateway-chassis", "lr0-outside", gateway.chassis)
        self.add_guests("ls0", gateway="10.0.0.1")
        self.add_residents("ls0")
        nic = self.guests[0].nics[0]
        lab.nbctl("lr-nat-add", "lr0", "dnat_and_snat", self.ADDRESS, nic.address,
                  *self.nat_options(nic))

    def nat_options(self, nic):
        return [nic.port, self.MAC]

    def add_targets(self):
        self.targets.append(Target("vm1", self.guests[0], self.ADDRESS, self.OUTSIDE))


class CentralFloatingIp(FloatingIp):
    key = "fip-central"
    title = "a centralised floating IP, from outside"

    def nat_options(self, nic):
        return []


class Vlan(Physical):
    key = "vlan"
    title = "a VLAN of the physical network (localnet)"
    TAG = 100

    def furnish(self):
        self.map_physical(*self.lab.hypervisors)
        self.lab.add_switch("ls0")
        self.add_localnet("ls0", self.TAG)
        self.add_guests("ls0")
        self.add_residents("ls0")

    def add_targets(self):
        client = self.lab.client
        client.vsctl("add-port", "br-phys", "vlan0", f"tag={self.TAG}", "--",
                     "set", "Interface", "vlan0", "type=internal")
        client.shell("""
            ethtool -K vlan0 tx off >/dev/null
            ip addr add 10.0.0.250/16 dev vlan0
            ip link set vlan0 up
        """)
        for guest in self.guests:
            nic = guest.nics[0]
            self.targets.append(Target(guest.name, guest, nic.address, "vlan0", nic.mac))


class Acl(Scene):
    key = "acl"
    title = "ACLs with connection tracking: the guest may only answer"

    def furnish(self):
        super().furnish()
        for direction, match, verdict in (
                ("to-lport", "ip4 && (icmp4 || udp || tcp)", "allow-related"),
                ("to-lport", "ip", "drop"),
                ("from-lport", "inport == @moving && ip", "drop")):
            priority = "1000" if verdict == "drop" else "1001"
            if "@moving" in match:
                self.lab.nbctl("pg-add", "moving", *self.movers)
            self.lab.nbctl("acl-add", "ls0", direction, priority, match, verdict)


class Cold(Scene):
    key = "cold"
    title = f"a cold destination: the switch's first port there, {COLD_ACLS:,} ACLs"
    residents = False

    def furnish(self):
        super().furnish()
        (switch,) = self.lab.nb().select(("Logical_Switch", [["name", "==", "ls0"]]))[0]
        for first in range(0, COLD_ACLS, 500):
            operations, names = [], []
            for number in range(first, first + 500):
                names.append(f"a{number}")
                operations.append({
                    "op": "insert", "table": "ACL", "uuid-name": f"a{number}",
                    "row": {"direction": "to-lport", "priority": 2000, "action": "drop",
                            "match": f"ip4.src == 192.168.{number // 250}.{number % 250} && "
                                     f"tcp.dst == {1000 + number}"}})
            operations.append({
                "op": "mutate", "table": "Logical_Switch",
                "where": [["_uuid", "==", ["uuid", switch["_uuid"]]]],
                "mutations": [["acls", "insert", ["set", [["named-uuid", name]
                                                          for name in names]]]]})
            self.lab.nb().transact(*operations)
        for host in self.lab.hypervisors:
            host.vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-monitor-all=false")


class Nics(Scene):
    key = "nics"
    title = "a guest with four interfaces"

    def __init__(self, nics=4, **options):
        super().__init__(nics=max(4, nics), **options)


class Fast(Scene):
    key = "fast"
    title = "10,000 datagrams a second, towards the guest and from it"
    probes = (("sink", 10000), ("stream", 10000))
    # What is sent to the guest meanwhile must fit in the queue of its tap, 1,000 packets.
    floor_pause_s = 0


class LongPause(Scene):
    """QEMU stops a guest that changes its memory faster than it can be copied."""

    key = "pause"
    title = "a guest that changes its memory all the time, and stands still for longer"
    memory_mib = 48
    programs = ("dirty 20000 40000",)


class Tcp(Scene):
    key = "tcp"
    title = "one long TCP transfer to a guest with Linux"
    kind = "linux"
    probes = (("icmp", 1000), ("tcp", TCP_RATE))
    programs = (f"tcpsink {TCP_PORT}",)


class AclTcp(Acl):
    key = "acl-tcp"
    title = "ACLs with connection tracking: a TCP session that was there before"
    kind = "linux"
    probes = (("icmp", 1000), ("tcp", TCP_RATE))
    programs = (f"tcpsink {TCP_PORT}",)


SCENES = {scene.key: scene for scene in (
    Scene, FloatingIp, Router, CentralFloatingIp, Vlan, Ip6, Nics, LongPause, Acl, AclTcp, Cold,
    Fast, Tcp)}


def add_router_port(lab, router, switch, mac, network):
    port = f"{router}-{switch}"
    lab.nbctl("lrp-add", router, port, mac, network, "--",
              "lsp-add", switch, f"{switch}-{router}", "--",
              "lsp-set-type", f"{switch}-{router}", "router", "--",
              "lsp-set-addresses", f"{switch}-{router}", "router", "--",
              "lsp-set-options", f"{switch}-{router}", f"router-port={port}", "nat-addresses=router")
