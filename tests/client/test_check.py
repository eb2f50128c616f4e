# SPDX-License-Identifier: LGPL-2.1-or-later
"""portferry check on a host of paper, with real databases: test_check.py PORTFERRY FAKE-DAEMON"""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time

from buslab import Bus, Program, run, takes_connections, wait_for

PORTFERRY, FAKE_DAEMON = sys.argv[1:3]

HOOK = "etc/libvirt/hooks/qemu.d/portferry"
PORT = "5d3c6b4e-0000-4000-8000-00000000000a"
PORT2 = "5d3c6b4e-0000-4000-8000-00000000000b"
SCHEMAS = ("/usr/share/openvswitch/vswitch.ovsschema", "/usr/share/ovn/ovn-sb.ovsschema",
           "/usr/share/ovn/ovn-nb.ovsschema")

DOMAIN = """<domain type='qemu'><name>vm1</name>
<uuid>5d3c6b4e-1111-4000-8000-000000000001</uuid>%s<devices>
<interface type='bridge'><mac address='52:54:00:00:00:0a'/><source bridge='br-int'/>
<virtualport type='openvswitch'><parameters interfaceid='%s'/></virtualport></interface>
</devices></domain>"""


class Host:
    """A folder that stands for /, programs, and databases."""

    def __init__(self, bus=None):
        self.bus = bus
        self.folder = tempfile.TemporaryDirectory(prefix="pf-check-", dir="/tmp")
        self.root = os.path.join(self.folder.name, "root")
        self.bin = os.path.join(self.folder.name, "bin")
        self.socket = os.path.join(self.folder.name, "db")
        self.server = None
        os.mkdir(self.bin)
        # A machine on which all is well.
        self.write(HOOK, "#!/bin/sh\n", 0o755)
        self.libvirtd(age=-1)
        self.write("sys/module/apparmor/parameters/enabled", "Y\n")
        self.write("etc/libvirt/libvirtd.conf", "#ovs_timeout = 1\n")
        self.write("etc/libvirt/qemu.conf", "")
        self.write("sys/class/net/lo/mtu", "1558\n")
        self.write("etc/portferry/portferry.conf",
                   f"[portferry]\novs-db=unix:{self.socket}\n")
        self.program("ovn-appctl", "echo 'ovn-controller 24.03.6'; echo 'Open vSwitch Library 3.3'")
        self.program("virsh", f"cat <<'END'\n{DOMAIN % ('', PORT)}\nEND")

    def libvirtd(self, age, name="libvirtd", pid=4711):
        """The process, and how many seconds ago it began."""
        ticks = int((time.clock_gettime(time.CLOCK_BOOTTIME) - age) * os.sysconf("SC_CLK_TCK"))
        self.write(f"proc/{pid}/comm", name + "\n")
        self.write(f"proc/{pid}/stat", f"{pid} ({name} ) x) S " + "0 " * 18 + f"{ticks} 0 0\n")
        self.write(f"proc/{pid}/attr/current", name + " (enforce)\n")

    def write(self, path, text, mode=0o644):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def path(self, path):
        return os.path.join(self.root, path)

    def configure(self, text):
        self.write("etc/portferry/portferry.conf",
                   f"[portferry]\novs-db=unix:{self.socket}\n{text}\n")

    def program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def start_databases(self):
        """One server with all three databases, as a host needs them."""
        files = []
        for schema in SCHEMAS:
            files.append(os.path.join(self.folder.name, os.path.basename(schema) + ".db"))
            subprocess.run(["ovsdb-tool", "create", files[-1], schema], check=True)
        self.server = subprocess.Popen(
            ["ovsdb-server", "--verbose=off", f"--unixctl={self.folder.name}/ctl",
             f"--remote=punix:{self.socket}", *files])
        wait_for(lambda: takes_connections(self.socket), what="ovsdb-server")
        self.transact("Open_vSwitch", {
            "op": "insert", "table": "Open_vSwitch", "row": {
                "bridges": ["named-uuid", "b"], "external_ids": ["map", [
                    ["system-id", "host-b"], ["hostname", "b.example"],
                    ["ovn-remote", "unix:" + self.socket], ["ovn-nb-remote", "unix:" + self.socket],
                    ["ovn-encap-type", "geneve"], ["ovn-encap-ip", "127.0.0.1"]]]},
        }, {"op": "insert", "table": "Bridge", "uuid-name": "b", "row": {
            "name": "br-int", "ports": ["named-uuid", "p"]}},
            {"op": "insert", "table": "Port", "uuid-name": "p", "row": {
                "name": "vnet0", "interfaces": ["named-uuid", "i"]}},
            {"op": "insert", "table": "Interface", "uuid-name": "i", "row": {
                "name": "vnet0", "mtu": 1500, "external_ids": ["map", [["iface-id", PORT]]]}})
        self.transact("OVN_Southbound", {"op": "insert", "table": "SB_Global", "row": {
            "options": ["map", [["northd_internal_version", "24.03.6-20.33.0-77.3"]]]}},
            *self.chassis("host-b", "b.example", "127.0.0.1"),
            *self.chassis("host-a", "a.example", "127.0.0.2"),
            {"op": "insert", "table": "Datapath_Binding", "uuid-name": "d",
             "row": {"tunnel_key": 1}},
            {"op": "insert", "table": "Port_Binding", "row": {
                "logical_port": PORT, "chassis": ["named-uuid", "c127_0_0_1"],
                "datapath": ["named-uuid", "d"], "tunnel_key": 1}})
        self.transact("OVN_Northbound",
                      {"op": "insert", "table": "NB_Global", "row": {}},
                      {"op": "insert", "table": "Logical_Switch", "row": {
                          "name": "ls0", "ports": ["named-uuid", "p"]}},
                      {"op": "insert", "table": "Logical_Switch_Port", "uuid-name": "p",
                       "row": {"name": PORT}})

    @staticmethod
    def chassis(name, hostname, ip):
        key = ip.replace(".", "_")
        return ({"op": "insert", "table": "Encap", "uuid-name": "e" + key, "row": {
            "type": "geneve", "ip": ip, "chassis_name": name}},
            {"op": "insert", "table": "Chassis", "uuid-name": "c" + key, "row": {
                "name": name, "hostname": hostname, "encaps": ["named-uuid", "e" + key]}})

    def transact(self, database, *ops):
        p = subprocess.run(["ovsdb-client", "--verbose=off", "transact", "unix:" + self.socket,
                            json.dumps([database, *ops])], check=True, capture_output=True,
                           text=True)
        assert "error" not in p.stdout, p.stdout

    def update(self, database, table, row, where=()):
        self.transact(database, {"op": "update", "table": table, "where": list(where), "row": row})

    def update_host(self, key, value):
        self.transact("Open_vSwitch", {"op": "mutate", "table": "Open_vSwitch", "where": [],
                                       "mutations": [["external_ids", "delete", ["set", [key]]]] + (
                          [["external_ids", "insert", ["map", [[key, value]]]]] if value else [])})

    def stop_databases(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server = None
            os.unlink(self.socket)

    def check(self, *args, wanted=None):
        """Returns the findings, id -> (level, text, advice)."""
        address = self.bus.address if self.bus else "unix:path=/nonexistent/bus"
        p = subprocess.run(
            [PORTFERRY, "--bus-address=" + address, "check", "--json", *args],
            capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": self.bin + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8",
                 "PORTFERRY_TEST_ROOT": self.root, "LANGUAGE": ""})
        assert p.stderr == "", p.stderr
        result = json.loads(p.stdout)
        findings = result["findings"]
        count = lambda level: sum(f["level"] == level for f in findings)
        assert result["problems"] == count("problem")
        assert result["warnings"] == count("warning")
        assert result["unknown"] == count("unknown")
        assert p.returncode == (1 if count("problem") else 0)
        assert result["ok"] == (p.returncode == 0)
        for f in findings:
            assert set(f) == {"id", "level", "text", "advice"} and f["text"], f
            assert f["advice"] or f["level"] in ("ok", "unknown"), f
        if wanted is not None:
            assert p.returncode == wanted, result
        return {f["id"]: (f["level"], f["text"], f["advice"]) for f in findings}

    def finds(self, level, identifier, *args, text=""):
        found = self.check(*args)
        assert identifier in found, (identifier, sorted(found))
        assert found[identifier][0] == level, found[identifier]
        assert text in found[identifier][1] + (found[identifier][2] or ""), found[identifier]

    def finds_no(self, identifier, *args):
        found = self.check(*args)
        assert identifier not in found, found[identifier]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop_databases()
        self.folder.cleanup()


