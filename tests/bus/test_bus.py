# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bus adapter on a private bus: test_bus.py FAKE-MANAGER SOURCE-ROOT"""

import json
import os
import sys
import time
import xml.etree.ElementTree as ElementTree

from buslab import Bus, DBusError, Monitor, Program, run, wait_for

FAKE_MANAGER, SOURCE_ROOT = sys.argv[1:3]
POLICY = os.path.join(SOURCE_ROOT, "data/org.portferry1.conf")
INTERFACE_XML = os.path.join(SOURCE_ROOT, "data/org.portferry1.xml")

ROOT = "/org/portferry1"
MANAGER = "org.portferry1.Manager"
HANDOVER = "org.portferry1.Handover"
PROPERTIES = "org.freedesktop.DBus.Properties"
UUID = "5d3c6b4e-1111-4000-8000-000000000001"
NOBODY = 65534


def manager(bus):
    m = Program(FAKE_MANAGER, bus.address)
    m.expect("acquired")
    return m


def path_of(identifier):
    out = "".join(c if c.isalnum() else f"_{ord(c):02x}" for c in identifier)
    return ROOT + "/handover/" + out


def fails(f, *texts):
    try:
        f()
    except DBusError as e:
        for text in texts:
            assert text in str(e), f"'{text}' not in '{e}'"
        return
    raise AssertionError("no error")


def described(interface):
    """What an interface element says, in a form that can be compared."""
    members = {}
    for member in interface:
        if not isinstance(member.tag, str):
            continue
        args = [
            (a.get("name"), a.get("type"), a.get("direction", "out"))
            for a in member.findall("arg")
        ]
        emits = "true"
        for a in member.findall("annotation"):
            if a.get("name") == "org.freedesktop.DBus.Property.EmitsChangedSignal":
                emits = a.get("value")
        members[member.tag, member.get("name")] = (
            member.get("type"), member.get("access"), args, emits)
    return members


def test_introspection():
    """The vtables are what data/org.portferry1.xml says."""
    with Bus() as bus, manager(bus) as m:
        m.do(f"add h-1 vm1 {UUID} source watch")
        tree = ElementTree.parse(INTERFACE_XML).getroot()
        wanted = {i.get("name"): described(i) for i in tree.iter("interface")}
        assert set(wanted) == {MANAGER, HANDOVER}
        for path, name in ((ROOT, MANAGER), (path_of("h-1"), HANDOVER)):
            text = bus.call(path, "org.freedesktop.DBus.Introspectable", "Introspect")[0]
            live = {i.get("name"): i for i in ElementTree.fromstring(text).iter("interface")}
            assert described(live[name]) == wanted[name], path
            if path == ROOT:
                assert "org.freedesktop.DBus.ObjectManager" in live
        status, out, _ = bus.busctl("introspect", "org.portferry1", path_of("h-1"))
        assert status == 0 and "Phases" in out


def test_properties():
    with Bus() as bus, manager(bus) as m, Monitor(bus) as monitor:
        assert bus.get(ROOT, MANAGER, "Hostname") == "host-a"
        assert bus.get(ROOT, MANAGER, "SwitchState") == ""
        assert bus.get(ROOT, MANAGER, "Counters") == {
            "handovers-started": 3, "handovers-finished": 2}
        m.do("libvirt disconnected")
        path, (interface, changed, invalidated) = monitor.signal("PropertiesChanged")
        assert (path, interface) == (ROOT, MANAGER)
        assert changed == {"LibvirtState": {"type": "s", "data": "disconnected"}}
        assert invalidated == []
        fails(lambda: bus.call(ROOT, PROPERTIES, "Set", "ssv", MANAGER, "Chassis", "s", "x"))


