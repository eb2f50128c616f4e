# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real libvirt, OVS and OVN hosts on one machine, for tests and the demo."""

from .guest import Guest, Nic
from .hosts import CommandError, Host, Hypervisor, LabError, wait_until
from .lab import Lab, Migration
from .probe import Probe, ProbeResult
from .tapwatch import TapTimes, TapWatch

__all__ = [
    "CommandError",
    "Guest",
    "Host",
    "Hypervisor",
    "Lab",
    "LabError",
    "Migration",
    "Nic",
    "Probe",
    "ProbeResult",
    "TapTimes",
    "TapWatch",
    "wait_until",
]
