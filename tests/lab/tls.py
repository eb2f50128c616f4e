# SPDX-License-Identifier: LGPL-2.1-or-later
"""The southbound database as OVN's security advice has it: TLS, and clients that
may do no more than an ovn-controller (role-based access control)."""

from .hosts import wait_until

FOLDER = "/etc/lab-tls"
KEY, CERTIFICATE, AUTHORITY = (f"{FOLDER}/{name}.pem" for name in ("key", "cert", "ca"))

MAKE_AUTHORITY = """
    mkdir -p {folder}/authority; cd {folder}/authority
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out ca.pem -days 2 \
        -subj "/CN=lab authority" 2>/dev/null
"""
MAKE_CERTIFICATE = """
    cd {folder}/authority
    openssl req -newkey rsa:2048 -nodes -keyout "{name}-key.pem" -out request.pem \
        -subj "/CN={name}" 2>/dev/null
    openssl x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial \
        -days 2 -out "{name}-cert.pem" 2>/dev/null
"""


def issue(central, host, name):
    """Gives a host a certificate, whose name is the role's only proof of who asks."""
    central.shell(MAKE_CERTIFICATE.format(folder=FOLDER, name=name))
    for source, target in ((f"{name}-key.pem", KEY), (f"{name}-cert.pem", CERTIFICATE),
                           ("ca.pem", AUTHORITY)):
        text = central.run(["cat", f"{FOLDER}/authority/{source}"]).stdout
        host.write(target, text, 0o600)


def secure_southbound(lab):
    """Leaves the hosts no other way to the southbound database; returns their remote."""
    central = lab.central
    remote = f"ssl:{central.mgmt_ip}:6642"
    central.shell(MAKE_AUTHORITY.format(folder=FOLDER))
    issue(central, central, "central")
    lab.sbctl("set-ssl", KEY, CERTIFICATE, AUTHORITY, "--",
              "set-connection", "role=ovn-controller", "pssl:6642")
    service = central.services["sb"]
    command = [word for word in service.command if "ptcp:" not in str(word)]
    central.stop_service("sb")
    central.start_service(
        "sb",
        [*command, "--remote=db:OVN_Southbound,SB_Global,connections",
         "--private-key=db:OVN_Southbound,SSL,private_key",
         "--certificate=db:OVN_Southbound,SSL,certificate",
         "--ca-cert=db:OVN_Southbound,SSL,ca_cert"],
        **service.options)
    for host in (lab.client, *lab.hypervisors):
        issue(central, host, host.chassis)
        host.vsctl("set-ssl", KEY, CERTIFICATE, AUTHORITY, "--",
                   "set", "Open_vSwitch", ".", f"external_ids:ovn-remote=\"{remote}\"")
        wait_until(
            lambda host=host: host.run(["ovn-appctl", "-t", "ovn-controller",
                                        "connection-status"]).stdout.strip() == "connected",
            f"ovn-controller's connection on {host.name}")
    return remote


def close_northbound(lab):
    """Leaves the hosts no way to the northbound database."""
    central = lab.central
    service = central.services["nb"]
    command = [word for word in service.command if "ptcp:" not in str(word)]
    central.stop_service("nb")
    central.start_service("nb", command, **service.options)