@contextlib.contextmanager
def whole_host():
    """A host on which everything is right."""
    with Bus() as bus, Program(FAKE_DAEMON, bus.address) as daemon, Host(bus) as host:
        daemon.expect("acquired")
        host.daemon = daemon
        host.start_databases()
        yield host


def test_all_is_well():
    with whole_host() as host:
        found = host.check(wanted=0)
        bad = {k: v for k, v in found.items() if v[0] != "ok"}
        assert not bad, bad
        for part in ("configuration", "hook", "libvirt", "daemon", "switch", "southbound",
                     "northbound", "tls", "mtu"):
            assert any(k.startswith(part + ".") for k in found), part
        found = host.check("vm1", "--to", "host-a", wanted=0)
        bad = {k: v for k, v in found.items() if v[0] != "ok"}
        assert not bad and "domain.port" in found, bad

        env = {**os.environ, "PATH": host.bin + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8",
               "PORTFERRY_TEST_ROOT": host.root, "LANGUAGE": ""}
        p = subprocess.run([PORTFERRY, "--bus-address=" + host.bus.address, "check"], env=env,
                           capture_output=True, text=True, check=False)
        assert p.returncode == 0 and "No problem." in p.stdout, p.stdout
        assert p.stdout.count("\n\n") == 9, p.stdout


