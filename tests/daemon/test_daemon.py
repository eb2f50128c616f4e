# SPDX-License-Identifier: LGPL-2.1-or-later
"""What operators and configuration make portferryd do: test_daemon.py PORTFERRYD BUS-TEST-DIRECTORY

Each host is a portferryd on a bus and a switch database of its own. OVN's databases and northd are
real; ovn-controller, libvirt and its hook are played by the test, which is why these tests say
nothing about packets: tests/lab does."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PORTFERRYD = os.path.abspath(sys.argv[1])
sys.path.insert(0, sys.argv[2])

from buslab import Bus, DBusError, run, takes_connections, wait_for  # noqa: E402  pylint: disable=wrong-import-position

ROOT = "/org/portferry1"
MANAGER = "org.portferry1.Manager"
HANDOVER = "org.portferry1.Handover"
UUID = "5d3c6b4e-1111-4000-8000-000000000001"
PORT = "5d3c6b4e-0000-4000-8000-00000000000a"
PORT2 = "5d3c6b4e-0000-4000-8000-00000000000b"
UNBOUND = "5d3c6b4e-0000-4000-8000-00000000000c"

CONFIG = {
    "libvirt-uri": "qemu+unix:///system?socket=/nonexistent",
    "ready-timeout": 30,
    "release-timeout": 0.3,
    "teardown-timeout": 1,
    "incoming-timeout": 30,
    "hold-timeout": 30,
}


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def run_tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          timeout=20).stdout.strip()


class Database:
    """An ovsdb-server with one or more databases."""

    def __init__(self, folder, *schemas):
        self.socket = os.path.join(folder, "db.sock")
        self.second = os.path.join(folder, "db2.sock")
        self.remote = "unix:" + self.socket
        files = []
        for schema in schemas:
            path = os.path.join(folder, os.path.basename(schema) + ".db")
            run_tool("ovsdb-tool", "create", path, schema)
            files.append(path)
        self.process = subprocess.Popen(
            ["ovsdb-server", "--remote=punix:" + self.socket, "--remote=punix:" + self.second,
             f"--unixctl={folder}/ctl", "-vsyslog:off", "-vconsole:emer", *files])
        wait_for(lambda: takes_connections(self.second), what="ovsdb-server")


class Central:
    """OVN's databases and northd, and the chassis hv1 and hv2."""

    def __init__(self, stack):
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pf-c-", dir="/tmp"))
        self.db = Database(self.folder, "/usr/share/ovn/ovn-nb.ovsschema",
                           "/usr/share/ovn/ovn-sb.ovsschema")
        stack.callback(stop, self.db.process)
        self.northd = subprocess.Popen(
            ["ovn-northd", f"--ovnnb-db={self.db.remote}", f"--ovnsb-db={self.db.remote}",
             f"--unixctl={self.folder}/northd", "-vsyslog:off", "-vconsole:emer", "-vfile:off"])
        stack.callback(stop, self.northd)
        self.nb("init")
        self.nb("ls-add", "ls")
        for i, port in enumerate((PORT, PORT2, UNBOUND)):
            self.nb("lsp-add", "ls", port)
            self.nb("lsp-set-addresses", port, f"52:54:00:00:00:{i:02x}")
        for i in (1, 2, 3):
            self.sb("chassis-add", f"hv{i}", "geneve", f"192.0.2.{i}")
        wait_for(lambda: self.sb("--bare", "--columns=_uuid", "find", "Port_Binding",
                                 f"logical_port={UNBOUND}"), what="northd")
        for port in (PORT, PORT2):
            self.bind(port, "hv1")

    def nb(self, *args):
        return run_tool("ovn-nbctl", "--db=" + self.db.remote, "--no-leader-only", *args)

    def sb(self, *args):
        return run_tool("ovn-sbctl", "--db=" + self.db.remote, "--no-leader-only", *args)

    def bind(self, port, *chassis):
        """What ovn-controllers do: the first is the chassis, the others come in addition."""
        uuids = [self.sb("--bare", "--columns=_uuid", "find", "Chassis", "name=" + c)
                 for c in chassis]
        binding = self.sb("--bare", "--columns=_uuid", "find", "Port_Binding",
                          "logical_port=" + port)
        self.sb("set", "Port_Binding", binding, "chassis=" + uuids[0], "--",
                "set", "Port_Binding", binding,
                "additional_chassis=[%s]" % ",".join(uuids[1:]))

    def option(self, port, key):
        return self.nb("--if-exists", "get", "Logical_Switch_Port", port,
                       "options:" + key).strip('"')

    def marker(self, port):
        text = self.nb("get", "Logical_Switch_Port", port, "external_ids")
        return dict(re.findall(r'portferry-([\w-]+)="?([^",}]*)', text))