def test_handover():
    """A handover comes, changes and goes."""
    with Bus() as bus, manager(bus) as m, Monitor(bus) as monitor:
        assert bus.call(ROOT, MANAGER, "ListHandovers") == [[]]
        m.do(f"add h-1 vm1 {UUID} source watch")
        path = path_of("h-1")
        got, (added, interfaces) = monitor.signal("InterfacesAdded")
        assert (got, added) == (ROOT, path)
        assert interfaces[HANDOVER]["Phase"]["data"] == "watch"
        assert monitor.signal("HandoverAdded") == (ROOT, [path])

        row = [path, "h-1", "vm1", UUID, "source", "watch"]
        assert bus.call(ROOT, MANAGER, "ListHandovers") == [[row]]
        assert bus.call(ROOT, MANAGER, "GetHandoverByDomain", "s", "vm1") == [path]
        assert bus.call(ROOT, MANAGER, "GetHandoverByDomain", "s", UUID.upper()) == [path]
        fails(lambda: bus.call(ROOT, MANAGER, "GetHandoverByDomain", "s", "vm2"), "'vm2'")

        m.do("phase h-1 open")
        assert monitor.signal("PhaseChanged") == (path, ["watch", "open", 1000001])
        _, (_, changed, _) = monitor.signal("PropertiesChanged")
        assert changed["Phase"]["data"] == "open"
        assert changed["Phases"]["data"] == [["watch", 1000000], ["open", 1000001]]
        assert set(changed) == {"Phase", "Phases"}

        m.do("port h-1 ready")
        _, (_, changed, _) = monitor.signal("PropertiesChanged")
        assert changed["Ports"]["data"] == [
            ["5d3c6b4e-0000-4000-8000-00000000000a", "52:54:00:00:00:0a", "ready"]]
        m.do("error h-1 broken")
        _, (_, changed, _) = monitor.signal("PropertiesChanged")
        assert changed["LastError"]["data"] == "broken"
        assert changed["Peer"]["data"] == "host-b"

        everything = bus.call(path, PROPERTIES, "GetAll", "s", HANDOVER)[0]
        assert everything["Started"]["data"] == 1000000
        assert everything["Source"]["data"] == "chassis-a"
        managed = bus.call(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")[0]
        assert set(managed) == {path}

        # The name now belongs to a younger handover.
        m.do(f"add h-2 vm1 {UUID} destination binding")
        assert bus.call(ROOT, MANAGER, "GetHandoverByDomain", "s", "vm1") == [path_of("h-2")]

        m.do("remove h-1")
        got, (removed, interfaces) = monitor.signal("InterfacesRemoved")
        assert (got, removed) == (ROOT, path) and HANDOVER in interfaces
        assert monitor.signal("HandoverRemoved") == (ROOT, [path])
        fails(lambda: bus.get(path, HANDOVER, "Phase"))
        assert bus.get(path_of("h-2"), HANDOVER, "Phase") == "binding"


def test_calls():
    """Calls wait for the manager, side by side, and get its answer."""
    with Bus() as bus, manager(bus) as m:
        m.do(f"add h-1 vm1 {UUID} destination running")
        begin = bus.start_call(ROOT, MANAGER, "MigrateBegin", "say", "vm1", "3", "1", "2", "3")
        assert m.expect(r"call (\d+) migrate-begin vm1 3").group(1) == "1"
        started = bus.start_call(ROOT, MANAGER, "StartedBegin", "say", "vm2", "0")
        m.expect("call 2 started-begin vm2 0")
        activate = bus.start_call(path_of("h-1"), HANDOVER, "Activate")
        m.expect("call 3 activate h-1")
        rollback = bus.start_call(path_of("h-1"), HANDOVER, "Rollback")
        m.expect("call 4 rollback h-1")

        # Reading goes on meanwhile.
        assert bus.get(ROOT, MANAGER, "Version") == "0.0"
        m.do("reply 4")
        assert rollback.wait(10) == 0
        m.do("fail 2 6 late")  # PF_ERROR_NOT_READY
        _, err = started.communicate(timeout=10)
        assert started.returncode != 0 and "late and a second line" in err, err
        m.do("reply 1")
        assert begin.wait(10) == 0
        m.do("remove h-1")
        m.do("reply 3")
        assert activate.wait(10) == 0

        bus.call(ROOT, MANAGER, "Released", "say", "vm3", "1", "7")
        m.expect("released vm3 1")
        m.expect_nothing("gone")


def test_operator_calls():
    """What they get, and what their replies carry."""
    with Bus() as bus, manager(bus) as m:
        m.do(f"add h-1 vm1 {UUID} destination running")
        for n, method in enumerate(("Hold", "Release", "Forget"), 1):
            call = bus.start_call(path_of("h-1"), HANDOVER, method)
            m.expect(f"call {n} {method.lower()} h-1$")
            m.do(f"reply {n}")
            out, _ = call.communicate(timeout=10)
            assert (call.returncode, out) == (0, "")
        for n, (ports, source) in enumerate(((("1", "p"), ""), (("0",), "hv 1"),
                                             (("3", "a", "", "b c"), "x")), 4):
            call = bus.start_call(ROOT, MANAGER, "PrePlug", "sass", UUID, *ports, source)
            m.expect(f"call {n} preplug '{UUID}' '{','.join(ports[1:])}' '{source}'$")
            m.do(f"reply {n}")
            out, _ = call.communicate(timeout=10)
            assert out.strip() == f'o "{path_of("h-new")}"', out
        call = bus.start_call(ROOT, MANAGER, "Reload")
        m.expect("call 7 reload$")
        m.do("reply 7")
        out, _ = call.communicate(timeout=10)
        assert out.strip() == 'as 2 "libvirt-uri" "ovs-db"', out
        call = bus.start_call(ROOT, MANAGER, "Reload")
        m.expect("call 8 reload$")
        m.do("fail 8 2 line-7")  # PF_ERROR_BAD_CONFIG
        _, err = call.communicate(timeout=10)
        assert call.returncode != 0 and "line-7" in err


def test_held():
    with Bus() as bus, manager(bus) as m, Monitor(bus) as monitor:
        m.do(f"add h vm1 {UUID} destination binding")
        path = path_of("h")
        assert bus.get(path, HANDOVER, "Held") is False
        assert bus.get(path, HANDOVER, "ByHand") is False
        assert bus.get(path, HANDOVER, "Deadline") == 0
        m.do("hold h")
        _, (_, changed, _) = monitor.signal("PropertiesChanged")
        assert {k: v["data"] for k, v in changed.items()} == {
            "Held": True, "Deadline": 7000000, "Waiting": "an operator"}


def test_history():
    """What has ended, the last one first."""
    with Bus() as bus, manager(bus) as m, Monitor(bus) as monitor:
        for name in ("a", "b", "c", "d"):
            m.do(f"add {name} vm-{name} {UUID} destination binding")
        assert bus.get(path_of("a"), HANDOVER, "Ended") == 0
        assert bus.get(path_of("a"), HANDOVER, "Outcome") == ""
        m.do("end c 2000000 undone")
        assert monitor.signal("PhaseChanged")[1][1] == "undone"
        _, (_, changed, _) = monitor.signal("PropertiesChanged")
        assert set(changed) == {"Phase", "Phases", "Ended", "Outcome"}
        assert changed["Ended"]["data"] == 2000000 and changed["Outcome"]["data"] == "undone"
        m.do("end a 3000000 done")
        m.do("end d 1000000 done")
        m.do("error a late")
        history = bus.call(ROOT, MANAGER, "ListHistory")[0]
        assert [(h[0], h[1], h[2], *h[7:]) for h in history] == [
            (path_of("a"), "a", "vm-a", 1000000, 3000000, "done", "late"),
            (path_of("c"), "c", "vm-c", 1000002, 2000000, "undone", ""),
            (path_of("d"), "d", "vm-d", 1000003, 1000000, "done", "")]
        assert history[0][3:7] == [UUID, "destination", "chassis-a", "chassis-b"]
        assert len(bus.call(ROOT, MANAGER, "ListHandovers")[0]) == 4
        m.do("remove a")
        assert len(bus.call(ROOT, MANAGER, "ListHistory")[0]) == 2


def test_documented():
    """Each member has a comment in front of it, and each argument is in it."""
    with open(INTERFACE_XML, encoding="utf-8") as f:
        tree = ElementTree.parse(
            f, ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True)))
    members = 0
    for interface in tree.getroot().iter("interface"):
        before = None
        for member in interface:
            if isinstance(member.tag, str):
                members += 1
                name = member.get("name")
                assert before is not None, f"{name} has no comment"
                for arg in member.findall("arg"):
                    assert f"@{arg.get('name')}:" in before, (name, arg.get("name"))
                if member.tag != "property":
                    assert before.strip().startswith(name + ":"), name
                before = None
            else:
                before = member.text
    assert members > 30