def test_nothing_there():
    """An empty machine: problems, and no guess about what can't be seen."""
    with Host() as host:
        shutil.rmtree(host.root)
        found = host.check(wanted=1)
        assert found["hook.missing"][0] == "problem"
        assert found["daemon.missing"][0] == "problem"
        assert found["switch.unreachable"][0] == "problem"
        assert found["southbound.unknown"][0] == "unknown"
        assert found["northbound.unset"][0] == "unknown"


def test_hook_file():
    with Host() as host:
        hook = host.path(HOOK)
        host.finds("ok", "hook.installed")
        os.chmod(hook, 0o644)
        host.finds("problem", "hook.not-executable", text="chmod 0755 " + "/" + HOOK)
        os.chmod(hook, 0o777)
        host.finds("problem", "hook.writable")
        os.unlink(hook)
        host.finds("problem", "hook.missing")
        os.symlink("/bin/true", hook)
        host.finds("problem", "hook.symlink", text="AppArmor")
        os.unlink(hook)
        os.mkdir(hook)
        host.finds("problem", "hook.no-file")
        os.rmdir(hook)
        os.mkfifo(hook)
        host.finds("problem", "hook.no-file")


def test_hook_of_the_package():
    original = os.environ["PF_HOOK_ORIGINAL"].lstrip("/")
    with Host() as host:
        host.finds_no("hook.packaged")
        host.write(original, "#!/bin/sh\n", 0o755)
        host.finds("ok", "hook.packaged")
        host.write(HOOK, "#!/bin/sg\n", 0o755)
        host.finds("warning", "hook.changed", text="cp --remove-destination /" + original)
        host.write(HOOK, "#!/bin/sh\nexit 0\n", 0o755)
        host.finds("warning", "hook.changed")


def test_other_hooks():
    with Host() as host:
        host.finds("ok", "hook.alone")
        folder = os.path.dirname(HOOK)
        host.write(folder + "/README", "not run")
        host.write(folder + "/portferry.conf~", "not run either")
        host.finds("ok", "hook.alone")
        host.write(folder + "/50-mine", "", 0o755)
        host.finds("ok", "hook.other", text="50-mine")
        host.write(folder + "/50-mine~", "", 0o755)
        host.finds("warning", "hook.leftover", text="50-mine~")
        os.unlink(host.path(folder + "/50-mine~"))
        host.write(folder + "/portferry.dpkg-old", "", 0o755)
        host.finds("problem", "hook.leftover", text="portferry.dpkg-old")
        host.write("etc/libvirt/hooks/qemu", "", 0o755)
        host.finds("ok", "hook.main")


def test_hook_seen():
    if os.geteuid() != 0:
        return "a process of root's is needed"
    with Host() as host:
        host.finds("ok", "hook.seen", text="libvirtd")
        host.libvirtd(age=3600)  # long before the hook was installed
        host.finds("warning", "hook.not-seen", text="systemctl reload libvirtd")
        host.libvirtd(age=0)
        host.finds("ok", "hook.seen")
        host.libvirtd(age=3600)
        shutil.rmtree(host.path("proc/4711"))
        host.libvirtd(age=3600, name="virtqemud", pid=99)
        host.finds("warning", "hook.not-seen", text="systemctl reload virtqemud")
        host.write("proc/99/stat", "nonsense")
        host.finds("unknown", "hook.seen-unknown")
        shutil.rmtree(host.path("proc/99"))
        host.finds_no("hook.seen")
        host.finds("ok", "libvirt.not-running")
    return None


