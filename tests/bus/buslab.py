# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private bus, and a program on it: what the tests of the bus and of the hook share."""

import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

OPEN_POLICY = """
  <policy context="default">
    <allow user="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
"""

# As on a system bus: only what a service's own file allows.
STRICT_POLICY = """
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
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
"""


def wait_for(condition, seconds=10, what="condition"):
    """Waits until condition() is true, and returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"timed out waiting for {what}")
        time.sleep(0.01)


def takes_connections(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


class Bus:
    """A dbus-daemon of one's own."""

    def __init__(self, *policy_files):
        # Short: a socket's path may have 107 bytes. Other users must get in.
        self.dir = tempfile.TemporaryDirectory(prefix="pf-bus-", dir="/tmp")
        os.chmod(self.dir.name, 0o755)
        self.socket = os.path.join(self.dir.name, "bus")
        self.address = "unix:path=" + self.socket
        self.config = os.path.join(self.dir.name, "bus.conf")
        policy = OPEN_POLICY
        if policy_files:
            policy = STRICT_POLICY + "".join(f"<include>{p}</include>" for p in policy_files)
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(
                '<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"'
                ' "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">'
                f"<busconfig><type>system</type><listen>{self.address}</listen>"
                f"<auth>EXTERNAL</auth>{policy}</busconfig>"
            )
        self.process = None

    def start(self):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self.process = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--nopidfile", "--config-file", self.config],
            stdout=subprocess.DEVNULL,
        )
        # The socket is there a moment before it takes connections.
        wait_for(lambda: takes_connections(self.socket), what="the bus")
        return self

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        self.dir.cleanup()

    def busctl(self, *args, user=None):
        """Runs busctl. Returns (exit status, standard output, standard error)."""
        command = ["busctl", "--address=" + self.address, "--json=short", "--timeout=20", *args]
        if user is not None:
            command = ["setpriv", "--reuid", str(user), "--clear-groups", *command]
        p = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return p.returncode, p.stdout, p.stderr

    def call(self, path, interface, method, *args, user=None, name="org.portferry1"):
        """Calls a method. Returns its result, or raises DBusError."""
        status, out, err = self.busctl("call", name, path, interface, method, *args, user=user)
        if status != 0:
            raise DBusError(err.strip())
        return json.loads(out)["data"] if out.strip() else None

    def get(self, path, interface, name):
        status, out, err = self.busctl("get-property", "org.portferry1", path, interface, name)
        if status != 0:
            raise DBusError(err.strip())
        return json.loads(out)["data"]

    def start_call(self, path, interface, method, *args, user=None, interactive=True):
        """Starts a call and returns its process; communicate() and returncode tell the end."""
        command = ["busctl", "--address=" + self.address, "--timeout=180",
                   f"--allow-interactive-authorization={'yes' if interactive else 'no'}",
                   "call", "org.portferry1", path, interface, method, *args]
        if user is not None:
            command = ["setpriv", "--reuid", str(user), "--clear-groups", *command]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class DBusError(Exception):
    pass


class Program:
    """A program that reads commands and reports what happens, line by line."""

    def __init__(self, *command, env=None):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, **(env or {})},
        )
        self.lines = queue.Queue()
        self.seen = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def expect(self, pattern, seconds=10):
        """Waits for a line that matches 'pattern' from its start; returns the match."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.001, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no '{pattern}' in time, but: {self.seen[-10:]}") from None
            if line is None:
                raise AssertionError(f"no '{pattern}' before the end, but: {self.seen[-10:]}")
            self.seen.append(line)
            match = re.match(pattern, line)
            if match:
                return match

    def expect_nothing(self, pattern, seconds=0.3):
        try:
            match = self.expect(pattern, seconds)
        except AssertionError:
            return
        raise AssertionError(f"unexpected: {match.group(0)}")

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def do(self, command):
        self.tell(command)
        self.expect("ok$")

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


class Monitor(Program):
    """Collects the signals on a bus."""

    def __init__(self, bus):
        super().__init__("busctl", "--address=" + bus.address, "--json=short", "monitor")
        # It says on standard error that it's there; a signal of one's own proves it.
        end = time.monotonic() + 10
        while time.monotonic() < end:
            bus.busctl("emit", "/probe", "org.example.Probe", "Probe")
            try:
                self.signal("Probe", seconds=0.3)
                return
            except AssertionError:
                continue
        raise AssertionError("busctl monitor does not work")

    def signal(self, member, seconds=10):
        """Waits for the next signal of that name; returns (path, arguments)."""
        end = time.monotonic() + seconds
        while True:
            match = self.expect(r"\{.*\}$", max(0.001, end - time.monotonic()))
            message = json.loads(match.group(0))
            if message["type"] == "signal" and message.get("member") == member:
                return message["path"], message["payload"]["data"]


def limited(test, seconds):
    """Runs a test; one that hangs gets an exception where it stands, and so cleans up."""
    def late(_number, _frame):
        signal.alarm(60)  # for what it does to clean up
        raise TimeoutError(f"still here after {seconds} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        return test()
    finally:
        signal.alarm(0)


def run(tests, seconds=120):
    """Runs each test, for so many seconds at most; reports in TAP."""
    failed = 0
    # Who is told to end cleans up: an exception passes all that does.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    print(f"1..{len(tests)}", flush=True)
    for i, test in enumerate(tests, 1):
        begin = time.monotonic()
        try:
            reason = limited(test, seconds)
        except Exception as e:  # pylint: disable=broad-except
            import traceback

            print("".join("# " + l + "\n" for l in traceback.format_exc().splitlines()), end="")
            print(f"not ok {i} {test.__name__} # {type(e).__name__}", flush=True)
            failed += 1
        else:
            skip = f" # SKIP {reason}" if reason else ""
            print(f"ok {i} {test.__name__}{skip} ({time.monotonic() - begin:.2f} s)"
                  if not skip else f"ok {i} {test.__name__}{skip}", flush=True)
    return 1 if failed else 0
