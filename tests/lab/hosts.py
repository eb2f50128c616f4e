# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hosts: namespaces, their processes, and what runs on each kind of host."""

import concurrent.futures
import itertools
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import threading
import time
import uuid

from . import artifacts

CLEAN_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/root",
}

# Every host has its own of these. The folders are part of the packages, so
# that nothing needs to be made on the machine itself.
PRIVATE_FOLDERS = [
    "/var/cache/libvirt",
    "/var/lib/libvirt",
    "/var/lib/openvswitch",
    "/var/lib/ovn",
]


class LabError(Exception):
    """The lab itself does not work."""


class CommandError(LabError):
    """A command failed; has its result as `result`."""

    def __init__(self, host, result):
        self.result = result
        super().__init__(
            f"{host}: {shlex.join(map(str, result.args))} ended with {result.returncode}: "
            f"{(result.stderr or result.stdout or '').strip()}")


def wait_until(condition, what, timeout=30, interval=0.02):
    """Waits for a condition to be true and returns its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise LabError(f"waited {timeout} s in vain for {what}")
        time.sleep(interval)


class Service:
    """A process that a host keeps running."""

    def __init__(self, name, process, command, options):
        self.name = name
        self.process = process
        self.command = command
        self.options = options

    @property
    def pid(self):
        """The process id as the machine sees it, for signals such as SIGSTOP.

        The direct child is the one that entered the host's namespaces.
        """
        wrapper = self.process.pid
        children = pathlib.Path(f"/proc/{wrapper}/task/{wrapper}/children").read_text()
        return int(children.split()[0])

    @property
    def running(self):
        return self.process.poll() is None


class Host:
    """A machine of its own: namespaces, private state, processes."""

    def __init__(self, lab, name, number):
        self.lab = lab
        self.name = name
        # The management network carries libvirt and the databases; the
        # physical one carries tunnels, and belongs to OVS.
        self.mgmt_ip = f"172.30.0.{number}"
        self.phys_ip = f"172.31.0.{number}"
        self.logs = lab.logs / name
        self.pid = None
        self.services = {}
        self._holder = None
        self._processes = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __repr__(self):
        return f"<host {self.name}>"

    # --- life ---

    def create(self):
        """Makes the namespaces; no network and no processes yet."""
        self.logs.mkdir(parents=True)
        self._holder = subprocess.Popen(
            [artifacts.tool("hostns"), "hold", self.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        line = self._holder.stdout.readline()
        if not line:
            raise LabError(f"no namespaces for {self.name}")
        self.pid = int(line)
        self.shell(self._mount_script())

    def _mount_script(self):
        names = "".join(f"{host.mgmt_ip} {host.name}\n" for host in self.lab.hosts)
        lines = [
            "mount -t tmpfs -o mode=755 portferry-lab /run",
            "mkdir /run/lab /run/lock",
            # A copy and not an overlay: in a container, /etc may be on one
            # already, and these don't stack.
            "cp -a /etc /run/lab/etc",
            "mount --bind /run/lab/etc /etc",
            "rm -rf /etc/libvirt /etc/openvswitch /etc/ovn /etc/portferry",
            "mkdir -p /etc/libvirt /etc/openvswitch /etc/ovn /etc/portferry",
            f"mount --bind {shlex.quote(str(self.logs))} /var/log",
            "mkdir -p /var/log/openvswitch /var/log/ovn /var/log/libvirt",
            "mkdir -p /run/openvswitch /run/ovn /run/dbus /run/libvirt",
            f"printf %s {shlex.quote('127.0.0.1 localhost' + chr(10) + names)} >/etc/hosts",
            f"echo {self.name} >/etc/hostname",
        ]
        for folder in PRIVATE_FOLDERS:
            lines.append(f"mkdir -p /run/lab{folder}; mount --bind /run/lab{folder} {folder}")
        return "\n".join(lines)

    def keep(self):
        """Lets the host outlive this process."""
        self._holder.stdin.write(b"keep\n")
        self._holder.stdin.flush()

    def destroy(self):
        """Ends the host and everything on it."""
        if not self._holder:
            return
        self._holder.stdin.close()
        self._holder.stdout.close()
        # Returns when the kernel has ended every process of the host.
        self._holder.wait(timeout=30)
        self._holder = None
        for process in self._processes:
            process.wait(timeout=10)

    # --- commands ---

    def path(self, inside):
        """A path of the host as this process can open it, sockets included."""
        return f"/proc/{self.pid}/root{inside}"

    def write(self, inside, text, mode=0o644):
        path = pathlib.Path(self.path(inside))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def next_number(self):
        with self._lock:
            return next(self._numbers)

    def _enter(self, command):
        return [str(artifacts.tool("hostns")), "enter", str(self.pid), *map(str, command)]

    def run(self, command, check=True, timeout=60, **options):
        """Runs a command to its end; the result has text as output."""
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        environment = {**CLEAN_ENVIRONMENT, **options.pop("env", {})}
        result = subprocess.run(
            self._enter(command), capture_output=True, text=True, timeout=timeout,
            env=environment, **options)
        if check and result.returncode != 0:
            result.args = command
            raise CommandError(self.name, result)
        return result

    def shell(self, script, **options):
        return self.run(["sh", "-euc", script], **options)

    def popen(self, command, **options):
        """Starts a command that ends with the host at the latest."""
        options.setdefault("stdin", subprocess.DEVNULL)
        environment = {**CLEAN_ENVIRONMENT, **options.pop("env", {})}
        # A session of its own: Ctrl-C goes to the test, which then ends what
        # runs here in good order.
        process = subprocess.Popen(
            self._enter(command), env=environment, start_new_session=True, **options)
        self._processes.append(process)
        return process

    # --- services ---

    def start_service(self, name, command, ready=None, timeout=30, env=None):
        """Starts a process, its output going to a log, and waits until ready."""
        with open(self.logs / f"{name}.log", "ab") as log:
            process = self.popen(command, stdout=log, stderr=log, env=env or {})
        service = Service(name, process, command,
                          {"ready": ready, "timeout": timeout, "env": env})
        self.services[name] = service

        def is_ready():
            if not service.running:
                raise LabError(f"{self.name}: {name} ended with {process.returncode}, "
                               f"see {self.logs / name}.log")
            return ready()

        if ready:
            wait_until(is_ready, f"{name} on {self.name}", timeout)
        return service

    def stop_service(self, name, signal_number=signal.SIGTERM, timeout=30):
        service = self.services.pop(name)
        if service.running:
            os.kill(service.pid, signal_number)
        service.process.wait(timeout=timeout)
        return service.process.returncode

    def restart_service(self, name, signal_number=signal.SIGTERM):
        service = self.services[name]
        self.stop_service(name, signal_number)
        return self.start_service(name, service.command, **service.options)

    def exists(self, inside):
        return os.path.exists(self.path(inside))

    def listening(self, inside):
        """Whether something accepts connections at a Unix socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(self.path(inside))
            except OSError:
                return False
        return True