def test_libvirt_settings():
    with Host() as host:
        conf = "etc/libvirt/libvirtd.conf"
        host.finds("ok", "libvirt.ovs-timeout", text="ovs_timeout is 5")
        host.write(conf, "  ovs_timeout=60\n")
        host.finds("warning", "libvirt.ovs-timeout", text="60")
        host.write(conf, "ovs_timeout = 1")
        host.finds("warning", "libvirt.ovs-timeout")
        host.write(conf, "keepalive_interval = -1\n")
        host.finds("warning", "libvirt.keepalive-off")
        host.write(conf, "keepalive_interval = 30\nkeepalive_count = 9\n")
        host.finds("warning", "libvirt.keepalive-long", text="300")
        if os.geteuid() == 0:
            host.finds("ok", "libvirt.apparmor", text="libvirtd (enforce)")
        host.write("sys/module/apparmor/parameters/enabled", "N\n")
        host.finds("ok", "libvirt.apparmor-off")


def test_configuration():
    with Host() as host:
        host.finds("ok", "configuration.read")
        host.write("etc/portferry/portferry.conf", "[portferry]\nredy-timeout=3\n")
        host.finds("problem", "configuration.wrong", text="ready-timeout")
        os.unlink(host.path("etc/portferry/portferry.conf"))
        host.finds("ok", "configuration.defaults")
        host.configure("metrics-file=/var/lib/metrics/portferry.prom")
        host.finds("warning", "configuration.metrics", text="/var/lib/metrics")
        host.write("var/lib/metrics/other.prom", "")
        host.finds_no("configuration.metrics")
        other = host.write("other.conf", "[nonsense]\n")
        host.finds("problem", "configuration.wrong", "--config", other)


def test_daemon():
    with whole_host() as host:
        d = host.daemon
        d.do("manager Version 9.9")
        host.finds("warning", "daemon.version", text="9.9")
        d.do("manager NorthboundState disconnected")
        host.finds("warning", "daemon.northbound")
        d.do("manager SouthboundState connecting")
        host.finds("problem", "daemon.southbound", text="connecting")
        d.do("add h1 vm1 5d3c6b4e-1111-4000-8000-000000000001 source 1")
        d.do("phase h1 watch 1")
        host.finds_no("daemon.handover")
        d.do("set h1 LastError 'no luck'")
        host.finds("warning", "daemon.handover", text="no luck")
        d.do("phase h1 undone 2")
        host.finds_no("daemon.handover")
        host.finds_no("hook.called")
        d.do("add h2 vm1 5d3c6b4e-1111-4000-8000-000000000001 destination 1")
        d.do("phase h2 done 2")
        host.finds("ok", "hook.called")


def test_versions():
    with whole_host() as host:
        for version, level in (("22.03.3", "problem"), ("22.06.0", "problem"),
                               ("22.06.1", "problem"), ("22.09.1", "problem"),
                               ("22.09.2", "warning"), ("22.12.0", "problem"),
                               ("22.12.1", "warning"), ("23.03.0", "problem"),
                               ("23.03.1", "warning"), ("23.06.0", "warning"),
                               ("24.03.5", "warning"), ("24.03.6", "ok"), ("24.09.0", "ok"),
                               ("25.09.2", "ok"), ("nonsense", "unknown")):
            host.program("ovn-appctl", f"echo 'ovn-controller {version}'")
            host.finds(level, "switch.controller")
        host.configure("activation-strategy=rarp,garp")
        host.program("ovn-appctl", "echo 'ovn-controller 25.03.9'")
        host.finds("problem", "switch.strategy", text="rarp,garp")
        host.program("ovn-appctl", "echo 'ovn-controller 25.09.0'")
        host.finds_no("switch.strategy")
        host.configure("")
        host.program("ovn-appctl", "echo sorry >&2; exit 1")
        host.program("ovn-controller", "echo 'ovn-controller 25.03.1'")
        host.finds("ok", "switch.controller", text="25.03.1")
        host.finds("unknown", "switch.controller-unknown", text="sorry")
        host.update("OVN_Southbound", "SB_Global", {"options": ["map", [
            ["northd_internal_version", "22.03.0-20.2.0-60.1"]]]})
        host.finds("problem", "southbound.northd")
        host.update("OVN_Southbound", "SB_Global", {"options": ["map", []]})
        host.finds("unknown", "southbound.northd-unknown")


