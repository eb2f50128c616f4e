# SPDX-License-Identifier: LGPL-2.1-or-later
"""The libvirt adapter with two real libvirtd and real QEMU: test_virt.py VIRT-WATCH BUS-DIRECTORY

Needs root, libvirtd and qemu-system-x86_64, else it is skipped. Each host is a set of namespaces;
nothing outside of them is touched. Guests have no disk, no network and nothing to boot."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

VIRT_WATCH = os.path.abspath(sys.argv[1])
sys.path.insert(0, sys.argv[2])

from buslab import Program, run, wait_for  # noqa: E402  pylint: disable=wrong-import-position

UUID = "5d3c6b4e-1111-4000-8000-%012d"

DOMAIN = """
<domain type='qemu'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <memory unit='MiB'>{memory}</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <cpu mode='custom' match='exact'><model>qemu64</model></cpu>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <memballoon model='none'/>
  </devices>
</domain>
"""

SETUP = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/lock
for d in /var/lib/libvirt /var/log/libvirt /var/cache/libvirt; do
    mkdir -p $d && mount -t tmpfs tmpfs $d
done
mkdir -p {dir}/etc && cp -a /etc/libvirt/. {dir}/etc/
rm -rf {dir}/etc/hooks {dir}/etc/qemu/*
mkdir -p {dir}/etc/hooks
mount --bind {dir}/etc /etc/libvirt
hostname {name}
ip link set lo up
cat > /etc/libvirt/libvirtd.conf <<EOF
listen_tcp = 1
listen_tls = 0
auth_tcp = "none"
auth_unix_ro = "none"
auth_unix_rw = "none"
listen_addr = "{ip}"
host_uuid = "{uuid}"
EOF
cat > /etc/libvirt/qemu.conf <<EOF
security_driver = "none"
user = "root"
group = "root"
namespaces = []
cgroup_controllers = []
dynamic_ownership = 0
remember_owner = 0
stdio_handler = "file"
migration_host = "{ip}"
EOF
echo ready
exec sleep infinity
"""


class Host:
    def __init__(self, number):
        self.name = f"virt{number}"
        self.ip = f"10.99.0.{number}"
        self.dir = tempfile.mkdtemp(prefix="pf-virt-", dir="/tmp")
        self.libvirtd = None
        self.keeper = Program(
            "unshare", "-m", "-n", "-u", "--propagation", "private", "sh", "-c",
            SETUP.format(dir=self.dir, name=self.name, ip=self.ip, uuid=UUID % (9000 + number)),
        )
        self.keeper.expect("ready")
        self.pid = self.keeper.process.pid

    def command(self, *args):
        return ["nsenter", "-t", str(self.pid), "-m", "-n", "-u", *args]

    def run(self, *args, check=True):
        p = subprocess.run(self.command(*args), capture_output=True, text=True, check=False,
                           timeout=60)
        if check and p.returncode != 0:
            raise AssertionError(f"{args}: {p.stderr}")
        return p.stdout

    def start(self):
        # What it starts may outlive it, and must not keep this program's own output open.
        self.libvirtd = subprocess.Popen(self.command("libvirtd", "-l"),
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: self.virsh("list", check=False) != "", what="libvirtd")

    def signal(self, number):
        """libvirtd itself, not nsenter: that has become it."""
        self.libvirtd.send_signal(number)

    def stop(self):
        if self.libvirtd is not None:
            self.libvirtd.kill()
            self.libvirtd.wait()
            self.libvirtd = None

    def virsh(self, *args, check=True):
        return self.run("virsh", "-c", "qemu:///system", *args, check=check)

    def create(self, number, memory=64, paused=False):
        path = os.path.join(self.dir, "domain.xml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(DOMAIN.format(name=f"vm{number}", uuid=UUID % number, memory=memory))
        self.virsh("create", path, *(["--paused"] if paused else []))

    def watch(self):
        return Program(*self.command(VIRT_WATCH, "qemu:///system"))

    def hook(self, text):
        path = os.path.join(self.dir, "etc/hooks/qemu")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def close(self):
        # Whatever libvirtd thinks of its guests: they may be in the hands of a hook.
        network = os.readlink(f"/proc/{self.pid}/ns/net")
        assert network != os.readlink("/proc/self/ns/net")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(pid) != self.pid and os.readlink(f"/proc/{pid}/ns/net") == network:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue  # it has ended by itself
        self.stop()
        self.keeper.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


class Hosts:
    """Two hosts with a cable between them."""

    def __enter__(self):
        self.hosts = []
        try:
            for i in (1, 2):
                self.hosts.append(Host(i))
            a, b = self.hosts
            a.run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable",
                  "netns", str(b.pid))
            for h in self.hosts:
                h.run("ip", "addr", "add", h.ip + "/24", "dev", "cable")
                h.run("ip", "link", "set", "cable", "up")
        except BaseException:
            self.__exit__()
            raise
        return self.hosts

    def __exit__(self, *_):
        for h in self.hosts:
            h.close()


