# SPDX-License-Identifier: LGPL-2.1-or-later
"""The world outside of OVN: a network that only floating IPs connect guests to.

    outside = Outside(lab)
    nic = outside.add_nic("ls0", "10.0.0.11/24")
    outside.add_floating_ip(nic, "198.51.100.11", distributed=True)
    probe = outside.probe("198.51.100.11").wait_for_replies()

It is the lab's physical network itself: every host has it under br-phys, and the
probes come from the underlay, which OVN knows nothing of. Its bridge learns where
a MAC is as a data centre's switches do.
"""

import ipaddress

from .probe import Probe


class Outside:
    """A network outside, and a router with a distributed gateway port to it."""

    NETWORK = "physnet"
    SWITCH = "outside"
    ROUTER = "router"
    GATEWAY_PORT = "router-outside"
    OWN = "198.51.100.1/24"
    ROUTER_ADDRESS = "198.51.100.2/24"

    def __init__(self, lab, gateway_host=None):
        """`gateway_host`: where what is not distributed goes through; the client."""
        self.lab = lab
        gateway_host = gateway_host or lab.client
        lab.underlay.shell(f"ip addr add {self.OWN} dev phys")
        for host in [lab.client, *lab.hypervisors]:
            host.vsctl("set", "Open_vSwitch", ".",
                       f"external_ids:ovn-bridge-mappings={self.NETWORK}:br-phys")
        lab.nbctl(
            "lr-add", self.ROUTER, "--", "ls-add", self.SWITCH, "--",
            "lsp-add", self.SWITCH, "outside-net", "--",
            "lsp-set-type", "outside-net", "localnet", "--",
            "lsp-set-addresses", "outside-net", "unknown", "--",
            "lsp-set-options", "outside-net", f"network_name={self.NETWORK}")
        self._connect(self.SWITCH, self.GATEWAY_PORT, self.ROUTER_ADDRESS,
                      "nat-addresses=router")
        lab.nbctl("lrp-set-gateway-chassis", self.GATEWAY_PORT, gateway_host.chassis)

    def _connect(self, switch, port, address, *options):
        peer = f"{switch}-router"
        self.lab.nbctl(
            "lrp-add", self.ROUTER, port, self.lab.new_mac(), address, "--",
            "lsp-add", switch, peer, "--", "lsp-set-type", peer, "router", "--",
            "lsp-set-addresses", peer, "router", "--",
            "lsp-set-options", peer, f"router-port={port}", *options)

    def connect(self, switch, address):
        """Puts a switch behind the router, which has `address` there."""
        self._connect(switch, f"router-{switch}", address)

    def add_floating_ip(self, nic, external, distributed):
        """An address outside for a guest's interface; its MAC, if it has its own."""
        internal = nic.address
        if distributed:
            mac = self.lab.new_mac()
            self.lab.nbctl("lr-nat-add", self.ROUTER, "dnat_and_snat", external, internal,
                           nic.port, mac)
            return mac
        self.lab.nbctl("lr-nat-add", self.ROUTER, "dnat_and_snat", external, internal)
        return None

    def probe(self, external, rate=1000, duration=120, name="outside"):
        """Starts a probe from outside to a floating IP."""
        return Probe(self.lab.underlay, external, None, rate, duration, name)

    def host_of(self, mac):
        """The name of the host behind which the outside has learned a MAC, or None."""
        for line in self.lab.underlay.run(["bridge", "fdb", "show", "br", "phys"]).stdout.splitlines():
            words = line.split()
            if words[0] == mac and "permanent" not in words:
                return words[2].removesuffix("-phys")
        return None

    @property
    def address(self):
        return str(ipaddress.ip_interface(self.OWN).ip)
