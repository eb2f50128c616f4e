# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client on a private bus: test_client.py PORTFERRY FAKE-DAEMON"""

import contextlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

from buslab import Bus, Program, run, wait_for

PORTFERRY, FAKE_DAEMON = sys.argv[1:3]

UUID = "5d3c6b4e-1111-4000-8000-000000000001"
UUID2 = "5d3c6b4e-1111-4000-8000-000000000002"
PORT = "5d3c6b4e-0000-4000-8000-00000000000a"
T0 = 1_700_000_000_000_000
MS = 1000

COMMANDS = ["status", "show", "watch", "history", "timeline", "check", "hold", "release",
            "activate", "rollback", "forget", "preplug", "reload"]

OK, FAILED, USAGE, NO_DAEMON, NOT_FOUND, DENIED, NOT_NOW, TIMEOUT = range(8)


def environment(**more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("LC_") and k not in ("LANG", "LANGUAGE", "NO_COLOR", "COLUMNS")}
    env.update({"LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC"}, **more)
    return {k: v for k, v in env.items() if v is not None}


def client(bus, *args, **env):
    """Runs the client. Returns (exit status, standard output, standard error)."""
    command = [PORTFERRY]
    if bus is not None:
        command.append("--bus-address=" + bus.address)
    p = subprocess.run([*command, *args], capture_output=True, check=False, timeout=60,
                       stdin=subprocess.DEVNULL, env=environment(**env))
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def on_terminal(bus, *args, columns=100, **env):
    """The same on a terminal; returns (exit status, all that it wrote)."""
    parent, child = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    p = subprocess.Popen([PORTFERRY, "--bus-address=" + bus.address, *args], stdin=child,
                         stdout=child, stderr=child, env=environment(**env))
    os.close(child)
    out = b""
    while True:
        try:
            block = os.read(parent, 65536)
        except OSError:
            break
        if not block:
            break
        out += block
    os.close(parent)
    return p.wait(timeout=30), out.decode().replace("\r\n", "\n")


@contextlib.contextmanager
def lab(*options):
    with Bus() as bus, Program(FAKE_DAEMON, bus.address, *options) as daemon:
        daemon.expect("acquired")
        yield bus, daemon


def carry(daemon, identifier="h1", domain="vm1", uuid=UUID, start=T0, role="destination"):
    """A handover at its destination, up to the copying of memory."""
    daemon.do(f"add {identifier} '{domain}' {uuid} {role} {start}")
    daemon.do(f"port {identifier} {PORT} 52:54:00:00:00:0a ready")
    daemon.do(f"phase {identifier} preplug {start + 5 * MS}")
    daemon.do(f"phase {identifier} binding {start + 25 * MS}")
    daemon.do(f"phase {identifier} ready {start + 145 * MS}")


def end(daemon, identifier="h1", start=T0, outcome="done"):
    """The rest of its life."""
    for phase, at in (("open", 2400), ("running", 2490), ("activate", 2610), ("active", 2640)):
        daemon.do(f"phase {identifier} {phase} {start + at * MS}")
    daemon.do(f"set {identifier} Ended {start + 3900 * MS}")
    daemon.do(f"set {identifier} Outcome {outcome}")
    daemon.do(f"phase {identifier} {outcome} {start + 3900 * MS}")


def parsed(text):
    return json.loads(text)


def test_help_and_version():
    """Every command explains itself, without any bus."""
    status, out, err = client(None, "--help")
    assert (status, err) == (OK, "")
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", out, re.M), command
        status, text, err = client(None, command, "--help")
        assert (status, err) == (OK, ""), command
        assert text.startswith("Usage:") and f"portferry [OPTION…] {command}" in text, text
        assert client(None, "help", command)[1] == text
    status, out, err = client(None, "--version")
    assert status == OK and re.fullmatch(r"portferry \d+\.\d+\.\d+\n", out)