def ask(watch, key, number, flags=0, timeout=2000):
    watch.tell(f"ask {key} {UUID % number} {flags} {timeout}")
    return answer(watch, key)


def answer(watch, key):
    m = watch.expect(rf"answer {key} (\S+) job=(\S+) reason=\d+ after=(\d+) fresh=(\d) error=(.*)",
                     20)
    assert m.group(4) == "1"
    return m.group(1), m.group(2), int(m.group(3)) / 1e6, m.group(5)


def event(watch, kind, number, seconds=20):
    m = watch.expect(rf"event {kind} {UUID % number} vm{number} (.*)", seconds)
    return dict(f.split("=") for f in m.group(1).split())


def test_connection():
    """libvirtd comes late, is killed, freezes, and is restarted."""
    with Hosts() as (a, _), a.watch() as w:
        w.expect_nothing("state connected", 0.5)
        assert ask(w, "early", 1)[0] == "unreachable"
        a.start()
        w.expect("state connected", 10)
        w.expect("snapshot 0")
        assert ask(w, "none", 1)[0] == "absent"

        a.create(1)
        event(w, "started-other", 1)
        assert ask(w, "up", 1)[:2] == ("running", "unknown")
        assert ask(w, "job", 1, flags=1)[:2] == ("running", "none")
        a.virsh("suspend", "vm1")
        event(w, "suspended-paused", 1)
        assert ask(w, "paused", 1)[0] == "paused"
        a.virsh("resume", "vm1")
        event(w, "resumed-unpaused", 1)

        # Many at once, about one and about many.
        for i in range(50):
            w.tell(f"ask k{i} {UUID % (i % 7)} 0 5000")
        w.tell("cancel k49")
        for i in range(49):
            m = w.expect(r"answer (k\d+) (\S+)")
            want = "running" if int(m.group(1)[1:]) % 7 == 1 else "absent"
            assert m.group(2) == want, m.group(0)
        w.expect_nothing("answer")

        # Frozen: questions end at their deadline, events come when it goes on.
        a.signal(signal.SIGSTOP)
        state, _, seconds, error = ask(w, "frozen", 1, timeout=500)
        assert state == "unreachable" and 0.4 < seconds < 10 and "in time" in error
        state, _, seconds, _ = ask(w, "frozen2", 1, timeout=300)
        assert state == "unreachable" and seconds < 10
        a.signal(signal.SIGCONT)
        assert ask(w, "again", 1)[0] == "running"

        a.stop()
        w.expect("state disconnected: libvirt closed the connection", 2)
        assert ask(w, "gone", 1)[0] == "unreachable"
        a.start()
        w.expect("state connected", 8)
        w.expect(f"guest {UUID % 1} vm1 running job=unknown")
        w.expect("snapshot 1")
        a.create(2)
        event(w, "started-other", 2)
        a.virsh("destroy", "vm2")
        event(w, "stopped-destroyed", 2)
        assert ask(w, "destroyed", 2)[0] == "absent"


def test_frozen_from_the_start():
    with Hosts() as (a, _):
        a.start()
        a.signal(signal.SIGSTOP)
        with a.watch() as w:
            w.expect("state connecting", 5)
            assert ask(w, "early", 1, timeout=300)[0] == "unreachable"
            a.signal(signal.SIGCONT)
            w.expect("state connected")
            w.expect("snapshot 0")
            w.tell("quit")
            assert w.process.wait(10) == 0


def test_keepalive():
    """A libvirtd that stays frozen is given up."""
    with Hosts() as (a, _), a.watch() as w:
        a.start()
        w.expect("snapshot 0", 10)
        a.signal(signal.SIGSTOP)
        begin = time.monotonic()
        w.expect("state disconnected: libvirt does not answer", 30)
        assert 9 < time.monotonic() - begin < 30
        a.signal(signal.SIGCONT)
        w.expect("state connected", 30)
        w.expect("snapshot 0")