def test_error_names():
    with Bus() as bus, manager(bus) as m:
        call = bus.start_call(ROOT, MANAGER, "MigrateBegin", "say", "vm1", "0")
        m.expect("call 1")
        with Monitor(bus) as monitor:
            m.do("fail 1 6 late")
            while True:
                message = json.loads(monitor.expect(r"\{.*\}$").group(0))
                if message["type"] == "error":
                    break
            assert message["error_name"] if "error_name" in message else True
            assert "org.portferry1.Error.NotReady" in json.dumps(message)
        call.wait(10)


def test_caller_leaves():
    with Bus() as bus, manager(bus) as m:
        call = bus.start_call(ROOT, MANAGER, "MigrateBegin", "say", "vm1", "0")
        m.expect("call 1")
        other = bus.start_call(ROOT, MANAGER, "MigrateBegin", "say", "vm2", "0")
        m.expect("call 2")
        call.kill()
        m.expect("gone 1 1")
        m.do("reply 1")  # only frees it
        m.do("reply 2")
        assert other.wait(10) == 0
        call.wait()


def test_only_root():
    """The daemon itself refuses others, on a bus that lets everything pass."""
    if os.geteuid() != 0:
        return "needs root"
    with Bus() as bus, manager(bus) as m:
        m.do(f"add h-1 vm1 {UUID} source watch")
        for path, interface, method, *args in (
            (ROOT, MANAGER, "MigrateBegin", "say", "vm1", "0"),
            (ROOT, MANAGER, "StartedBegin", "say", "vm1", "0"),
            (ROOT, MANAGER, "Released", "say", "vm1", "0"),
            (path_of("h-1"), HANDOVER, "Activate"),
            (path_of("h-1"), HANDOVER, "Rollback"),
        ):
            fails(lambda: bus.call(path, interface, method, *args, user=NOBODY),
                  "only root may do that")
        m.expect_nothing("call|released")
        assert len(bus.call(ROOT, MANAGER, "ListHandovers", user=NOBODY)[0]) == 1
    return None