class Central(Host):
    """OVN's databases and northd."""

    def __init__(self, lab, name, number):
        super().__init__(lab, name, number)
        self.sockets = {name: [f"/run/ovn/ovn{name}_db.sock"] for name in ("nb", "sb")}

    def start(self):
        self.shell("""
            ovsdb-tool create /var/lib/ovn/nb.db /usr/share/ovn/ovn-nb.ovsschema
            ovsdb-tool create /var/lib/ovn/sb.db /usr/share/ovn/ovn-sb.ovsschema
        """)
        for name, port in (("nb", 6641), ("sb", 6642)):
            self.start_service(
                name,
                ["ovsdb-server", f"/var/lib/ovn/{name}.db", f"--unixctl=/run/ovn/{name}.ctl",
                 "-vconsole:off", f"--log-file=/var/log/ovn/{name}.log",
                 f"--remote=punix:/run/ovn/ovn{name}_db.sock", f"--remote=ptcp:{port}:0.0.0.0"],
                ready=lambda name=name: self.listening(f"/run/ovn/ovn{name}_db.sock"))
        self.shell("""
            ovn-nbctl --db=unix:/run/ovn/ovnnb_db.sock init
            ovn-sbctl --db=unix:/run/ovn/ovnsb_db.sock init
        """)
        self.start_service(
            "northd",
            ["ovn-northd", "--ovnnb-db=unix:/run/ovn/ovnnb_db.sock",
             "--ovnsb-db=unix:/run/ovn/ovnsb_db.sock", "-vconsole:off", "--pidfile",
             "--log-file=/var/log/ovn/northd.log"],
            ready=lambda: self.exists("/run/ovn/ovn-northd.pid"))

    def _ctl(self, name, arguments, check, timeout):
        database = ",".join(f"unix:{path}" for path in self.sockets[name])
        command = [f"ovn-{name}ctl", f"--db={database}", "--timeout=30", *arguments]
        end = time.monotonic() + timeout
        while True:
            answer = self.run(command, check=False, timeout=timeout)
            # It tries each member of a cluster once, and one of them may just look for a leader.
            if (len(self.sockets[name]) == 1 or "database connection failed" not in answer.stderr
                    or time.monotonic() > end):
                break
            time.sleep(0.5)
        if check and answer.returncode != 0:
            raise CommandError(self.name, answer)
        return answer.stdout.strip()

    def nbctl(self, *arguments, check=True, timeout=60):
        return self._ctl("nb", arguments, check, timeout)

    def sbctl(self, *arguments, check=True, timeout=60):
        return self._ctl("sb", arguments, check, timeout)