def test_usage_errors():
    """Nonsense is exit status 2, and touches no bus."""
    for args in ([], ["nonsense"], ["--nonsense"], ["status", "extra"], ["show"],
                 ["show", "a", "b"], ["history", "--limit", "x"], ["timeline"], ["activate"],
                 ["rollback", "a", "b"], ["hold"], ["release"], ["forget"], ["reload", "x"],
                 ["preplug"], ["preplug", UUID], ["preplug", "vm1", PORT], ["check", "vm1"],
                 ["check", "--to", "x"], ["history", "-n", "-1"], ["status", "--svg", "x"],
                 ["show", b"\xff\xfe"], ["--bus-address"], ["timeline", "a", "--json", "--svg=-"]):
        status, out, err = client(None, *args, DBUS_SYSTEM_BUS_ADDRESS="unix:path=/nonexistent")
        assert status == USAGE, (args, status, out, err)
        assert err.startswith("portferry: "), (args, err)
        if "--json" not in args:
            assert out == "", (args, out)
    status, out, _ = client(None, "--json", "show")
    assert status == USAGE and parsed(out)["error"]["exit_status"] == USAGE
    assert client(None, "--bus-address=nonsense", "status")[0] in (USAGE, NO_DAEMON)


def test_no_bus_no_daemon():
    for args in (["status"], ["show", "vm1"], ["watch"], ["history"], ["timeline", "vm1"],
                 ["activate", "vm1"], ["hold", "vm1"], ["reload"], ["preplug", UUID, PORT]):
        status, out, err = client(None, "--bus-address=unix:path=/nonexistent/bus", *args)
        assert (status, out) == (NO_DAEMON, "") and "/nonexistent/bus" in err, (args, err)
        with Bus() as bus:
            status, out, err = client(bus, *args)
            assert (status, out) == (NO_DAEMON, ""), (args, out, err)
            assert "portferryd does not run" in err and "systemctl start" in err
    with Bus() as bus:
        status, out, _ = client(bus, "status", "--json")
        error = parsed(out)["error"]
        assert status == error["exit_status"] == NO_DAEMON
        assert error["name"].startswith("org.freedesktop.DBus.Error.")


def test_status():
    with lab() as (bus, daemon):
        status, out, err = client(bus, "status")
        assert (status, err) == (OK, "")
        assert "portferryd 0.1.0 on host-b, chassis host-b" in out
        assert "libvirt connected, northbound connected, southbound connected" in out
        assert "No handover is under way." in out

        carry(daemon)
        daemon.do("manager LibvirtState connecting")
        daemon.do("set h1 Held true")
        carry(daemon, "h2", "vm2", UUID2)
        daemon.do("set h2 LastError 'the switch is gone'")
        carry(daemon, "h0", "old", UUID2, T0 - 10**9)
        end(daemon, "h0", T0 - 10**9)
        carry(daemon, "h3", "vm3", UUID2, T0 + 1)
        daemon.do("set h3 Waiting 'the flows'")
        daemon.do(f"set h3 Deadline {T0 + 10**7}")
        status, out, err = client(bus, "status")
        assert (status, err) == (OK, "")
        assert "libvirt connecting" in out
        lines = out.splitlines()
        head = next(l for l in lines if l.startswith("HANDOVER"))
        assert head.split() == ["HANDOVER", "DOMAIN", "ROLE", "PHASE", "FOR", "ROUTE", "PORTS",
                                "NOTE"]
        assert next(l for l in lines if l.startswith("h3")).endswith(
            "waits for the flows (until 2023-11-14 22:13:30)")
        row = next(l for l in lines if l.startswith("h1"))
        assert "vm1" in row and "destination" in row and "host-a → host-b" in row
        assert row.endswith("held by an operator")
        assert next(l for l in lines if l.startswith("h2")).endswith("the switch is gone")
        assert not any(l.startswith("h0") for l in lines)
        assert all(l == l.rstrip() for l in lines)

        status, out, err = client(bus, "--json", "status")
        state = parsed(out)
        assert state["connections"] == {"libvirt": "connecting", "northbound": "synced",
                                        "southbound": "synced", "switch": "synced"}
        assert state["counters"] == {"handovers-started": 3, "handovers-done": 2}
        assert [h["id"] for h in state["handovers"]] == ["h1", "h2", "h3"] and state["ended"] == 1
        assert client(bus, "status", "--json")[1] == out