def test_policy():
    """The bus policy that is installed."""
    if os.geteuid() != 0:
        return "needs root"
    with Bus(POLICY) as bus, manager(bus) as m:
        m.do(f"add h-1 vm1 {UUID} source watch")
        for path, interface, method, *args in (
            (ROOT, MANAGER, "MigrateBegin", "say", "vm1", "0"),
            (ROOT, MANAGER, "Released", "say", "vm1", "0"),
            (ROOT, PROPERTIES, "Set", "ssv", MANAGER, "Chassis", "s", "x"),
        ):
            fails(lambda: bus.call(path, interface, method, *args, user=NOBODY), "ccess denied")
        m.expect_nothing("call|released")
        assert len(bus.call(ROOT, MANAGER, "ListHandovers", user=NOBODY)[0]) == 1
        assert bus.call(ROOT, MANAGER, "GetHandoverByDomain", "s", "vm1", user=NOBODY)
        assert bus.call(ROOT, MANAGER, "ListHistory", user=NOBODY) == [[]]
        assert bus.call(ROOT, PROPERTIES, "GetAll", "s", MANAGER, user=NOBODY)
        assert bus.call(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects",
                        user=NOBODY)
        bus.call(ROOT, MANAGER, "Released", "say", "vm1", "0")
        m.expect("released")
    return None


def test_no_right_to_the_name():
    if os.geteuid() != 0:
        return "needs root"
    with Bus(POLICY) as bus:
        p = Program("setpriv", "--reuid", str(NOBODY), "--clear-groups", FAKE_MANAGER, bus.address)
        with p:
            p.expect("fatal .*does not let this process own")
            assert p.process.wait(10) == 1
    return None


def test_name_taken():
    with Bus() as bus, manager(bus):
        with Program(FAKE_MANAGER, bus.address) as second:
            second.expect("fatal Another portferryd runs")
            assert second.process.wait(10) == 1


def test_bus_restart():
    """The bus is killed with a call pending; everything is there again afterwards."""
    with Bus() as bus, manager(bus) as m:
        m.do(f"add h-1 vm1 {UUID} source watch")
        call = bus.start_call(ROOT, MANAGER, "MigrateBegin", "say", "vm1", "0")
        m.expect("call 1")
        bus.stop()
        m.expect("gone 1 1")
        m.expect("lost ")
        m.do("reply 1")
        m.do("phase h-1 open")  # while there is no bus
        m.do(f"add h-2 vm2 {UUID} source watch")
        call.wait(10)
        time.sleep(1.5)  # several attempts fail
        bus.start()
        m.expect("acquired")
        assert bus.get(path_of("h-1"), HANDOVER, "Phase") == "open"
        assert bus.get(path_of("h-2"), HANDOVER, "Phase") == "watch"
        bus.call(ROOT, MANAGER, "Released", "say", "vm1", "0")
        m.expect("released")
        m.do("remove h-1")
        m.expect_nothing("fatal|lost")


def test_bus_comes_late():
    bus = Bus()
    with Program(FAKE_MANAGER, bus.address) as m:
        m.expect_nothing("acquired|fatal|lost", 0.5)
        with bus:
            m.expect("acquired")


def test_bus_frozen():
    """A bus that doesn't answer holds up nothing in the daemon."""
    with Bus() as bus, manager(bus) as m:
        bus.freeze()
        begin = time.monotonic()
        for i in range(600):  # more than sd-bus queues
            m.do(f"add h-{i} vm{i} {UUID} source watch")
        assert time.monotonic() - begin < 20
        bus.thaw()
        m.do("add last vm-last u source watch")

        def listed():
            try:
                return len(bus.call(ROOT, MANAGER, "ListHandovers")[0]) == 601
            except DBusError:
                return False

        wait_for(listed, what="all handovers")


def test_end_with_calls_pending():
    with Bus() as bus, manager(bus) as m:
        call = bus.start_call(ROOT, MANAGER, "MigrateBegin", "say", "vm1", "0")
        m.expect("call 1")
        m.tell("quit")
        assert m.process.wait(10) == 0
        assert call.wait(10) != 0


if __name__ == "__main__":
    sys.exit(run([
        test_introspection,
        test_properties,
        test_handover,
        test_calls,
        test_operator_calls,
        test_held,
        test_history,
        test_documented,
        test_error_names,
        test_caller_leaves,
        test_only_root,
        test_policy,
        test_no_right_to_the_name,
        test_name_taken,
        test_bus_restart,
        test_bus_comes_late,
        test_bus_frozen,
        test_end_with_calls_pending,
    ]))