def test_program_that_hangs():
    with whole_host() as host:
        host.program("ovn-appctl", "exec sleep 60")
        host.program("ovn-controller", "echo 'ovn-controller 25.03.1'")
        begin = time.monotonic()
        host.finds("unknown", "switch.controller-unknown")
        assert time.monotonic() - begin < 20


def test_identity():
    with whole_host() as host:
        host.update_host("hostname", "other.example")
        host.finds("warning", "southbound.hostname", text="other.example")
        host.update_host("hostname", "b.example")
        host.update("OVN_Southbound", "Chassis", {"hostname": "b.example"})
        host.finds("warning", "southbound.hostname-twice", text="b.example")
        host.update_host("ovn-encap-ip", "127.0.0.9")
        host.finds("problem", "southbound.system-id-twice", text="127.0.0.1")
        host.update_host("ovn-encap-ip", "127.0.0.1,127.0.0.3")
        host.finds("warning", "southbound.encap-several")
        host.update_host("system-id", "nobody")
        host.finds("problem", "southbound.chassis", text="nobody")
        host.update_host("system-id", None)
        host.finds("problem", "switch.system-id")
        host.update_host("ovn-encap-type", None)
        host.finds("problem", "switch.ovn-encap-type")
        host.configure("integration-bridge=br-x")
        host.finds("problem", "switch.bridge", text="br-x")


def test_databases_away():
    with whole_host() as host:
        host.update_host("ovn-nb-remote", None)
        host.finds("unknown", "northbound.command-line")
        host.daemon.do("manager NorthboundState disconnected")
        host.finds("warning", "northbound.unset")
        host.update_host("ovn-nb-remote", "none")
        host.finds("ok", "northbound.none")
        host.update_host("ovn-nb-remote", None)
        host.daemon.do("manager NorthboundState none")
        host.finds("ok", "daemon.northbound", text="leaves that to a CMS")
        host.daemon.do("manager NorthboundState disconnected")
        host.configure("ovn-nb=none")
        host.finds("ok", "northbound.none")
        host.configure("ovn-nb=unix:/nonexistent/nb")
        host.finds("problem", "northbound.unreachable", text="/nonexistent/nb")
        host.configure("ovn-sb=tcp:127.0.0.1:9")
        host.finds("problem", "southbound.unreachable", text="refused")
        host.configure("")
        host.update_host("ovn-remote", None)
        host.finds("problem", "southbound.unset")
        host.stop_databases()
        host.finds("problem", "switch.unreachable")
        host.finds("unknown", "southbound.unknown")


def test_northbound_permission():
    """Asked without changing anything."""
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(whole_host())
        host.finds("ok", "northbound.writable")
        # A backup lets nobody write.
        target, file = (os.path.join(host.folder.name, name) for name in ("backup", "backup.db"))
        subprocess.run(["ovsdb-tool", "create", file, SCHEMAS[2]], check=True)
        backup = subprocess.Popen(
            ["ovsdb-server", "--verbose=off", f"--unixctl={target}.ctl", "--remote=punix:" + target,
             "--sync-from=tcp:127.0.0.1:9", file])
        stack.callback(backup.wait)
        stack.callback(backup.kill)
        wait_for(lambda: os.path.exists(target), what="the backup")
        host.configure("ovn-nb=unix:" + target)
        host.finds("ok", "northbound.reachable")
        host.finds("problem", "northbound.read-only", text="not allowed")
        host.finds_no("northbound.writable")


def test_markers():
    with whole_host() as host:
        marker = lambda **keys: host.update("OVN_Northbound", "Logical_Switch_Port", {
            "external_ids": ["map", [["portferry-" + k, v] for k, v in keys.items()]]})
        marker(source="host-x", destination="host-y", handover="h1")
        host.finds_no("northbound.marker-orphan")
        marker(source="host-x", destination="host-b", handover="h1")
        host.finds("warning", "northbound.marker-orphan", text=PORT)
        host.daemon.do("add h1 vm1 5d3c6b4e-1111-4000-8000-000000000001 destination 1")
        host.daemon.do("phase h1 ready 1")
        host.finds_no("northbound.marker-orphan")
        host.daemon.do("phase h1 done 2")
        host.finds("warning", "northbound.marker-orphan")
        host.daemon.do("leave")
        host.finds("warning", "northbound.marker-waiting")
        marker(source="host-b")
        host.finds("warning", "northbound.marker-waiting")


