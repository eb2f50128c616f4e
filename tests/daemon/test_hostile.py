# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is broken or meant to break portferryd: test_hostile.py PORTFERRYD BUS-TEST-DIRECTORY CALLER"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time

from test_daemon import (HANDOVER, MANAGER, PORT, PORT2, ROOT, UNBOUND, UUID, DBusError, as_bytes,
                         can_isolate, run, stop, wait_for, world)

CALLER = os.path.abspath(sys.argv[3])
NOBODY = 65534


class Journal:
    """The journal of a host, as far as its socket goes: what portferryd sends is taken apart."""

    def __init__(self, host):
        path = f"/proc/{host.process.pid}/root/run/systemd/journal"
        os.makedirs(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path + "/socket")
        self.socket.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def entries(self):
        """Each entry since the last call, as a list of its fields."""
        entries = []
        while True:
            try:
                data = self.socket.recv(1 << 20)
            except BlockingIOError:
                return entries
            assert data.endswith(b"\n"), data
            entries.append([tuple(line.split("=", 1)) for line in data.decode()[:-1].split("\n")])


def memory(host):
    """What the daemon needs, in KiB."""
    with open(f"/proc/{host.process.pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))


def xml_of(name="vm1", ports=(PORT,), uuid=UUID, before="", metadata="", root=""):
    interfaces = "".join(
        f"<interface type='bridge'><virtualport type='openvswitch'><parameters interfaceid='{p}'/>"
        f"</virtualport></interface>" for p in ports)
    return (f"{before}<domain type='kvm'{root}><name>{name}</name><uuid>{uuid}</uuid>{metadata}"
            f"<devices>{interfaces}</devices></domain>").encode()


def call_hook(host, method, xml, name="vm1"):
    """As the hook: an argument may be too long for a command line. Returns "" or the error."""
    path = os.path.join(host.folder, "xml")
    with open(path, "wb") as f:
        f.write(xml)
    answer = subprocess.run([CALLER, host.bus.address, "call", method, name, path],
                            capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode in (0, 1), answer
    return answer.stderr.strip() if answer.returncode else ""


def rows(central):
    """Everything that portferry may change in the northbound database."""
    return central.nb("--columns=name,options,external_ids", "list", "Logical_Switch_Port")


def test_bad_xml():
    """Refused with the reason, and nothing is changed."""
    with world() as (central, host):
        before = rows(central)
        filling = "<a>" + "x" * 1000 + "</a>"
        for wanted, xml in (
            ("larger than 1 MiB", xml_of(metadata="<metadata>" + filling * 10000 + "</metadata>")),
            ("DOCTYPE", xml_of(before="<!DOCTYPE domain [<!ENTITY x 'y'>]>")),
            ("DOCTYPE", xml_of(name="&x;", before="<!DOCTYPE domain SYSTEM 'file:///etc/passwd'>")),
            ("'x' not defined", xml_of(name="&x;")),
            ("NUL byte", xml_of(name="vm\0")),
            ("not UTF-8", xml_of().replace(b"vm1", b"vm\xff")),
            ("no UUID", xml_of().replace(f"<uuid>{UUID}</uuid>".encode(), b"")),
            ("not a UUID", xml_of(uuid="../../etc")),
            ("namespace", xml_of(root=" xmlns='urn:x'")),
            ("the domain XML", xml_of()[:-10]),
            ("is empty", b""),
            ("not a UUID", xml_of(ports=[""])),
            ("not a UUID", xml_of(ports=["x" * 10000])),
            ("not a UUID", xml_of(ports=["é"])),
            ("same interfaceid", xml_of(ports=[PORT, PORT])),
            ("more than 256 attributes", xml_of(root="".join(f" a{i}='x'" for i in range(300)))),
            ("one too many", xml_of(ports=[f"{i:08x}-0000-4000-8000-000000000000"
                                           for i in range(1025)])),
        ):
            for method in ("MigrateBegin", "StartedBegin"):
                error = call_hook(host, method, xml)
                assert wanted in error and len(error) < 2000, (wanted, error)
            assert call_hook(host, "Released", xml) == ""
        assert host.call("ListHandovers") == [[]] and rows(central) == before


def test_other_ports():
    """An interfaceid that names something else than a guest's port; and many of none."""
    with world() as (central, host):
        router, local, net = (PORT.replace("-0000-", f"-000{i}-", 1) for i in (1, 2, 3))
        central.nb("lr-add", "lr", "--", "lrp-add", "lr", "lrp", "52:54:00:00:01:01",
                   "192.0.2.1/24")
        for port, kind in ((router, "router"), (local, "localport"), (net, "localnet")):
            central.nb("lsp-add", "ls", port, "--", "lsp-set-type", port, kind)
        central.nb("lsp-set-options", router, "router-port=lrp")
        central.nb("lsp-set-options", net, "network_name=phys")
        for port in (router, local, net):
            wait_for(lambda port=port: central.sb("--bare", "--columns=_uuid", "find",
                                                  "Port_Binding", "logical_port=" + port))
        before = rows(central)
        for port in (router, local, net, PORT.replace("0a", "ff")):
            assert call_hook(host, "MigrateBegin", xml_of(ports=[port])) == ""
            host.refused("no such port of a guest", "PrePlug", "sass", UUID, "1", port, "")
        nowhere = [f"{i:08x}-0000-4000-8000-000000000000" for i in range(200)]
        assert call_hook(host, "MigrateBegin", xml_of(ports=nowhere)) == ""
        assert host.call("ListHandovers") == [[]] and rows(central) == before
        # Beside one that is a guest's, they are left alone.
        assert call_hook(host, "MigrateBegin", xml_of(ports=[*nowhere, router, PORT])) == ""
        path = host.only_handover()
        assert [port[0] for port in host.get("Ports", path)] == [PORT]
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")
        wait_for(lambda: rows(central) == before)


NAMES = (
    "vm\nPRIORITY=0\nMESSAGE=forged",
    "vm&#10;MESSAGE_ID=0123456789abcdef0123456789abcdef&#10;&#10;",
    "%n%n%s%s%s%100000d",
    "\u202egnp.1mv\u2028MESSAGE=forged",
    "x" * 100000,
    "'; reboot; '",
)


def test_names():
    """Whatever a domain is called: a line in the log, a value in its field, the name on the bus."""
    with world(preplug_timeout=2) as (central, host), Journal(host) as journal:
        for name in NAMES:
            raw = name.replace("&#10;", "\n")
            assert call_hook(host, "MigrateBegin", xml_of(name=name)) == ""
            path = host.only_handover()
            assert host.get("Domain", path) == raw
            assert host.bus.call(ROOT, MANAGER, "GetHandoverByDomain", "s", UUID) == [path]
            host.call("Rollback", path=path)
            host.wait_phase(path, "undone")
            # And where it is refused.
            error = call_hook(host, "MigrateBegin", xml_of(name=name, ports=[PORT, UNBOUND]), raw[:1000])
            assert "no chassis has the port" in error and "\n" not in error, error
            host.call("Forget", path=path)
            wait_for(lambda: central.marker(PORT) == {})

            entries = journal.entries()
            assert len(entries) > 4
            for entry in entries:
                fields = [field[0] for field in entry]
                assert len(fields) == len(set(fields)), entry
                assert {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"} <= set(fields), entry
                values = dict(entry)
                assert values["SYSLOG_IDENTIFIER"] == "portferryd"
                assert values["PRIORITY"] in ("4", "5", "6"), entry
                assert not values["MESSAGE"].startswith("forged"), entry
                assert values.get("MESSAGE_ID") != "0123456789abcdef0123456789abcdef", entry
                assert all(c.isprintable() for _, value in entry for c in value), entry
                assert sum(len(value) for _, value in entry) < 8000
            assert any("DOMAIN" in dict(entry) for entry in entries)
        # Other people's strings on the bus.
        for text in ("a\nPRIORITY=0", "%n%s", "x" * 100000, "\x1b[2J"):
            host.refused("", "PrePlug", "sass", text, "1", PORT, "")
            host.refused("", "PrePlug", "sass", UUID, "1", text, "")
            host.refused("", "PrePlug", "sass", UUID, "1", PORT, text)
            host.refused("", "GetHandoverByDomain", "s", text)
        for entry in journal.entries():
            assert len({field[0] for field in entry}) == len(entry), entry
            assert all(c.isprintable() for _, value in entry for c in value), entry


def test_bad_configuration():
    """The daemon ends and says why; the service manager does not try again."""
    with world() as (_central, host):
        stop(host.process)
        for wanted, text in (
            ("no key 'reddy-timeout'; the nearest is 'ready-timeout'",
             "[portferry]\nreddy-timeout=1\n"),
            ("not a number of seconds", "[portferry]\nready-timeout=soon\n"),
            ("no group [ferry]", "[ferry]\n"),
            ("portferry.conf", "ready-timeout=1\n"),
            ("UTF-8", "[portferry]\novn-nb=\0\n"),
            ("control characters", "[portferry]\novn-nb=tcp:1\\n2\n"),
        ):
            host.configure(text)
            answer = host.run_once()
            assert answer.returncode == 78 and wanted in answer.stderr, answer
            assert len(answer.stderr.splitlines()) == 1, answer
        os.unlink(host.config)
        os.mkdir(host.config)
        answer = host.run_once()
        assert answer.returncode == 78 and "can't be read: Is a directory" in answer.stderr, answer
        os.rmdir(host.config)
        os.symlink(host.config, host.config)
        answer = host.run_once()
        assert answer.returncode == 78 and "can't be read" in answer.stderr, answer
        os.unlink(host.config)
        # None is no error.
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(host.run_once(seconds=2))
        host.start()


def test_wrong_types():
    with world() as (central, host):
        before = rows(central)
        path = host.preplug(PORT)
        for target, interface, method, *args in (
            (ROOT, MANAGER, "MigrateBegin"),
            (ROOT, MANAGER, "MigrateBegin", "s", "vm1"),
            (ROOT, MANAGER, "MigrateBegin", "ss", "vm1", "<domain/>"),
            (ROOT, MANAGER, "MigrateBegin", "say(s)", "vm1", "0", "x"),
            (ROOT, MANAGER, "StartedBegin", "ays", "0", "vm1"),
            (ROOT, MANAGER, "Released", "i", "1"),
            (ROOT, MANAGER, "PrePlug", "sss", UUID, PORT, ""),
            (ROOT, MANAGER, "PrePlug", "v", "s", UUID),
            (ROOT, MANAGER, "Reload", "s", "x"),
            (ROOT, MANAGER, "ListHandovers", "s", "x"),
            (ROOT, MANAGER, "NoSuchMethod"),
            (ROOT, "org.portferry1.None", "Reload"),
            (ROOT, HANDOVER, "Activate"),
            (ROOT + "/handover", HANDOVER, "Activate"),
            (ROOT + "/handover/none", HANDOVER, "Activate"),
            (ROOT + "/handover/_", HANDOVER, "Activate"),
            (path, HANDOVER, "Activate", "b", "true"),
            (path, MANAGER, "Reload"),
            (path, "org.freedesktop.DBus.Properties", "Set", "ssv", HANDOVER, "Phase", "s", "done"),
            (path, "org.freedesktop.DBus.Properties", "Get", "ss", HANDOVER, "None"),
            (path, "org.freedesktop.DBus.Properties", "Get", "s", HANDOVER),
        ):
            try:
                answer = host.bus.call(target, interface, method, *args)
            except DBusError:
                continue
            raise AssertionError((target, interface, method, args, answer))
        assert host.get("Phase", path) == "binding"
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")
        wait_for(lambda: rows(central) == before)


def test_no_rights():
    """Others than root neither begin nor end anything (the bus here lets every call pass)."""
    with world() as (central, host):
        path = host.preplug(PORT)
        before = rows(central)
        hook = as_bytes("", (PORT2,))
        for target, interface, method, *args in (
            *[(path, HANDOVER, method)
              for method in ("Activate", "Rollback", "Hold", "Release", "Forget")],
            (ROOT, MANAGER, "PrePlug", "sass", UUID, "1", PORT2, ""),
            (ROOT, MANAGER, "Reload"),
            (ROOT, MANAGER, "MigrateBegin", *hook),
            (ROOT, MANAGER, "StartedBegin", *hook),
            (ROOT, MANAGER, "Released", *as_bytes("", (PORT,))),
        ):
            try:
                host.bus.call(target, interface, method, *args, user=NOBODY)
            except DBusError as error:
                assert "only root may do that" in str(error), (method, error)
            else:
                raise AssertionError(f"{method} was not refused")
        assert host.get("Phase", path) == "binding" and rows(central) == before
        assert not host.get("Held", path)
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")


def test_flood():
    """Ten thousand calls a second: others are still served, and memory does not grow."""
    with world(history=100) as (_central, host):
        for kind, user in (("nonsense", NOBODY), ("signal", NOBODY), ("read", NOBODY),
                           ("refused", NOBODY), ("hook", 0), ("nonsense", 0)):
            before = memory(host)
            flood = subprocess.Popen([CALLER, host.bus.address, "flood", str(user), kind, "10000", "3"],
                                     stdout=subprocess.PIPE, text=True)
            times = []
            while flood.poll() is None:
                began = time.monotonic()
                assert host.get("NorthboundState") == "synced"
                times.append(time.monotonic() - began)
            sent = int(flood.communicate()[0])
            began = time.monotonic()
            assert host.get("NorthboundState") == "synced"
            after = time.monotonic() - began
            print(f"# {kind} by {user}: {sent} sent, {len(times)} answers meanwhile, the slowest "
                  f"after {max(times) * 1000:.0f} ms, then {after * 1000:.0f} ms; "
                  f"{before} KiB, {memory(host)} KiB")
            assert sent > 1000, sent
            assert max(*times, after) < 20, (kind, times)
            assert memory(host) - before < 64 * 1024, (before, memory(host))
        # It works as before.
        path = host.preplug(PORT)
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")


def set_marker(central, port, **keys):
    marker = {"source": "hv1", "destination": "hv2", "domain": UUID,
              "handover": "0123456789abcdef", "started": str(int(time.time() * 1e6)), **keys}
    central.nb("set", "Logical_Switch_Port", port,
               *[f"external_ids:portferry-{key}=\"{value}\"" for key, value in marker.items()
                 if value is not None])


def unset_marker(central, port):
    central.nb(*[word for key in central.marker(port) for word in (
        "--", "remove", "Logical_Switch_Port", port, "external_ids", "portferry-" + key)][1:])


def test_bad_markers():
    """Rows that portferry would not have written are told of, once, and left as they are."""
    with world(incoming_timeout=1) as (central, host):
        central.nb("lsp-set-options", PORT, "requested-chassis=hv1,hv2")
        future = str(int((time.time() + 10 * 24 * 3600) * 1e6))
        for wanted, keys in (
            ("has no portferry-started", {"started": None}),
            ("has no portferry-domain", {"domain": None}),
            ("not a number", {"started": "yesterday"}),
            ("more than a day ahead", {"started": future}),
            ("more than a day ahead", {"resumed": future}),
            ("not a UUID", {"domain": "vm1"}),
            ("16 lower-case", {"handover": "../../x"}),
            ("source as well", {"source": "hv2"}),
            ("wrong", {"source": "hv1,hv3"}),
            ("wrong", {"source": ""}),
            ("too long", {"requested-chassis": "x" * 5000}),
            ("is not 'yes'", {"by-hand": "no"}),
        ):
            host.log.truncate(0)
            set_marker(central, PORT, **keys)
            before = rows(central)
            host.restart(incoming_timeout=1)  # it complains once about each port
            text = wait_for(lambda: host.complaint("ignoring its marker"))
            assert wanted in text, (wanted, text)
            assert host.call("ListHandovers") == [[]] and rows(central) == before
            unset_marker(central, PORT)
        # A good one afterwards is taken up all the same.
        set_marker(central, PORT)
        path = wait_for(lambda: [h[0] for h in host.call("ListHandovers")[0]])[0]
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")
        assert central.marker(PORT) == {}


def test_marker_of_nobody():
    """A handover with a host that doesn't exist is undone, as far as the row lets it; said once."""
    with world(incoming_timeout=3) as (central, host):
        for listed, after in (("hv9,hv2", "hv1"), ("hv9", "hv1"), ("hv3", "hv3"), ("", "")):
            central.nb("--if-exists", "remove", "Logical_Switch_Port", PORT, "options",
                       "requested-chassis")
            if listed:
                central.nb("lsp-set-options", PORT, "requested-chassis=" + listed)
            host.log.truncate(0)
            set_marker(central, PORT, **{"source": "hv9", "requested-chassis": "hv1",
                                         "by-hand": "yes" if listed != "hv3" else None})
            path = wait_for(lambda: [h[0] for h in host.call("ListHandovers")[0]])[0]
            host.wait_phase(path, "undone", 30)
            assert central.marker(PORT) == {}
            assert central.option(PORT, "requested-chassis") == after, listed
            if listed == "hv9,hv2":
                assert len(host.complaints("no chassis 'hv9'")) == 1
            host.call("Forget", path=path)


def test_no_libvirt():
    """As long as nobody knows where the guest is, its port stays; and that is said once."""
    with world(incoming_timeout=1) as (central, host):
        central.nb("lsp-set-options", PORT, "requested-chassis=hv9,hv2")
        set_marker(central, PORT, source="hv9")
        before = rows(central)
        path = wait_for(lambda: [h[0] for h in host.call("ListHandovers")[0]])[0]
        wait_for(lambda: host.complaint("not connected to libvirt"))
        time.sleep(3)
        assert host.get("Phase", path) == "binding" and rows(central) == before
        for text in ("not connected to libvirt", "no chassis 'hv9'"):
            assert len(host.complaints(text)) == 1, host.complaints(text)


if __name__ == "__main__":
    if not can_isolate():
        print("1..0 # SKIP needs root and mount namespaces")
        sys.exit(0)
    sys.exit(run([
        test_bad_xml,
        test_other_ports,
        test_names,
        test_bad_configuration,
        test_wrong_types,
        test_no_rights,
        test_flood,
        test_bad_markers,
        test_marker_of_nobody,
        test_no_libvirt,
    ]))
