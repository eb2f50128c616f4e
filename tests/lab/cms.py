# SPDX-License-Identifier: LGPL-2.1-or-later
"""A guest whose ports are a CMS's, as Neutron's are."""

from .scenario import LabCase, handovers, ovn_nics

ACTIVATED = "additional-chassis-activated"


class CmsCase(LabCase):
    """A guest whose port is pinned to where it runs, and moved by somebody else."""

    @classmethod
    def furnish(cls):
        nics = []
        for number in range(2):
            cls.lab.add_switch(f"ls{number}")
            nics.append(cls.add_nic(f"ls{number}", f"10.0.{number}.11/24"))
        cls.nic = nics[0]
        cls.guest = cls.add_guest("vm1", nics, dirty_kib=30000)
        host = cls.lab.hypervisors[0]
        for nic in nics:
            cls.lab.set_requested_chassis(nic.port, host.chassis)
            cls.lab.wait_bound(nic.port, host)

    # --- the CMS ---

    def cms_begins(self, source, destination):
        for nic in ovn_nics(self.lab, self.guest):
            self.lab.set_requested_chassis(nic.port, source.chassis, destination.chassis,
                                           activation_strategy="rarp")

    def cms_ends(self, host):
        for nic in ovn_nics(self.lab, self.guest):
            self.lab.set_requested_chassis(nic.port, host.chassis)

    # --- what is seen ---

    def last(self, host):
        return handovers(host, self.guest.uuid, self.began)[-1]

    def waiting(self, host, handover):
        answer = host.run(["busctl", "get-property", "org.portferry1", handover.path,
                           "org.portferry1.Handover", "Waiting"])
        return answer.stdout.strip()

    def binding(self):
        return self.lab.binding(self.nic.port)

    def is_open(self):
        return [ACTIVATED in self.lab.binding(nic.port)["options"] for nic in self.guest.nics]

    def assert_turn(self, host, phase, wanted):
        handover = self.wait_for_phase(host, self.guest, phase)
        self.assertIn(f"requested-chassis of the ports to {wanted.chassis} alone",
                      self.waiting(host, handover))
        return handover