class Chassis(Host):
    """A host with OVS and ovn-controller."""

    @property
    def chassis(self):
        """The chassis name. Not the host name, so that nobody mixes them up."""
        return f"chassis-{self.name}"

    def start(self):
        self.start_ovs()
        self.start_service(
            "ovn-controller",
            ["ovn-controller", "unix:/run/openvswitch/db.sock", "-vconsole:off", "--pidfile",
             "--log-file=/var/log/ovn/ovn-controller.log"],
            ready=lambda: self.exists("/run/ovn/ovn-controller.pid"))

    def start_ovs(self):
        self.shell("ovsdb-tool create /etc/openvswitch/conf.db "
                   "/usr/share/openvswitch/vswitch.ovsschema")
        self.start_service(
            "ovsdb",
            ["ovsdb-server", "/etc/openvswitch/conf.db", "-vconsole:off", "--pidfile",
             "--log-file=/var/log/openvswitch/ovsdb-server.log",
             "--remote=punix:/run/openvswitch/db.sock",
             "--remote=db:Open_vSwitch,Open_vSwitch,manager_options"],
            ready=lambda: self.listening("/run/openvswitch/db.sock"))
        settings = {
            "system-id": self.chassis,
            "hostname": self.name,
            "ovn-remote": self.lab.sb_remote,
            "ovn-encap-type": "geneve",
            "ovn-encap-ip": self.phys_ip,
        }
        self.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".",
                   *[f"external_ids:{key}=\"{value}\"" for key, value in settings.items()])
        # There need not be a kernel module: this is the userspace datapath.
        self.start_service(
            "vswitchd",
            ["ovs-vswitchd", "unix:/run/openvswitch/db.sock", "-vconsole:off", "--pidfile",
             "--disable-system", "--log-file=/var/log/openvswitch/ovs-vswitchd.log"],
            ready=lambda: self.exists("/run/openvswitch/ovs-vswitchd.pid"),
            env={"LD_PRELOAD": str(artifacts.tool("bigsockets"))})
        # The userspace datapath sends its tunnels through a bridge that has
        # the tunnel address, not through the kernel's routes.
        self.vsctl(
            "--may-exist", "add-br", "br-int", "--",
            "set", "Bridge", "br-int", "datapath_type=netdev", "fail_mode=secure",
            "other_config:disable-in-band=true", "--",
            "--may-exist", "add-br", "br-phys", "--",
            "set", "Bridge", "br-phys", "datapath_type=netdev", "--",
            "--may-exist", "add-port", "br-phys", "phys0")
        # The userspace datapath computes no checksums: without this every TCP
        # connection through it hangs, while ping works.
        self.shell(f"""
            ethtool -K br-phys tx off >/dev/null
            ip addr add {self.phys_ip}/24 dev br-phys
            ip link set br-phys up
        """)

    def vsctl(self, *arguments, check=True, timeout=60):
        return self.run(["ovs-vsctl", "--timeout=30", *arguments],
                        check=check, timeout=timeout).stdout.strip()