def test_locked_domain():
    """A hook holds one domain; others are answered for meanwhile."""
    with Hosts() as (a, _):
        a.hook(f'[ "$1 $2" = "vm2 started" ] || exit 0\ntouch {a.dir}/held\n'
               f"while [ ! -e {a.dir}/go ]; do sleep 0.05; done\n")
        a.start()
        with a.watch() as w:
            w.expect("snapshot 0", 10)
            a.create(1)
            path = os.path.join(a.dir, "domain2.xml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(DOMAIN.format(name="vm2", uuid=UUID % 2, memory=64))
            virsh = subprocess.Popen(a.command("virsh", "-c", "qemu:///system", "create", path),
                                     stdout=subprocess.DEVNULL)
            wait_for(lambda: os.path.exists(a.dir + "/held"), what="the hook")
            state, _, seconds, error = ask(w, "held", 2, timeout=500)
            assert state == "unreachable" and seconds < 10 and "in time" in error
            for i in range(10):
                w.tell(f"ask more{i} {UUID % 2} 0 8000")
            state, _, seconds, _ = ask(w, "free", 1)
            assert state == "running" and seconds < 10, seconds
            open(a.dir + "/go", "w", encoding="utf-8").close()
            for _ in range(10):
                assert w.expect(r"answer more\d+ (\S+)").group(1) == "running"
            virsh.wait()


def migrate(a, b, *args):
    return subprocess.Popen(
        a.command("virsh", "-c", "qemu:///system", "migrate", "--live", *args, "vm1",
                  f"qemu+tcp://{b.ip}/system", f"tcp://{b.ip}"),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def slow(host):
    """Slows a migration down more than libvirt's 1 MiB/s, so that a slow machine can look at it."""
    host.virsh("qemu-monitor-command", "vm1",
               '{"execute":"migrate-set-parameters","arguments":{"max-bandwidth":20000}}')


def finish(process, success=True):
    out, _ = process.communicate(timeout=60)
    assert (process.returncode == 0) == success, out


def test_migration():
    """Who is source, who is destination; before, during and after."""
    with Hosts() as (a, b):
        a.start()
        b.start()
        with a.watch() as wa, b.watch() as wb:
            wa.expect("snapshot 0", 10)
            wb.expect("snapshot 0", 10)
            a.create(1)
            event(wa, "started-other", 1)
            p = migrate(a, b, "--bandwidth", "1")
            event(wb, "started-migrated", 1)
            event(wa, "migration-iteration", 1)
            slow(a)
            assert ask(wa, "src", 1, flags=1)[:2] == ("running", "migration-out")
            state, job, seconds, _ = ask(wb, "dst", 1)
            assert (state, job) == ("incoming", "migration-in") and seconds < 10
            with b.watch() as late:
                late.expect(f"guest {UUID % 1} vm1 incoming job=migration-in", 10)
            a.virsh("migrate-setspeed", "vm1", "1000")
            paused = event(wa, "suspended-migrated", 1)
            resumed = event(wb, "resumed-migrated", 1)
            assert int(paused["at"]) < int(resumed["at"])
            event(wa, "stopped-migrated", 1)
            done = event(wa, "job-completed", 1)
            assert done["job"] == "migration-out" and int(done["downtime"]) >= 0
            finish(p)
            assert ask(wa, "src2", 1)[0] == "absent"
            assert ask(wb, "dst2", 1)[0] == "running"

            # A paused guest arrives paused.
            b.virsh("suspend", "vm1")
            event(wb, "suspended-paused", 1)
            finish(migrate(b, a))
            event(wa, "started-migrated", 1)
            event(wa, "suspended-paused", 1)
            assert ask(wa, "paused", 1)[0] == "paused"
            a.virsh("resume", "vm1")

            # Cancelled after the pause: the guest has been stopped for the whole copy.
            a.virsh("suspend", "vm1")
            a.virsh("resume", "vm1")
            p = subprocess.Popen(
                a.command("virsh", "-c", "qemu:///system", "migrate", "--bandwidth", "1", "vm1",
                          f"qemu+tcp://{b.ip}/system", f"tcp://{b.ip}"),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            event(wa, "suspended-migrated", 1)
            slow(a)
            assert ask(wa, "src3", 1)[:2] == ("outgoing", "migration-out")
            a.virsh("domjobabort", "vm1")
            event(wa, "resumed-migrated", 1)
            event(wb, "stopped-failed", 1)
            finish(p, success=False)
            assert ask(wa, "src4", 1)[0] == "running"
            assert ask(wb, "dst4", 1)[0] == "absent"


def test_postcopy():
    with Hosts() as (a, b):
        a.start()
        b.start()
        with a.watch() as wa, b.watch() as wb:
            wa.expect("snapshot 0", 10)
            wb.expect("snapshot 0", 10)
            a.create(1)
            p = migrate(a, b, "--postcopy", "--bandwidth", "1", "--postcopy-bandwidth", "1")
            event(wa, "migration-iteration", 1)
            a.virsh("migrate-postcopy", "vm1")
            event(wa, "suspended-postcopy", 1)
            event(wb, "resumed-postcopy", 1)
            behind = ask(wa, "src", 1)[0]
            here = ask(wb, "dst", 1)[0]
            assert behind in ("left-behind", "absent"), behind
            assert here in ("running-postcopy", "running"), here
            a.virsh("migrate-setspeed", "--postcopy", "vm1", "1000", check=False)
            event(wb, "resumed-migrated", 1)
            event(wa, "stopped-migrated", 1)
            finish(p)


def able():
    if os.geteuid() != 0:
        return "needs root"
    for program in ("libvirtd", "virsh", "qemu-system-x86_64", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"needs {program}"
    if subprocess.run(["unshare", "-m", "-n", "-u", "true"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return "cannot make namespaces"
    return None


if __name__ == "__main__":
    REASON = able()
    if REASON is not None:
        print(f"1..0 # SKIP {REASON}")
        sys.exit(0)
    TESTS = [
        test_connection,
        test_frozen_from_the_start,
        test_keepalive,
        test_locked_domain,
        test_migration,
        test_postcopy,
    ]
    if len(sys.argv) > 3:
        TESTS = [t for t in TESTS if re.search(sys.argv[3], t.__name__)]
    sys.exit(run(TESTS))
