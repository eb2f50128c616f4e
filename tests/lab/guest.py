# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests: what they are made of."""

import dataclasses
import ipaddress
import shlex
import uuid
from xml.sax.saxutils import escape, quoteattr

from . import artifacts

BOOTED = "portferry-lab: guest is up"

# - The ACPI timer, since a guest with the default clock source may hang after
#   a migration under emulation.
# - panic=0: a guest that panics must stay as it is, to be looked at.
KERNEL_ARGUMENTS = "console=ttyS0 quiet clocksource=acpi_pm no_timer_check nowatchdog panic=0"


@dataclasses.dataclass
class Nic:
    """A network interface of a guest.

    kind "ovs" is plugged into br-int with `port` as its iface-id; whether OVN
    has a port of that name is the test's business. kind "bridge" is plugged
    into a Linux bridge, and kind "user" into nothing that the host can see.
    """

    mac: str
    ip: str = None
    """Address and prefix length inside the guest, or None."""
    port: str = None
    kind: str = "ovs"
    bridge: str = None
    gateway: str = None
    ip6: str = None
    """The same for IPv6."""
    gateway6: str = None

    @property
    def address(self):
        return str(ipaddress.ip_interface(self.ip).ip)

    @property
    def address6(self):
        return str(ipaddress.ip_interface(self.ip6).ip)

    def xml(self):
        lines = [f"<mac address={quoteattr(self.mac)}/>", "<model type='virtio'/>",
                 # The userspace datapath computes no checksums and cuts no segments: without
                 # this every TCP connection through it hangs, while ping works.
                 "<driver>",
                 "  <host csum='off' gso='off' tso4='off' tso6='off' ecn='off' ufo='off'/>",
                 "  <guest csum='off' tso4='off' tso6='off' ecn='off' ufo='off'/>",
                 "</driver>",
                 # Without an option ROM there is nothing to look up at boot.
                 "<rom enabled='no'/>"]
        if self.kind == "user":
            return self._interface("user", lines)
        if self.kind == "bridge":
            lines.append(f"<source bridge={quoteattr(self.bridge or 'plain0')}/>")
            return self._interface("bridge", lines)
        lines += [
            f"<source bridge={quoteattr(self.bridge or 'br-int')}/>",
            "<virtualport type='openvswitch'>",
            f"  <parameters interfaceid={quoteattr(self.port)}/>" if self.port else "",
            "</virtualport>",
        ]
        return self._interface("bridge", lines)

    @staticmethod
    def _interface(kind, lines):
        return "\n".join([f"<interface type='{kind}'>", *lines, "</interface>"])


@dataclasses.dataclass
class Guest:
    """A domain, the same on every host.

    kind "linux" is busybox on Debian's kernel. kind "bare" is a program without
    an operating system (guest/bare): it can only answer, stream and dirty
    memory, but costs an emulator next to nothing, so that it hides nothing of
    what a network does.
    """

    name: str
    nics: list
    kind: str = "linux"
    memory_mib: int = None
    dirty_kib: int = 0
    """How much memory the guest changes, in KiB per second."""
    programs: list = dataclasses.field(default_factory=list)
    """Further command lines to run inside; see the folder guest."""
    uuid: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))
    metadata: str = ""
    """XML that goes into the domain's <metadata>."""
    disk: str = None
    """A raw file on its host, or nothing."""

    def __post_init__(self):
        if self.memory_mib is None:
            self.memory_mib = {"linux": 128, "bare": 8}[self.kind]

    @property
    def console(self):
        """The console's log, where it is on every host."""
        return f"/var/log/console-{self.name}.log"

    def _kernel_arguments(self):
        words = [KERNEL_ARGUMENTS] if self.kind == "linux" else []
        for nic in self.nics:
            for address, gateway in ((nic.ip, nic.gateway), (nic.ip6, nic.gateway6)):
                if address:
                    words.append(f"pf.nic={nic.mac.lower()},{address}"
                                 + (f",{gateway}" if gateway else ""))
        programs = list(self.programs)
        if self.dirty_kib:
            programs.append(f"dirty {self.dirty_kib}")
        words += ["pf.run=" + ",".join(shlex.split(program)) for program in programs]
        return " ".join(words)

    def _boot(self):
        if self.kind == "bare":
            return f"<kernel>{escape(str(artifacts.bare()))}</kernel>"
        return (f"<kernel>{escape(str(artifacts.kernel()))}</kernel>\n"
                f"    <initrd>{escape(str(artifacts.initramfs()))}</initrd>")

    def xml(self):
        metadata = f"<metadata>{self.metadata}</metadata>" if self.metadata else ""
        nics = "\n".join(nic.xml() for nic in self.nics)
        disk = f"""\
<disk type='file' device='disk'>
  <driver name='qemu' type='raw' cache='none'/>
  <source file={quoteattr(self.disk)}/>
  <target dev='vda' bus='virtio'/>
</disk>""" if self.disk else ""
        # Emulated, since a machine's KVM may not work inside another one.
        return f"""\
<domain type='qemu'>
  <name>{escape(self.name)}</name>
  <uuid>{self.uuid}</uuid>
  {metadata}
  <memory unit='MiB'>{self.memory_mib}</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc-i440fx-7.2'>hvm</type>
    {self._boot()}
    <cmdline>{escape(self._kernel_arguments())}</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='custom' match='exact' check='none'><model>qemu64</model></cpu>
  <on_crash>preserve</on_crash>
  <devices>
    <emulator>{escape(str(artifacts.QEMU))}</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    <serial type='file'>
      <source path={quoteattr(self.console)}/>
    </serial>
    {disk}
    {nics}
  </devices>
</domain>
"""