class Client(Chassis):
    """Where the probes come from."""

    def __init__(self, lab, name, number):
        super().__init__(lab, name, number)
        self._ports = itertools.count(0)

    def add_port(self, port, mac, *addresses):
        """Plugs an interface of this host into a logical port."""
        interface = f"probe{next(self._ports)}"
        self.vsctl(
            "add-port", "br-int", interface, "--",
            "set", "Interface", interface, "type=internal", f"mac=\"{mac}\"",
            f"external_ids:iface-id={port}")
        added = "\n".join(f"ip addr add {address} dev {interface}"
                          + (" nodad" if ":" in address else "") for address in addresses)
        self.shell(f"""
            ethtool -K {interface} tx off >/dev/null
            {added}
            ip link set {interface} up
        """)
        wait_until(
            lambda: "ovn-installed" in self.vsctl("get", "Interface", interface, "external_ids"),
            f"the port {port} on {self.name}")
        return interface


class Hypervisor(Chassis):
    """A libvirt host."""

    # A Linux bridge for guest interfaces that OVN knows nothing about.
    PLAIN_BRIDGE = "plain0"

    def __init__(self, lab, name, number):
        super().__init__(lab, name, number)
        self.notifications = None

    @property
    def uri(self):
        """Where other hosts reach this one's libvirtd."""
        return f"qemu+tcp://{self.name}/system"

    def start(self):
        self.start_journal()
        self.start_dbus()
        # libvirtd takes the longest, and needs nothing of the rest.
        with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
            libvirtd = pool.submit(self.start_libvirtd)
            super().start()
            self.shell(f"ip link add {self.PLAIN_BRIDGE} type bridge; "
                       f"ip link set {self.PLAIN_BRIDGE} up")
            libvirtd.result()

    def start_journal(self):
        socket_path = "/run/systemd/journal/socket"
        self.start_service(
            "journal",
            ["/usr/bin/python3", "-I", artifacts.HERE / "journal.py", socket_path,
             "/var/log/journal.jsonl"],
            ready=lambda: self.exists(socket_path))

    def journal(self, **wanted):
        """The journal's entries so far, those that have the wanted fields."""
        path = self.logs / "journal.jsonl"
        if not path.exists():
            return []
        with open(path, encoding="utf-8") as file:
            # The last line may be half written.
            entries = [json.loads(line) for line in file if line.endswith("\n")]
        return [entry for entry in entries
                if all(entry.get(name) == value for name, value in wanted.items())]

    def start_dbus(self):
        policy = artifacts.REPO / "data" / "org.portferry1.conf"
        include = ""
        if policy.exists():
            self.write("/etc/dbus-1/lab.d/org.portferry1.conf", policy.read_text())
            include = "<includedir>/etc/dbus-1/lab.d</includedir>"
        self.write("/etc/dbus-1/lab.conf", DBUS_CONFIGURATION.format(include=include))
        self.start_service(
            "dbus",
            ["dbus-daemon", "--config-file=/etc/dbus-1/lab.conf", "--nofork", "--nopidfile",
             "--nosyslog"],
            ready=lambda: self.listening("/run/dbus/system_bus_socket"))

    @property
    def bus_address(self):
        """The system bus as a process outside the host reaches it."""
        return "unix:path=" + self.path("/run/dbus/system_bus_socket")

    def start_libvirtd(self):
        self.write("/etc/libvirt/libvirtd.conf", LIBVIRTD_CONFIGURATION.format(
            host_uuid=uuid.uuid4(), level=self.lab.libvirt_log_level))
        self.write("/etc/libvirt/qemu.conf", QEMU_CONFIGURATION.format(address=self.mgmt_ip))
        # libvirtd looks for hooks when it starts, and never again if there was
        # none. This one does nothing, so that install_hook() works any time.
        self.write("/etc/libvirt/hooks/qemu.d/lab-placeholder", "#!/bin/sh\nexit 0\n", 0o755)
        self.start_service("libvirtd", ["libvirtd", "-l"], ready=self._libvirt_answers, timeout=30)
        self.start_service("events", [artifacts.tool("eventlog"), "qemu:///system"],
                           ready=lambda: (self.logs / "events.log").stat().st_size > 0)

    def _libvirt_answers(self):
        return (self.listening("/run/libvirt/libvirt-sock") and
                self.run(["virsh", "-q", "uri"], check=False).returncode == 0)

    def virsh(self, *arguments, check=True, timeout=60):
        return self.run(["virsh", "-q", "-c", "qemu:///system", *arguments],
                        check=check, timeout=timeout).stdout.strip()

    # --- portferry ---

    def install_hook(self, source=None, name="portferry", timed=False):
        """Puts a hook in place; `timed`: how long it takes is told by hook_times()."""
        source = pathlib.Path(source or artifacts.BUILD / "hooks" / "portferry-hook")
        if timed:
            self._put(source, f"/run/lab/hooks/{name}")
            source = artifacts.tool("hooktime")
        self._put(source, self.hook_path(name))

    @staticmethod
    def hook_path(name="portferry"):
        return f"/etc/libvirt/hooks/qemu.d/{name}"

    def _put(self, source, inside):
        target = pathlib.Path(self.path(inside))
        target.parent.mkdir(parents=True, exist_ok=True)
        # Somebody may be about to run it: never half a file.
        made = target.with_name(f".{target.name}")
        made.write_bytes(source.read_bytes())
        made.chmod(0o755)
        made.rename(target)

    def remove_hook(self, name="portferry"):
        pathlib.Path(self.path(self.hook_path(name))).unlink(missing_ok=True)

    def hook_times(self, since=0):
        """[(operation, suboperation, begin ns, end ns)] of hooks that were timed."""
        path = self.logs / "hooks.log"
        if not path.exists():
            return []
        lines = [line.split() for line in path.read_text().splitlines()]
        return [(operation, sub, int(begin), int(end))
                for _name, operation, sub, begin, end, _status in lines if int(begin) >= since]

    def start_portferryd(self, extra_args=(), env=None, timeout=30):
        """Starts the daemon and waits until it says that it is ready."""
        notify = "/run/portferry-lab-notify"
        self.notifications = NotifySocket(self.path(notify))
        return self.start_service(
            "portferryd",
            [artifacts.BUILD / "daemon" / "portferryd", "--ovn-nb", self.lab.nb_remote,
             *extra_args],
            ready=lambda: self.notifications.has("READY=1"), timeout=timeout,
            env={"NOTIFY_SOCKET": notify, **(env or {})})

    def stop_portferryd(self, signal_number=signal.SIGTERM):
        status = self.stop_service("portferryd", signal_number)
        self.notifications.close()
        return status