def test_mtu():
    with whole_host() as host:
        host.finds("ok", "mtu.guests", text="1500")
        host.write("sys/class/net/lo/mtu", "1500\n")
        host.finds("warning", "mtu.guests", text="1558")
        host.finds("warning", "domain.port-mtu", "vm1", "--to", "host-a", text="1442")
        host.update_host("ovn-encap-type", "vxlan")
        host.finds("warning", "mtu.guests", text="1450")
        host.update_host("ovn-encap-type", "stt")
        host.finds("unknown", "mtu.type")
        host.update_host("ovn-encap-type", "geneve")
        host.update_host("ovn-encap-ip", "192.0.2.1")
        host.finds("unknown", "mtu.device")


def test_certificates():
    with whole_host() as host:
        folder = host.folder.name

        def openssl(*args):
            subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=folder)

        def certify(name, days):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", name + ".key", "-out", name + ".pem", "-days", str(days),
                    "-subj", "/CN=" + name)
            os.chmod(f"{folder}/{name}.key", 0o600)

        def use(key, certificate, ca="good.pem"):
            host.configure(f"ssl-private-key={folder}/{key}\nssl-certificate={folder}/{certificate}"
                           + (f"\nssl-ca-cert={folder}/{ca}" if ca else ""))

        host.finds("ok", "tls.unused")
        certify("good", 400)
        certify("short", 5)
        use("good.key", "good.pem")
        for identifier in ("tls.certificate", "tls.key", "tls.ca"):
            host.finds("ok", identifier)
        use("short.key", "short.pem")
        host.finds("warning", "tls.certificate", text="expires in")
        use("short.key", "good.pem")
        host.finds("problem", "tls.key-mismatch")
        os.chmod(folder + "/good.key", 0o644)
        use("good.key", "good.pem")
        host.finds("warning", "tls.key-open")
        use("none.key", "none.pem")
        host.finds("problem", "tls.certificate", text="none.pem")
        host.finds("problem", "tls.key", text="none.key")
        use("good.pem", "good.key")
        host.finds("problem", "tls.certificate", text="no certificate")
        # Of several in a file, the one that ends first counts.
        with open(folder + "/both.pem", "w", encoding="utf-8") as f:
            for name in ("good", "short"):
                with open(f"{folder}/{name}.pem", encoding="utf-8") as part:
                    f.write(part.read())
        use("good.key", "good.pem", "both.pem")
        host.finds("warning", "tls.ca")
        # It takes no negative number of days.
        openssl("req", "-new", "-key", "good.key", "-subj", "/CN=old", "-out", "old.csr")
        openssl("x509", "-req", "-in", "old.csr", "-signkey", "good.key", "-days", "0", "-out",
                "old.pem")
        time.sleep(1.1)
        use("good.key", "old.pem")
        host.finds("problem", "tls.certificate", text="expired")
        openssl("ec", "-in", "good.key", "-aes128", "-passout", "pass:secret", "-out", "locked.key")
        os.chmod(folder + "/locked.key", 0o600)
        use("locked.key", "good.pem")
        host.finds("problem", "tls.key", text="password")
        use("good.key", "good.pem", None)
        host.update_host("ovn-remote", "ssl:127.0.0.1:9")
        host.finds("problem", "tls.ca")
        host.configure("")
        host.finds("problem", "tls.unset")
        host.transact("Open_vSwitch", {"op": "insert", "table": "SSL", "uuid-name": "s", "row": {
            "private_key": "/etc/k", "certificate": "/etc/c", "ca_cert": "/etc/ca"}},
            {"op": "update", "table": "Open_vSwitch", "where": [],
             "row": {"ssl": ["named-uuid", "s"]}})
        # As portferryd itself, it goes by ovn-controller's.
        host.finds("ok", "tls.switch")
        host.finds("problem", "tls.key", text="/etc/k")
        host.update("Open_vSwitch", "SSL", {"private_key": folder + "/good.key",
                                            "certificate": folder + "/good.pem",
                                            "ca_cert": folder + "/good.pem"})
        os.chmod(folder + "/good.key", 0o600)
        host.finds("ok", "tls.key")
        host.finds("warning", "tls.name", text="'good'")
        host.update_host("system-id", "good")
        host.finds("ok", "tls.name")