def test_show():
    with lab() as (bus, daemon):
        carry(daemon)
        daemon.do("set h1 Waiting 'the flows'")
        daemon.do(f"set h1 Deadline {T0 + 10**7}")
        for name in ("h1", "vm1", UUID, UUID.upper()):
            status, out, err = client(bus, "show", name)
            assert (status, err) == (OK, ""), err
            assert f"vm1 ({UUID})" in out and PORT in out and "52:54:00:00:00:0a" in out
        assert re.search(r"^binding +.* 120 ms +waits until the flows", out, re.M), out
        assert re.search(r"^Waits for +the flows$", out, re.M) and "By hand" not in out
        state = parsed(client(bus, "show", "vm1", "--json")[1])
        assert set(state) == {
            "id", "object", "domain", "uuid", "role", "open", "phase", "outcome", "source",
            "destination", "peer", "held", "by_hand", "waiting", "started_us", "ended_us",
            "deadline_us", "last_error", "ports", "phases"}
        assert state["open"] is True and state["outcome"] is None and state["ended_us"] is None
        assert state["waiting"] == "the flows" and state["deadline_us"] == T0 + 10**7
        assert state["ports"] == [{"iface_id": PORT, "mac": "52:54:00:00:00:0a", "state": "ready"}]
        assert state["phases"][1] == {"phase": "binding", "began_us": T0 + 25 * MS,
                                      "lasted_us": 120 * MS}
        assert state["phases"][-1]["lasted_us"] is None

        daemon.do("set h1 ByHand true")
        assert re.search(r"^By hand +'portferry preplug' began it", client(bus, "show", "h1")[1],
                         re.M)
        end(daemon)
        status, out, _ = client(bus, "show", "h1")
        assert re.search(r"^Ended .*done after 3\.90 s$", out, re.M), out
        state = parsed(client(bus, "show", "h1", "--json")[1])
        assert state["outcome"] == "done" and state["ended_us"] == T0 + 3900 * MS

        status, out, err = client(bus, "show", "vm9")
        assert (status, out) == (NOT_FOUND, "") and "'vm9'" in err
        status, out, _ = client(bus, "show", "vm9", "--json")
        assert parsed(out)["error"]["name"] == "org.portferry1.Error.NotFound"


def test_which_one():
    """A domain means its open handover, else its youngest."""
    with lab() as (bus, daemon):
        for i, start in enumerate((T0, T0 + 10**9, T0 + 2 * 10**9)):
            carry(daemon, f"h{i}", start=start)
            if i != 1:
                end(daemon, f"h{i}", start)
        assert parsed(client(bus, "show", "vm1", "--json")[1])["id"] == "h1"
        end(daemon, "h1", T0 + 10**9)
        assert parsed(client(bus, "show", "vm1", "--json")[1])["id"] == "h2"
        assert parsed(client(bus, "show", "h0", "--json")[1])["id"] == "h0"


def test_history():
    with lab() as (bus, daemon):
        assert client(bus, "history")[:2] == (OK, "No handover has ended.\n")
        for i in range(4):
            carry(daemon, f"h{i}", f"vm{i % 2}", (UUID, UUID2)[i % 2], start=T0 + i * 10**9)
            if i < 3:
                end(daemon, f"h{i}", T0 + i * 10**9, "undone" if i == 1 else "done")
        status, out, err = client(bus, "history")
        assert (status, err) == (OK, "")
        rows = out.splitlines()[1:]
        assert [r.split()[2] for r in rows] == ["h2", "h1", "h0"], out
        assert "rolled back" in rows[1] and "3.90 s" in rows[0]
        ids = lambda *a: [h["id"] for h in parsed(client(bus, "history", "--json", *a)[1])[
            "handovers"]]
        assert ids() == ["h2", "h1", "h0"]
        assert ids("-n", "2") == ["h2", "h1"]
        assert ids("vm0") == ["h2", "h0"] and ids(UUID2) == ["h1"]
        assert ids("nobody") == []