class Host:
    """A portferryd with its bus and its switch."""

    def __init__(self, stack, central, name):
        self.central, self.name = central, name
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pf-h-", dir="/tmp"))
        self.bus = stack.enter_context(Bus())
        self.switch = Database(self.folder, "/usr/share/openvswitch/vswitch.ovsschema")
        stack.callback(stop, self.switch.process)
        self.vsctl("init")
        self.vsctl("set", "Open_vSwitch", ".", "external_ids:system-id=" + name,
                   "external_ids:ovn-remote=" + central.db.remote,
                   "external_ids:ovn-nb-remote=" + central.db.remote)
        self.vsctl("add-br", "br-int", "--", "set", "Bridge", "br-int",
                   "external_ids:ovn-nb-cfg=1000000")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(os.path.join(self.folder, "notify"))
        self.told, self.n_seen = [], 0
        stack.callback(self.notify.close)
        threading.Thread(target=self.listen, daemon=True).start()
        self.config = os.path.join(self.folder, "portferry.conf")
        self.process = None
        self.log = open(os.path.join(self.folder, "log"), "a+", encoding="utf-8")
        stack.callback(self.log.close)
        stack.callback(self.end)

    def vsctl(self, *args):
        return run_tool("ovs-vsctl", "--db=" + self.switch.remote, "--no-wait", *args)

    def configure(self, text=None, **settings):
        settings = {**CONFIG, **{k.replace("_", "-"): v for k, v in settings.items()}}
        lines = [f"{k}={v}" for k, v in settings.items()]
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(text if text is not None else "[portferry]\n" + "\n".join(lines) + "\n")

    def start(self, connected=True, **settings):
        """Returns when it has its databases; or, if they don't answer, when it is on the bus."""
        self.configure(**settings)
        self.process = subprocess.Popen(
            self.command(),
            env={**os.environ, "NOTIFY_SOCKET": os.path.join(self.folder, "notify")},
            stdin=subprocess.DEVNULL, stderr=self.log)
        wait_for(lambda: "READY=1" in self.notifications(), what="READY=1")
        if connected:
            self.wait_connected()
        return self

    def command(self):
        # /run/portferry of its own.
        return ["unshare", "--mount", "sh", "-c",
                'mount -t tmpfs tmpfs /run && exec "$0" "$@"', PORTFERRYD, "--config", self.config,
                "--bus-address", self.bus.address, "--ovs-db", self.switch.remote]

    def run_once(self, seconds=20):
        """Starts a daemon that is to end by itself; returns how it did."""
        return subprocess.run(self.command(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=seconds)

    def complaints(self, text):
        """The lines of the daemon's log that have this in them."""
        with open(self.log.name, encoding="utf-8", errors="replace") as f:
            return [line for line in f if text in line]

    def complaint(self, text):
        """The first of them, or None."""
        return next(iter(self.complaints(text)), None)

    def wait_connected(self):
        wait_for(lambda: self.get("NorthboundState") == "synced" and
                 self.get("SouthboundState") == "synced", what="the databases")

    def end(self):
        """It ends in order, and a sanitizer that it may have been built with has no complaint."""
        stop(self.process)
        with open(self.log.name, encoding="utf-8") as f:
            bad = re.findall(r".*(?:Sanitizer|runtime error).*", f.read())
        assert not bad, bad
        assert self.process is None or self.process.returncode == 0, self.process.returncode

    def restart(self, how=signal.SIGKILL, **settings):
        stop(self.process, how)
        self.notifications()
        return self.start(**settings)

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                self.told.append(self.notify.recv(4096).decode())

    def notifications(self):
        """What the service manager was told since the last call, line by line."""
        told = self.told[self.n_seen:]
        self.n_seen += len(told)
        return "\n".join(told).split("\n")

    def wait_reloaded(self):
        """The service manager is told when a reload begins and ends, be it a success or not."""
        told = []

        def complete():
            told.extend(n for n in self.notifications() if n and not n.startswith("STATUS="))
            return len(told) == 3

        wait_for(complete, what="three notifications")
        assert told[0] == "RELOADING=1" and told[1].startswith("MONOTONIC_USEC="), told
        assert told[2] == "READY=1", told

    def get(self, name, path=ROOT):
        return self.bus.get(path, MANAGER if path == ROOT else HANDOVER, name)

    def call(self, method, *args, path=ROOT):
        return self.bus.call(path, MANAGER if path == ROOT else HANDOVER, method, *args)

    def start_call(self, method, *args, path=ROOT):
        return self.bus.start_call(path, MANAGER if path == ROOT else HANDOVER, method, *args)

    def refused(self, text, method, *args, path=ROOT):
        """The call fails, and the error has that text in it."""
        try:
            self.call(method, *args, path=path)
        except DBusError as error:
            assert text in str(error), (text, error)
            return
        raise AssertionError(f"{method} was not refused")

    def preplug(self, *ports, source=""):
        return self.call("PrePlug", "sass", UUID, str(len(ports)), *ports, source)[0]

    def wait_phase(self, path, phase, seconds=10):
        try:
            wait_for(lambda: self.get("Phase", path) == phase, seconds)
        except AssertionError as error:
            raise AssertionError(f"{phase}: {self.get('Phases', path)}, "
                                 f"{self.get('LastError', path)}") from error

    def plug(self, port, installed=True):
        """What libvirt and ovn-controller do."""
        tap = "tap" + port[-4:]
        self.vsctl("--may-exist", "add-port", "br-int", tap, "--", "set", "Interface", tap,
                   "external_ids:iface-id=" + port, "external_ids:vm-id=" + UUID, "ofport=5",
                   *(["external_ids:ovn-installed=true"] if installed else []))

    def unplug(self, port):
        self.vsctl("--if-exists", "del-port", "br-int", "tap" + port[-4:])

    def incoming(self):
        """What the hook is told, or None."""
        path = f"/proc/{self.process.pid}/root/run/portferry/incoming/{UUID}"
        try:
            with open(path, encoding="utf-8") as f:
                limit, until, policy = f.read().split()
                return int(limit) / 1e6, int(until) / 1e6, policy
        except FileNotFoundError:
            return None

    # The hook's part.

    def begin(self, metadata="", ports=(PORT,)):
        return self.start_call("MigrateBegin", *as_bytes(metadata, ports))

    def started(self, metadata="", ports=(PORT,)):
        return self.start_call("StartedBegin", *as_bytes(metadata, ports))

    def only_handover(self):
        (row,) = self.call("ListHandovers")[0]
        return row[0]


def as_bytes(metadata, ports):
    interfaces = "".join(
        f"<interface type='bridge'><source bridge='br-int'/><virtualport type='openvswitch'>"
        f"<parameters interfaceid='{p}'/></virtualport></interface>" for p in ports)
    xml = (f"<domain type='kvm'><name>vm1</name><uuid>{UUID}</uuid>{metadata}"
           f"<devices>{interfaces}</devices></domain>").encode()
    return ("say", "vm1", str(len(xml)), *(str(b) for b in xml))


def policy(attributes):
    return (f"<metadata><portferry:policy xmlns:portferry='urn:portferry:domain:1' {attributes}/>"
            "</metadata>")


def stop(process, how=signal.SIGTERM):
    if process is not None and process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ended(call, seconds=20):
    """Waits for a call's end. Returns "" or its error."""
    out, err = call.communicate(timeout=seconds)
    assert (call.returncode == 0) == (err == ""), (out, err)
    return err


@contextlib.contextmanager
def world(**settings):
    """Central, and hv2 as the destination."""
    with contextlib.ExitStack() as stack:
        central = Central(stack)
        host = Host(stack, central, "hv2")
        try:
            yield central, host.start(**settings)
            assert host.process.poll() is None, "portferryd has ended"
        except BaseException:
            host.log.flush()
            with open(host.log.name, encoding="utf-8") as f:
                for line in f.read().splitlines()[-40:]:
                    print("# " + line)
            raise


def ready(central, host, path, *ports):
    for port in ports:
        host.plug(port)
        wait_for(lambda: "hv2" in central.option(port, "requested-chassis"))
        central.bind(port, "hv1", "hv2")
    host.wait_phase(path, "ready")


def test_by_hand():
    """From PrePlug to the end, between two hosts; the hook is not told, libvirt not believed."""
    with world() as (central, host), contextlib.ExitStack() as stack:
        source = Host(stack, central, "hv1").start()
        for port in (PORT, PORT2):
            source.plug(port)
        central.nb("lsp-set-options", PORT2, "requested-chassis=hv1")
        path = host.preplug(PORT, PORT2)
        for port in (PORT, PORT2):
            assert central.option(port, "requested-chassis") == "hv1,hv2"
            assert central.option(port, "activation-strategy") == "rarp"
            assert central.marker(port)["by-hand"] == "yes"
        assert host.get("ByHand", path) and host.get("UUID", path) == UUID
        assert host.get("Phase", path) == "binding" and host.incoming() is None
        wait_for(lambda: "no interface here" in host.get("Waiting", path))
        deadline = host.get("Deadline", path) / 1e6 - time.time()
        assert 25 < deadline <= 30, deadline
        assert host.get("Ended", path) == 0 and host.get("Outcome", path) == ""

        # The source takes part; its guest is one that libvirt doesn't know.
        path1 = wait_for(lambda: [h[0] for h in source.call("ListHandovers")[0]])[0]
        assert source.get("ByHand", path1) and source.get("Phase", path1) == "watch"
        assert source.get("Deadline", path1) == 0
        assert "Activate or Rollback" in source.get("Waiting", path1)

        ready(central, host, path, PORT, PORT2)
        assert "Activate or Rollback" in host.get("Waiting", path)
        host.call("Activate", path=path)
        wait_for(lambda: central.option(PORT, "requested-chassis") == "hv2", what="the collapse")
        wait_for(lambda: source.get("Phase", path1) == "release")
        for port in (PORT, PORT2):
            # The source's interface has been made to let go.
            assert "portferry-iface-id" in source.vsctl(
                "get", "Interface", "tap" + port[-4:], "external_ids")
            source.unplug(port)
            central.bind(port, "hv2")
        host.wait_phase(path, "done")
        assert host.get("Outcome", path) == "done" and host.get("Waiting", path) == ""
        assert host.get("Ended", path) > host.get("Started", path)
        assert host.get("Deadline", path) == 0
        assert central.option(PORT, "requested-chassis") == ""  # as it was
        assert central.option(PORT2, "requested-chassis") == "hv2"  # the pin has followed
        assert central.marker(PORT) == {}
        source.wait_phase(path1, "done")
        (row,) = host.call("ListHistory")[0]
        assert row[:7] == [path, host.get("Id", path), "", UUID, "destination", "hv1", "hv2"]
        assert row[9] == "done"


def test_by_hand_back():
    """Rolled back by an operator; and by itself when nobody says anything, unless it is held."""
    with world(incoming_timeout=1.5, hold_timeout=2.5) as (central, host):
        path = host.preplug(PORT)
        host.call("Rollback", path=path)
        wait_for(lambda: central.option(PORT, "requested-chassis") in ("hv1", ""))
        host.wait_phase(path, "undone")
        assert central.option(PORT, "requested-chassis") == "" and central.marker(PORT) == {}
        host.refused("nothing to override", "Activate", path=path)
        host.refused("phase 'undone'", "Hold", path=path)
        host.refused("not held", "Release", path=path)

        path = host.preplug(PORT)
        host.wait_phase(path, "undone")
        assert "nobody has said in time" in host.get("LastError", path)

        path = host.preplug(PORT)
        for _ in range(3):
            host.call("Hold", path=path)
            assert host.get("Held", path)
            time.sleep(1.5)
            assert host.get("Phase", path) == "binding"
        host.call("Release", path=path)
        assert not host.get("Held", path)
        host.wait_phase(path, "undone")
        assert "nobody has said in time" in host.get("LastError", path)

        path = host.preplug(PORT)
        host.call("Hold", path=path)
        host.wait_phase(path, "undone")
        assert "hold-timeout" in host.get("LastError", path)
        assert not host.get("Held", path)
        assert len(host.call("ListHistory")[0]) == 4


def test_by_hand_restart():
    """A daemon that is killed knows afterwards that it was by hand, at both ends."""
    with world() as (central, host):
        path = host.preplug(PORT)
        host.restart()
        wait_for(lambda: host.call("ListHandovers")[0])
        assert host.only_handover() == path and host.get("ByHand", path)
        assert host.incoming() is None
        ready(central, host, path, PORT)
        host.call("Rollback", path=path)
        central.bind(PORT, "hv1")
        host.unplug(PORT)
        host.wait_phase(path, "undone")


def test_preplug_refused():
    with world(preplug_timeout=1) as (central, host):
        def refused(text, uuid, ports, source=""):
            host.refused(text, "PrePlug", "sass", uuid, str(len(ports)), *ports, source)

        refused("not a domain's UUID", "vm1", [PORT])
        refused("no port", UUID, [])
        refused("not a port's name", UUID, [""])
        refused("twice", UUID, [PORT, PORT])
        refused("no such port", UUID, [PORT, "nowhere"])
        refused("comma", UUID, [PORT], "hv1,hv3")
        refused("this host", UUID, [PORT], "hv2")
        refused("no chassis 'hv9'", UUID, [PORT], "hv9")
        refused("another chassis", UUID, [PORT], "hv3")
        refused("no chassis has the port", UUID, [UNBOUND])
        central.bind(PORT2, "hv3")
        refused("different chassis", UUID, [PORT, PORT2])
        assert host.call("ListHandovers") == [[]]
        # A port that nobody has, from where an operator says.
        path = host.preplug(UNBOUND, source="hv1")
        assert central.option(UNBOUND, "requested-chassis") == "hv1,hv2"
        refused("has not ended yet", UUID, [PORT])
        host.call("Rollback", path=path)
        central.bind(UNBOUND, "hv1")
        host.wait_phase(path, "undone")
        # The configuration's on-not-ready is about migrations.
        host.configure(on_not_ready="proceed", preplug_timeout=1)
        host.call("Reload")
        refused("different chassis", UUID, [PORT, PORT2])


def test_hold_at_gate():
    """Held before the hook comes; let go on; and in time."""
    with world() as (central, host):
        assert ended(host.begin()) == ""
        path = host.only_handover()
        assert not host.get("ByHand", path)
        assert host.incoming() == (30, 0, "refuse")
        host.call("Hold", path=path)
        limit, until, _ = host.incoming()
        assert limit == 30 and 25 < until - time.monotonic() <= 30
        call = host.started()
        ready(central, host, path, PORT)
        time.sleep(0.3)
        assert call.poll() is None, "the gate is held"
        assert "Release" in host.get("Waiting", path)
        deadline = host.get("Deadline", path) / 1e6 - time.time()
        assert 20 < deadline <= 30, deadline
        host.call("Release", path=path)
        assert ended(call) == ""
        assert host.incoming()[1] > 0  # the hook's time, had the ports not been ready
        host.refused("before memory is copied", "Hold", path=path)
        host.call("Rollback", path=path)
        central.bind(PORT, "hv1")
        host.unplug(PORT)
        host.wait_phase(path, "undone")
        wait_for(lambda: host.incoming() is None)


def test_hold_while_waiting():
    """Held while the hook waits, without flows: then there is a new ready-timeout."""
    with world(ready_timeout=1.5) as (central, host):
        assert ended(host.begin()) == ""
        path = host.only_handover()
        call = host.started()
        wait_for(lambda: 0 < host.get("Deadline", path) / 1e6 - time.time() < 1.6)
        host.call("Hold", path=path)
        time.sleep(2)
        assert call.poll() is None, "ready-timeout does not count"
        host.call("Release", path=path)
        begin = time.monotonic()
        error = ended(call)
        assert "not ready within 1.5 s" in error and "no interface here" in error, error
        assert 1 < time.monotonic() - begin < 20
        host.wait_phase(path, "undone")


def test_restart_at_gate():
    """Who waits there is not refused by a daemon that ends, nor let pass by one that is new."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with world() as (central, host):
            assert ended(host.begin()) == ""
            path = host.only_handover()
            call = host.started()
            time.sleep(0.3)
            # The new one is there before its databases are.
            central.db.process.send_signal(signal.SIGSTOP)
            host.restart(how, connected=False)
            error = ended(call)  # the hook asks again: tests/hook
            assert "portferry" not in error and "refused" not in error, error
            call = host.started()
            time.sleep(0.5)
            assert call.poll() is None
            assert host.call("ListHandovers") == [[]]
            other = host.started(ports=(UNBOUND,))
            other.kill()
            central.db.process.send_signal(signal.SIGCONT)
            host.wait_connected()
            wait_for(lambda: host.call("ListHandovers")[0])
            assert host.only_handover() == path
            time.sleep(0.3)
            assert call.poll() is None, "the ports are not ready"
            ready(central, host, path, PORT)
            assert ended(call) == ""
            # Now it knows.
            assert ended(host.started(ports=(PORT,))) == ""
            host.call("Rollback", path=path)
            central.bind(PORT, "hv1")
            host.unplug(PORT)
            host.wait_phase(path, "undone")

    for answer, metadata in (("refuse", ""), ("proceed", ""),
                             ("refuse", policy("on-not-ready='refuse' ready-timeout='1'"))):
        with world(ready_timeout=1) as (central, host):
            central.db.process.send_signal(signal.SIGSTOP)
            host.restart(connected=False, ready_timeout=30 if metadata else 1,
                         on_not_ready="proceed" if metadata else answer)
            begin = time.monotonic()
            error = ended(host.started(metadata))
            assert 0.9 < time.monotonic() - begin < 20
            assert (error == "") == (answer == "proceed"), error
            assert answer == "proceed" or "started anew" in error, error
            # It ends while somebody waits.
            call = host.started(policy("ready-timeout='30'"))
            time.sleep(0.3)
            host.end()
            assert ended(call) != ""
            central.db.process.send_signal(signal.SIGCONT)
            host.restart()


def test_hold_too_long():
    for answer, metadata in (("refuse", ""), ("proceed", ""),
                             ("refuse", policy("on-not-ready='refuse'"))):
        configured = "proceed" if metadata else answer
        with world(hold_timeout=5, on_not_ready=configured) as (central, host):
            assert ended(host.begin(metadata)) == ""
            path = host.only_handover()
            host.call("Hold", path=path)
            call = host.started(metadata)
            if answer == "refuse":
                ready(central, host, path, PORT)
            error = ended(call)
            if answer == "refuse":
                assert "hold-timeout" in error, error
                wait_for(lambda: host.get("Phase", path) in ("rollback", "drain", "undo", "undone"))
            else:
                assert error == "" and host.get("Phase", path) == "ready"
            assert not host.get("Held", path)


def test_domain_policy():
    with world(ready_timeout=20) as (central, host):
        # The domain's own: how long, what then, and how it is opened.
        own = policy("ready-timeout='0.5' on-not-ready='proceed' activation-strategy='rarp,garp'")
        assert ended(host.begin(own)) == ""
        path = host.only_handover()
        assert central.option(PORT, "activation-strategy") == "rarp,garp"
        assert host.incoming() == (0.5, 0, "proceed")
        begin = time.monotonic()
        assert ended(host.started(own)) == ""
        assert 0.4 < time.monotonic() - begin < 20
        assert "not ready within 0.5 s" in host.get("LastError", path)
        assert host.get("Phase", path) == "ready"
        # After a restart the hook's second call tells it again.
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")
        assert ended(host.begin(own)) == ""
        host.restart(ready_timeout=20)
        path = wait_for(lambda: [h[0] for h in host.call("ListHandovers")[0]])[0]
        assert host.incoming() == (20, 0, "refuse")
        assert ended(host.started(own)) == ""
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")

        n = len(host.call("ListHandovers")[0])
        assert ended(host.begin(policy("off='yes'"))) == ""
        assert len(host.call("ListHandovers")[0]) == n
        assert central.marker(PORT) == {}
        error = ended(host.begin(policy("of='yes'")))
        assert "attribute 'of'" in error and "off" in error, error


def test_reload():
    """Followed without dropping a handover; or refused, with the reason."""
    with world(incoming_timeout=30) as (central, host):
        path = host.preplug(PORT)
        host.notifications()
        host.configure(hold_timeout=5, history=1, ovn_nb="unix:" + central.db.second,
                       ovn_sb="unix:" + central.db.second)
        assert host.call("Reload") == [[]]
        host.wait_reloaded()
        wait_for(lambda: host.get("NorthboundState") == "synced" and
                 host.get("SouthboundState") == "synced")
        assert host.get("Phase", path) == "binding"
        host.call("Hold", path=path)
        assert 3 < host.get("Deadline", path) / 1e6 - time.time() <= 5

        # A bad one changes nothing, not even in what would be good.
        for bad in ("[portferry]\nhold-timeout=7\nreddy-timeout=1\n", "x", "[other]\na=b\n",
                    "[portferry]\nhold-timeout=7\novn-nb=ssl:1.2.3.4\n",
                    "[portferry]\nhold-timeout=7\nssl-private-key=/nowhere\n"
                    "ssl-certificate=/nowhere\n"):
            host.configure(bad)
            host.refused("", "Reload")
            host.process.send_signal(signal.SIGHUP)
            host.call("Hold", path=path)
            assert 3 < host.get("Deadline", path) / 1e6 - time.time() <= 5
        host.configure("[portferry]\nreddy-timeout=1\n")
        time.sleep(0.3)  # for the last SIGHUP's notifications
        host.notifications()
        host.refused("the nearest is 'ready-timeout'", "Reload")
        host.wait_reloaded()

        # What only a restart can follow is told each time, and does not stand in the way.
        host.configure(integration_bridge="br-other", libvirt_uri="qemu:///other", hold_timeout=9)
        for _ in range(2):
            assert set(host.call("Reload")[0]) == {"libvirt-uri", "integration-bridge"}
        host.call("Hold", path=path)
        assert 7 < host.get("Deadline", path) / 1e6 - time.time() <= 9

        # SIGHUP does the same.
        host.configure(hold_timeout=20)
        host.notifications()
        host.process.send_signal(signal.SIGHUP)
        host.wait_reloaded()
        host.call("Hold", path=path)
        assert 15 < host.get("Deadline", path) / 1e6 - time.time() <= 20

        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")


def test_history():
    with world(history=2) as (central, host):
        paths = []
        for _ in range(3):
            path = host.preplug(PORT)
            host.call("Rollback", path=path)
            host.wait_phase(path, "undone")
            paths.append(path)
        wait_for(lambda: len(host.call("ListHistory")[0]) == 2)
        assert [h[0] for h in host.call("ListHistory")[0]] == [paths[2], paths[1]]
        host.call("Forget", path=paths[1])
        assert [h[0] for h in host.call("ListHistory")[0]] == [paths[2]]
        host.refused("nknown object", "Forget", path=paths[1])
        host.configure(history=0)
        host.call("Reload")
        wait_for(lambda: host.call("ListHandovers") == [[]])
        path = host.preplug(PORT)
        host.call("Rollback", path=path)
        wait_for(lambda: host.call("ListHandovers") == [[]])
        assert central.marker(PORT) == {}


def metrics(host):
    """Of the property: (name, label, ...) -> value."""
    return {(name, *labels.values()): value for name, labels, value in host.get("Metrics")}


def test_metrics():
    """Counted on the bus and in the file, which promtool understands, and which goes in the end."""
    with world() as (central, host):
        path = os.path.join(host.folder, "portferry.prom")
        other = os.path.join(host.folder, "other.prom")
        host.configure(metrics_file=path)
        assert host.call("Reload") == [[]]
        wait_for(lambda: os.path.exists(path))
        assert os.stat(path).st_mode & 0o777 == 0o644

        done = host.preplug(PORT)
        ready(central, host, done, PORT)
        host.call("Activate", path=done)
        wait_for(lambda: central.marker(PORT).get("resumed"))
        central.bind(PORT, "hv2")
        host.wait_phase(done, "done")
        undone = host.preplug(PORT2)
        host.call("Rollback", path=undone)
        host.wait_phase(undone, "undone")

        now = metrics(host)
        assert now[("portferry_handovers_total", "destination", "done")] == 1, now
        assert now[("portferry_handovers_total", "destination", "undone")] == 1
        assert now[("portferry_handovers_total", "source", "done")] == 0
        assert now[("portferry_rollbacks_total", "destination", "rollback")] == 1
        assert now[("portferry_events_total", "handovers-overridden")] == 2
        assert now[("portferry_handover_seconds_count",)] == 2
        assert now[("portferry_handover_seconds_bucket", "+Inf")] == 2
        assert now[("portferry_handovers_open",)] == 0
        assert now[("portferry_connected", "northbound")] == 1
        assert now[("portferry_connected", "libvirt")] == 0

        wait_for(lambda: 'outcome="undone"} 1\n' in read(path))
        text = read(path)
        for (name, *labels), value in now.items():
            assert re.search(rf'^{name}(?={{| ).*{".*".join(map(re.escape, labels))}.* '
                             rf'{re.escape(f"{value:.17g}")}$', text, re.M), (name, labels, value)
        if shutil.which("promtool"):
            p = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                               capture_output=True, check=False)
            assert p.returncode == 0 and p.stdout + p.stderr == "", p.stdout + p.stderr

        host.configure(metrics_file=other)
        host.call("Reload")
        wait_for(lambda: os.path.exists(other))
        assert not os.path.exists(path)
        host.configure(metrics_file="/nowhere/x.prom")
        host.call("Reload")
        host.preplug(PORT2)
        assert not os.path.exists(other)
        host.configure(metrics_file=path)
        host.call("Reload")
        wait_for(lambda: "portferry_handovers_open 1\n" in read(path))
        host.end()
        assert not os.path.exists(path)
        host.notifications()
        host.start()


def test_gate_wait_is_measured():
    with world() as (central, host):
        assert ended(host.begin()) == ""
        path = host.only_handover()
        gate = host.started()
        time.sleep(0.3)
        ready(central, host, path, PORT)
        assert ended(gate) == ""
        host.unplug(PORT)
        host.call("Rollback", path=path)
        central.bind(PORT, "hv1")
        host.wait_phase(path, "undone")
        now = metrics(host)
        assert now[("portferry_gate_wait_seconds_count",)] == 1
        assert 0.3 <= now[("portferry_gate_wait_seconds_sum",)] < 10
        assert now[("portferry_gate_wait_seconds_bucket", "0.25")] == 0


def test_service_manager_does_not_read():
    """Nothing waits for it; what it was to be told comes when it reads."""
    with contextlib.ExitStack() as stack:
        central = Central(stack)
        host = Host(stack, central, "hv2")
        path = os.path.join(host.folder, "deaf")
        deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        stack.callback(deaf.close)
        deaf.bind(path)
        filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        stack.callback(filler.close)
        filler.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                filler.sendto(b"filler", path)
        host.configure()
        host.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c",
             'mount -t tmpfs tmpfs /run && exec "$0" "$@"', PORTFERRYD, "--config", host.config,
             "--bus-address", host.bus.address, "--ovs-db", host.switch.remote],
            env={**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"},
            stdin=subprocess.DEVNULL, stderr=host.log)

        def connected():
            with contextlib.suppress(DBusError):
                return host.get("NorthboundState") == "synced"
            return False

        wait_for(connected, what="the loop")
        handover = host.preplug(PORT)
        host.call("Rollback", path=handover)
        host.wait_phase(handover, "undone")

        deaf.settimeout(5)
        told = []
        while not ("READY=1" in told and told.count("WATCHDOG=1") > 3
                   and any(t.startswith("STATUS=0 handovers") for t in told)):
            told.append(deaf.recv(4096).decode())
        told = [t for t in told if t not in ("filler", "WATCHDOG=1")]
        assert told[0].startswith(("READY=1", "STATUS=")) and len(told) < 6, told
        host.end()


def test_log_level():
    with world() as (_central, host):
        where = ("/org/freedesktop/LogControl1", "org.freedesktop.LogControl1")

        def set_property(name, value, check=True):
            return subprocess.run(
                ["busctl", "--address=" + host.bus.address, "set-property", "org.portferry1",
                 *where, name, "s", value], capture_output=True, text=True, check=check)
        assert host.bus.get(*where, "LogLevel") == "info"
        assert host.bus.get(*where, "SyslogIdentifier") == "portferryd"
        set_property("LogLevel", "warning")
        assert host.bus.get(*where, "LogLevel") == "warning"
        host.log.flush()
        before = len(read(host.log.name))
        path = host.preplug(PORT)
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")
        assert "binding" not in read(host.log.name)[before:]
        set_property("LogLevel", "debug")
        path = host.preplug(PORT)
        assert "binding" in read(host.log.name)[before:]
        host.call("Rollback", path=path)
        host.wait_phase(path, "undone")
        assert "No such log level" in set_property("LogLevel", "loud", check=False).stderr
        assert "nowhere else" in set_property("LogTarget", "kmsg", check=False).stderr
        set_property("LogTarget", "journal")


def test_forget():
    """One that is open: only if it is stuck, and then for good."""
    with world() as (central, host):
        path = host.preplug(PORT)
        host.refused("open and not stuck", "Forget", path=path)
        identifier = host.get("Id", path)
        central.northd.send_signal(signal.SIGSTOP)
        host.call("Rollback", path=path)  # northbound it is done; southbound nothing happens
        host.wait_phase(path, "rollback")
        host.refused("open and not stuck", "Forget", path=path)
        time.sleep(1.2)  # teardown-timeout
        host.call("Forget", path=path)
        assert host.call("ListHandovers") == [[]]
        central.northd.send_signal(signal.SIGCONT)
        time.sleep(1)
        assert host.call("ListHandovers") == [[]]
        assert central.marker(PORT)["handover"] == identifier
        host.refused("marker", "PrePlug", "sass", UUID, "1", PORT, "")
        host.restart()
        wait_for(lambda: host.call("ListHandovers")[0])
        wait_for(lambda: central.marker(PORT) == {}, what="the end")


def can_isolate():
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/run"],
        check=False, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    if not can_isolate():
        print("1..0 # SKIP needs root and mount namespaces")
        sys.exit(0)
    sys.exit(run([
        test_by_hand,
        test_by_hand_back,
        test_by_hand_restart,
        test_preplug_refused,
        test_hold_at_gate,
        test_hold_while_waiting,
        test_restart_at_gate,
        test_hold_too_long,
        test_domain_policy,
        test_reload,
        test_history,
        test_forget,
        test_metrics,
        test_gate_wait_is_measured,
        test_service_manager_does_not_read,
        test_log_level,
    ]))