class NotifySocket:
    """What a daemon tells its service manager."""

    def __init__(self, path):
        if os.path.exists(path):
            os.unlink(path)
        self.messages = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        # Read all the time: a full socket would block the daemon.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                data = self._socket.recv(65536)
            except OSError:
                return
            if not data:
                return
            now = time.time_ns()
            self.messages += [(now, line) for line in data.decode().splitlines()]

    def has(self, line):
        return any(message == line for _time, message in self.messages)

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


# The stock system bus, except that root may own any name even where a
# package's own policy is not installed yet.
DBUS_CONFIGURATION = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"
           send_interface="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.DBus"
           send_interface="org.freedesktop.DBus.Introspectable"/>
    <allow send_destination="org.freedesktop.DBus"
           send_interface="org.freedesktop.DBus.Properties"/>
    <allow send_destination="org.freedesktop.DBus"
           send_interface="org.freedesktop.DBus.Peer"/>
  </policy>
  <policy user="root">
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_destination="org.freedesktop.DBus"
           send_interface="org.freedesktop.DBus.Monitoring"/>
  </policy>
  {include}
</busconfig>
"""

LIBVIRTD_CONFIGURATION = """\
host_uuid = "{host_uuid}"
listen_tls = 0
listen_tcp = 1
auth_tcp = "none"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "{level}:file:/var/log/libvirt/libvirtd.log"
"""

QEMU_CONFIGURATION = """\
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
migration_host = "{address}"
"""