def test_timeline():
    with lab() as (bus, daemon):
        carry(daemon)
        end(daemon)
        status, out, err = client(bus, "timeline", "vm1", COLUMNS="80")
        assert (status, err) == (OK, "")
        lines = out.splitlines()
        assert lines[0] == "vm1: host-a → host-b, done after 3.90 s"
        bars = [l for l in lines if "│" in l]
        assert [l.split()[0] for l in bars] == ["preplug", "binding", "ready", "open", "running",
                                                "activate", "active", "done"]
        ready = next(l for l in bars if l.startswith("ready"))
        assert ready.count("█") > 25 and ready.endswith(" 2.25 s")
        assert all(any(c in l for c in "█▏▎▍▌▋▊▉◆") for l in bars)
        assert max(map(len, lines)) <= 80
        assert "1 s" in lines[-1] and "3 s" in lines[-1]
        wide = client(bus, "timeline", "vm1", COLUMNS="140")[1]
        assert 120 < max(map(len, wide.splitlines())) <= 140
        narrow = client(bus, "timeline", "vm1", COLUMNS="40")[1]
        assert max(map(len, narrow.splitlines())) <= 40, narrow

        plain = client(bus, "timeline", "vm1", LC_ALL="C")[1]
        assert plain.isascii() and "#" in plain

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "picture.svg")
            assert client(bus, "timeline", "vm1", "--svg", path) == (OK, "", "")
            with open(path, encoding="utf-8") as f:
                text = f.read()
            assert client(bus, "timeline", "vm1", "--svg=-") == (OK, text, "")
            status, _, err = client(bus, "timeline", "vm1", "--svg", folder + "/none/x.svg")
            assert status == FAILED and err.startswith("portferry: ")
        svg = ElementTree.fromstring(text.encode())
        space = "{http://www.w3.org/2000/svg}"
        assert svg.tag == space + "svg"
        assert len(svg.findall(f"{space}g/{space}rect")) == 7
        assert "http" not in re.sub(r'xmlns="[^"]*"', "", text), "it refers to something outside"
        assert parsed(client(bus, "timeline", "vm1", "--json")[1]) == parsed(
            client(bus, "show", "vm1", "--json")[1])