def test_domain():
    with whole_host() as host:
        go = ("vm1", "--to", "host-a")
        host.finds("ok", "domain.destination", "vm1", "--to", "a.example")
        host.finds("problem", "domain.destination", "vm1", "--to", "nowhere", text="nowhere")
        host.finds("problem", "domain.destination", "vm1", "--to", "host-b", text="this host")
        binding = lambda **row: host.update("OVN_Southbound", "Port_Binding", row)
        listed = lambda value: host.update("OVN_Northbound", "Logical_Switch_Port", {
            "options": ["map", [["requested-chassis", value]]]})
        listed("host-b,host-a")
        host.finds("ok", "domain.port-cms", *go)
        listed("host-b,host-x")
        host.finds("problem", "domain.port-foreign", *go)
        listed("host-b")
        host.finds("ok", "domain.port", *go)
        host.update("OVN_Northbound", "Logical_Switch_Port", {
            "external_ids": ["map", [["portferry-handover", "h9"]]]})
        host.finds("problem", "domain.port-busy", *go)
        binding(type="external")
        host.finds("problem", "domain.port-type", *go, text="external")
        binding(type="", parent_port="x")
        host.finds("problem", "domain.port-child", *go)
        binding(parent_port=["set", []], chassis=["set", []])
        host.finds("problem", "domain.port-unbound", *go)
        rows = json.loads(subprocess.run(
            ["ovsdb-client", "--verbose=off", "query", "unix:" + host.socket, json.dumps(
                ["OVN_Southbound", {"op": "select", "table": "Chassis", "where": [
                    ["name", "==", "host-a"]], "columns": ["_uuid"]}])],
            check=True, capture_output=True, text=True).stdout)
        binding(chassis=rows[0]["rows"][0]["_uuid"])
        host.finds("problem", "domain.port-elsewhere", *go)

        host.program("virsh", f"cat <<'END'\n{DOMAIN % ('', PORT2)}\nEND")
        host.finds("problem", "domain.port-missing", *go, text=PORT2)
        host.program("virsh", "echo '<domain><name>vm1</name>"
                              "<uuid>5d3c6b4e-1111-4000-8000-000000000001</uuid></domain>'")
        host.finds("ok", "domain.no-ports", *go)
        host.program("virsh", "echo '<nonsense/>'")
        host.finds("problem", "domain.xml", *go)
        host.program("virsh", "echo 'error: no domain vm1' >&2; exit 1")
        host.finds("problem", "domain.missing", *go, text="no domain vm1")
        host.program("virsh", f"cat <<'END'\n{DOMAIN % ('', PORT)}\nEND")
        host.update("OVN_Southbound", "Encap", {"type": "vxlan"}, [["chassis_name", "==", "host-a"]])
        host.finds("problem", "domain.tunnel", *go)
        host.stop_databases()
        host.finds("unknown", "domain.ports-unknown", *go)


def test_unprivileged():
    """A user finds out what a user can see, and is told what to run as root."""
    if os.geteuid() != 0:
        return "not root"
    with whole_host() as host:
        os.chmod(host.folder.name, 0o755)
        os.chmod(host.path("etc/libvirt/libvirtd.conf"), 0o600)
        os.chmod(host.socket, 0o600)
        p = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", PORTFERRY,
             "--bus-address=" + host.bus.address, "check", "--json"],
            capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": host.bin + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8",
                 "PORTFERRY_TEST_ROOT": host.root, "LANGUAGE": ""})
        if p.returncode in (126, 127):
            return "the build folder is closed to others"
        found = {f["id"]: f for f in json.loads(p.stdout)["findings"]}
        assert p.returncode == 0, p.stdout
        assert found["libvirt.settings-unknown"]["level"] == "unknown"
        assert "root" in found["libvirt.settings-unknown"]["advice"]
        assert found["switch.unknown"]["level"] == "unknown"
    return None


if __name__ == "__main__":
    if not shutil.which("ovsdb-server") or not all(map(os.path.exists, SCHEMAS)):
        print("1..0 # SKIP no ovsdb-server, or no schemas")
        sys.exit(0)
    sys.exit(run([v for k, v in list(globals().items()) if k.startswith("test_")]))