def test_timeline_of_strange_handovers():
    """Open, without phases, with clocks that disagree, of a year."""
    with lab() as (bus, daemon):
        carry(daemon, "open", "a", start=time.time_ns() // 1000 - 3 * 10**6)
        daemon.do(f"add bare b {UUID} source {T0}")
        daemon.do(f"add skewed c {UUID} source {T0 + 10**9}")
        daemon.do(f"phase skewed watch {T0}")
        daemon.do(f"phase skewed new-phase {T0 - 10**9}")
        daemon.do(f"phase skewed undone {T0 + 5}")
        carry(daemon, "long", "d", start=T0 - 366 * 86400 * 10**6)
        daemon.do(f"phase long done {T0}")
        daemon.do(f"add zero e {UUID} source 0")
        daemon.do("phase zero done 0")
        for name in ("open", "bare", "skewed", "long", "zero"):
            for args in ((), ("--svg=-",), ("--json",)):
                status, out, err = client(bus, "timeline", name, *args)
                assert status == OK and err == "", (name, err)
                assert len(out) < 20000
                if args == ("--svg=-",):
                    ElementTree.fromstring(out.encode())
            assert client(bus, "show", name)[0] == OK
        assert "…" in client(bus, "timeline", "open")[1]
        assert client(bus, "status")[0] == OK
        assert client(bus, "history")[0] == OK


def test_overrides():
    with lab() as (bus, daemon):
        carry(daemon)
        for command, method in (("activate", "Activate"), ("rollback", "Rollback"),
                                ("hold", "Hold"), ("release", "Release"), ("forget", "Forget")):
            status, out, err = client(bus, command, "vm1")
            assert (status, err) == (OK, "") and out.startswith(f"{command} h1 of domain 'vm1': ")
            daemon.expect(f"call {method} h1 interactive=1")
            status, out, err = client(bus, "--no-ask-password", command, "h1", "--json")
            daemon.expect(f"call {method} h1 interactive=0")
            assert parsed(out) == {"command": command, "result": "ok", "handover": "h1",
                                   "object": "/org/portferry1/handover/h1", "domain": "vm1"}
            assert client(bus, command, "vm9")[0] == NOT_FOUND


def test_errors_of_overrides():
    """Each named error has its exit status, a hint, and JSON."""
    with lab() as (bus, daemon):
        carry(daemon)
        own, dbus = "org.portferry1.Error.", "org.freedesktop.DBus.Error."
        for name, wanted in ((own + "Failed", FAILED), (own + "InvalidArgument", USAGE),
                             (own + "NotFound", NOT_FOUND), (own + "NotReady", NOT_NOW),
                             (own + "Busy", NOT_NOW), (own + "Conflict", NOT_NOW),
                             (own + "WrongPhase", NOT_NOW),
                             (own + "Timeout", TIMEOUT), (own + "Unreachable", NOT_NOW),
                             (own + "Denied", DENIED), (own + "FromTheFuture", FAILED),
                             (dbus + "AccessDenied", DENIED),
                             (dbus + "InteractiveAuthorizationRequired", DENIED),
                             (dbus + "UnknownObject", NOT_FOUND), (dbus + "NoReply", TIMEOUT),
                             (dbus + "UnknownMethod", FAILED),
                             (dbus + "ServiceUnknown", NO_DAEMON)):
            daemon.do(f"answer {name} 'because \\033[31m of it'")
            status, out, err = client(bus, "activate", "vm1")
            assert (status, out) == (wanted, ""), (name, status, err)
            assert err.startswith("portferry: ") and "\033" not in err
            status, out, _ = client(bus, "activate", "vm1", "--json")
            error = parsed(out)["error"]
            assert status == error["exit_status"] == wanted and error["name"] == name


def test_hints():
    """portferryd's own hint has a line of its own, or makes room for a better one."""
    with lab() as (bus, daemon):
        carry(daemon)
        for name, hint, better in (
                ("InvalidArgument", "correct the request", None),
                ("WrongPhase", "see the handover's properties Phase and Waiting for where it stands",
                 "'portferry show'")):
            daemon.do(f'answer org.portferry1.Error.{name} "no; {hint}"')
            error = parsed(client(bus, "activate", "vm1", "--json")[1])["error"]
            assert error["message"].endswith(": no"), error
            assert error["hint"] == hint if better is None else better in error["hint"], error


def test_preplug_and_reload():
    with lab() as (bus, daemon):
        carry(daemon)
        status, out, err = client(bus, "preplug", UUID.upper(), PORT, "second", "--from", "host-a")
        assert (status, err) == (OK, "") and "handover h1" in out, err
        daemon.expect(f"call PrePlug {UUID} {PORT},second from=host-a interactive=1")
        status, out, _ = client(bus, "preplug", UUID, PORT, "--json")
        daemon.expect(f"call PrePlug {UUID} {PORT} from= ")
        assert parsed(out)["handover"] == "h1"

        assert client(bus, "reload") == (
            OK, "portferryd has read its configuration again\n", "")
        daemon.do("restart ovs-db libvirt-uri")
        status, out, _ = client(bus, "reload")
        assert "ovs-db has changed, and needs" in out and "libvirt-uri" in out
        assert parsed(client(bus, "reload", "--json")[1]) == {
            "command": "reload", "result": "ok", "need_restart": ["ovs-db", "libvirt-uri"]}
        daemon.do("answer org.portferry1.Error.BadConfig 'line 3 is wrong'")
        status, out, err = client(bus, "reload")
        assert (status, out) == (FAILED, "") and "line 3 is wrong" in err


class Watcher(Program):
    def __init__(self, bus, *args):
        super().__init__(PORTFERRY, "--bus-address=" + bus.address, "watch", *args,
                         env={"LC_ALL": "C.UTF-8", "TZ": "UTC", "LANGUAGE": ""})

    def event(self, name, **wanted):
        """The next event of that name; fails on another one between that is not a port's."""
        while True:
            event = json.loads(self.expect(r"\{.*\}$").group(0))
            if event["event"] == name:
                for key, value in wanted.items():
                    assert event[key] == value, (key, event)
                return event
            assert event["event"] in ("port", "waiting"), event


def test_watch():
    with lab() as (bus, daemon), Watcher(bus) as w:
        # What tells that it watches: what it says of a first handover.
        carry(daemon)
        w.expect(r".*vm1 \(destination\) +began: host-a → host-b, \d ports?$")
        w.expect(r".*vm1 \(destination\) +preplug → binding +preplug took 20 ms$")
        w.expect(r".*binding → ready +binding took 120 ms$")
        daemon.do(f"port h1 {PORT} 52:54:00:00:00:0a open")
        w.expect(f".*port {PORT}: open$")
        daemon.do("set h1 LastError 'something \\033[1m odd'")
        w.expect(r".*something \\x1b\[1m odd$")
        daemon.do("set h1 Waiting 'the memory'")
        w.expect(".*waits for the memory$")
        daemon.do("set h1 Held true")
        w.expect(".*held by an operator$")
        end(daemon)
        w.expect(r".*ready → open +ready took 2\.25 s$")
        w.expect(r".*active → done +active took 1\.26 s; 3\.90 s in all$")
        daemon.do("manager NorthboundState connecting")
        w.expect(".*northbound: connecting$")
        daemon.do("leave")
        w.expect(".*portferryd has left the bus$")
        daemon.do("return")
        w.expect(".*portferryd is back$")
        carry(daemon, "h2", "vm2", UUID2)
        w.expect(r".*vm2 .* began")


def test_watch_json():
    with lab() as (bus, daemon):
        carry(daemon)
        carry(daemon, "h0", "gone", UUID2, T0 - 10**9)
        end(daemon, "h0", T0 - 10**9)
        with Watcher(bus, "--json", "--until-end", "vm1") as w:
            state = w.event("present", handover="h1", domain="vm1", role="destination")["state"]
            assert state["phases"][0]["phase"] == "preplug"
            w.event("phase", to="preplug", lasted_us=None)
            w.event("phase", **{"from": "preplug"}, to="binding", lasted_us=20 * MS)
            w.event("phase", to="ready", time_us=T0 + 145 * MS)
            carry(daemon, "h2", "vm2", UUID2) # isn't asked for
            end(daemon)
            for phase in ("open", "running", "activate", "active"):
                w.event("phase", to=phase)
            w.event("phase", to="done", lasted_us=1260 * MS)
            assert w.process.wait(timeout=10) == OK
        with Watcher(bus, "--json", "--until-end", "vm2") as w:
            w.event("present")
            for phase in ("preplug", "binding", "ready"):
                w.event("phase", to=phase)
            daemon.do(f"phase h2 rollback {T0 + 500 * MS}")
            w.event("phase", to="rollback")
            daemon.do(f"phase h2 undone {T0 + 600 * MS}")
            w.event("phase", to="undone")
            assert w.process.wait(timeout=10) == FAILED
        with Watcher(bus, "--json") as w:
            daemon.do("remove h0")
            daemon.do(f"add h3 vm3 {UUID} source {T0}")
            first = json.loads(w.expect(r"\{.*\}$").group(0))
            assert first["event"] in ("removed", "added", "present")
            daemon.do("quit")
            w.expect(r'.*"event":"daemon".*"running":false')
        status, _, err = client(bus, "watch")
        assert status == NO_DAEMON


def test_watch_loses_the_bus():
    with lab() as (bus, daemon), Watcher(bus) as w:
        carry(daemon)
        w.expect(".*began")
        bus.stop()
        assert w.process.wait(timeout=10) in (FAILED, NO_DAEMON)


def test_older_daemon():
    """One of the first version, which has fewer properties and methods."""
    with lab("--old") as (bus, daemon):
        carry(daemon)
        state = parsed(client(bus, "show", "vm1", "--json")[1])
        assert state["held"] is False and state["waiting"] is None
        assert client(bus, "status")[0] == OK
        assert client(bus, "activate", "vm1")[0] == OK
        for args in (["hold", "vm1"], ["forget", "vm1"], ["reload"], ["preplug", UUID, PORT]):
            status, _, err = client(bus, *args)
            assert status == FAILED and "cannot do that" in err, (args, err)
        daemon.do(f"phase h1 done {T0 + 500 * MS}")
        state = parsed(client(bus, "show", "vm1", "--json")[1])
        assert state["open"] is False and state["ended_us"] == T0 + 500 * MS
        assert "done" in client(bus, "history")[1]


def test_hostile_names():
    """What comes from outside neither steers the terminal nor breaks JSON or XML."""
    names = ["\\033[2J\\033]0;x\\007", "<script>&\"'</script>".replace("'", ""), "a\\nb\\tc",
             "\\342\\200\\256evil", "\\302\\2331m", "-rf", "日本語", "%s%n%d", "x" * 5000, " ", "=;,"]
    with lab() as (bus, daemon):
        for i, name in enumerate(names):
            carry(daemon, f"n{i}", name, UUID, T0 + i)
            daemon.do(f"set n{i} LastError '{name}'")
            daemon.do(f"set n{i} Source '{name}'")
            daemon.do(f"set n{i} Waiting '{name}'")
            daemon.do(f"phase n{i} '{name}' {T0 + 10**6}")
        for args in (["status"], ["history"], ["show", "n0"], ["timeline", "n0"]):
            for locale in ("C.UTF-8", "C"):
                status, out, _ = client(bus, *args, LC_ALL=locale)
                assert status == OK
                assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", out), args
        state = parsed(client(bus, "status", "--json")[1])
        assert state["handovers"][0]["domain"] == "\033[2J\033]0;x\007"
        assert state["handovers"][3]["domain"] == "\u202eevil"
        assert state["handovers"][6]["domain"] == "日本語"
        raw = client(bus, "status", "--json")[1]
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", raw)
        for i in range(len(names)):
            text = client(bus, "timeline", f"n{i}", "--svg=-")[1]
            ElementTree.fromstring(text.encode())
            assert "<script" not in text
        assert parsed(client(bus, "show", "--json", "--", "-rf")[1])["id"] == "n5"
        assert parsed(client(bus, "show", "--json", "日本語")[1])["id"] == "n6"


def test_colours():
    with lab() as (bus, daemon):
        carry(daemon)
        end(daemon)
        carry(daemon, "h2", "vm2", UUID2)
        for args in (["status"], ["show", "vm1"], ["history"], ["timeline", "vm1"]):
            status, out = on_terminal(bus, *args)
            assert status == OK and "\033[" in out, args
            for env in ({"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"TERM": "dumb"}):
                assert "\033" not in on_terminal(bus, *args, **env)[1], (args, env)
            assert "\033[" in on_terminal(bus, *args, NO_COLOR="")[1]
            assert "\033" not in client(bus, *args)[1], args
            assert "\033" not in on_terminal(bus, "--json", *args)[1], args


def test_narrow_terminal():
    """A table is cut, not wrapped, and only where somebody looks at it."""
    with lab() as (bus, daemon):
        carry(daemon)
        daemon.do(f"set h1 LastError '{'long ' * 60}'")
        out = on_terminal(bus, "status", columns=100, NO_COLOR="1")[1]
        assert max(map(len, out.splitlines())) <= 100 and "…" in out
        assert "long " * 50 in client(bus, "status")[1]


def test_output_that_fails():
    with lab() as (bus, _):
        with open("/dev/full", "w", encoding="utf-8") as full:
            p = subprocess.run([PORTFERRY, "--bus-address=" + bus.address, "status"], stdout=full,
                               stderr=subprocess.PIPE, check=False, env=environment())
        assert p.returncode == FAILED


def test_slow_daemon():
    """No answer is not an endless wait: here the bus itself ends it."""
    with lab() as (bus, daemon):
        carry(daemon)
        daemon.do("answer never")
        result = []
        t = threading.Thread(target=lambda: result.append(client(bus, "activate", "vm1")))
        t.start()
        daemon.expect("call Activate")
        daemon.kill()
        t.join(timeout=30)
        assert result and result[0][0] in (TIMEOUT, NO_DAEMON), result


if __name__ == "__main__":
    sys.exit(run([v for k, v in list(globals().items()) if k.startswith("test_")]))
