# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may call what: test_polkit.py FAKE-MANAGER FAKE-POLKIT SOURCE-ROOT

With a polkit that answers in every way it can, and with the real one of this machine, whose folders
are replaced in a mount namespace of its own."""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

from buslab import Bus, Monitor, Program, run, wait_for

FAKE_MANAGER, FAKE_POLKIT, SOURCE_ROOT = sys.argv[1:4]
BUS_POLICY = os.path.join(SOURCE_ROOT, "data/org.portferry1.conf")
ACTIONS = os.path.join(SOURCE_ROOT, "data/org.portferry1.policy")
POLKITD = "/usr/lib/polkit-1/polkitd"
POLKIT_BUS_POLICY = "/usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf"

ROOT = "/org/portferry1"
HANDOVER_PATH = ROOT + "/handover/h"
MANAGER = "org.portferry1.Manager"
HANDOVER = "org.portferry1.Handover"
UUID = "5d3c6b4e-1111-4000-8000-000000000001"
NOBODY = 65534

# Everything that an operator may call: what, what the manager then says, the action, its details.
OF_HANDOVER = " domain=vm1 handover=h"
CALLS = (
    ((HANDOVER_PATH, HANDOVER, "Activate"), "activate h", "activate", OF_HANDOVER),
    ((HANDOVER_PATH, HANDOVER, "Rollback"), "rollback h", "rollback", OF_HANDOVER),
    ((HANDOVER_PATH, HANDOVER, "Hold"), "hold h", "hold", OF_HANDOVER),
    ((HANDOVER_PATH, HANDOVER, "Release"), "release h", "hold", OF_HANDOVER),
    ((HANDOVER_PATH, HANDOVER, "Forget"), "forget h", "forget", OF_HANDOVER),
    ((ROOT, MANAGER, "Reload"), "reload", "reload", " domain= handover="),
    ((ROOT, MANAGER, "PrePlug", "sass", "some uuid", "2", "a", "b", "hv1"),
     "preplug 'some uuid' 'a,b' 'hv1'", "preplug", " domain=some uuid handover="),
)
HOOK_CALLS = tuple((ROOT, MANAGER, m, "say", "vm1", "0")
                   for m in ("MigrateBegin", "StartedBegin", "Released"))


def manager(bus):
    m = Program(FAKE_MANAGER, bus.address)
    m.expect("acquired")
    m.do(f"add h vm1 {UUID} destination binding")
    return m


def polkit(bus, mode):
    p = Program(FAKE_POLKIT, bus.address, mode)
    p.expect("ready")
    return p


def end(call, status=0):
    """Waits for a call's end; returns what it printed."""
    out, err = call.communicate(timeout=60)
    assert (call.returncode == 0) == (status == 0), (call.returncode, out, err)
    return out + err


def refused(bus, *texts, calls=CALLS, **kwargs):
    for call, *_ in calls:
        text = end(bus.start_call(*call, user=NOBODY, **kwargs), 1)
        for t in texts:
            assert t in text, (call, text)


def test_allowed():
    with Bus() as bus, manager(bus) as m, polkit(bus, "yes") as p:
        for n, (call, said, action, details) in enumerate(CALLS, 1):
            started = bus.start_call(*call, user=NOBODY, interactive=n % 2 == 0)
            match = p.expect(rf"check system-bus-name name=(:\d+\.\d+) org\.portferry1\.{action}"
                             rf"{details} flags=(\d) cancellation='(.*)'$")
            assert match.group(2) == ("1" if n % 2 == 0 else "0")
            assert (match.group(3) != "") == (n % 2 == 0)
            m.expect(f"call {n} {said}$")
            m.do(f"reply {n}")
            end(started)
        p.expect_nothing("cancel")


def test_root_needs_no_polkit():
    with Bus() as bus, manager(bus) as m, polkit(bus, "no") as p:
        for n, (call, said, *_) in enumerate(CALLS, 1):
            started = bus.start_call(*call)
            m.expect(f"call {n} {said}$")
            m.do(f"reply {n}")
            end(started)
        p.expect_nothing("check")


def test_denied():
    with Bus() as bus, manager(bus) as m, polkit(bus, "no") as p:
        refused(bus, "polkit does not allow it")
        with Monitor(bus) as monitor:
            end(bus.start_call(*CALLS[0][0], user=NOBODY), 1)
            monitor.expect(r'.*"type":"error".*"org\.portferry1\.Error\.Denied"')
        p.expect("check")
        m.expect_nothing("call")


def test_challenge():
    with Bus() as bus, manager(bus) as m:
        with polkit(bus, "challenge"):
            refused(bus, "polkit wants a password", interactive=False)
        with polkit(bus, "person") as p:
            refused(bus, "polkit wants a password", interactive=False)
            m.expect_nothing("call")
            started = bus.start_call(*CALLS[0][0], user=NOBODY)
            assert bus.get(ROOT, MANAGER, "Version") == "0.0"  # meanwhile
            m.expect("call 1 activate h$")
            m.do("reply 1")
            end(started)
            p.expect_nothing("cancel")


def test_odd_answers():
    with Bus() as bus, manager(bus) as m:
        with polkit(bus, "error"):
            refused(bus, "is not registered")
        with polkit(bus, "garbage"):
            refused(bus, "polkit does not allow it")
        m.expect_nothing("call")


def test_absent():
    with Bus() as bus, manager(bus) as m:
        refused(bus, "only root may do that")
        with polkit(bus, "silent") as p:
            started = bus.start_call(*CALLS[0][0], user=NOBODY)
            p.expect("check")
            p.kill()
            assert "polkit has not answered" in end(started, 1)
        m.expect_nothing("call")


def test_silent():
    """The question has a limit, and everything else goes on."""
    with Bus() as bus, manager(bus) as m, polkit(bus, "silent") as p:
        begin = time.monotonic()
        started = [bus.start_call(*call, user=NOBODY, interactive=False) for call, *_ in CALLS]
        for _ in CALLS:
            p.expect("check")
        call = bus.start_call(ROOT, MANAGER, "MigrateBegin", "say", "vm1", "0")
        m.expect("call 1 migrate-begin")
        m.do("reply 1")
        end(call)
        for s in started:
            assert "polkit has not answered in time" in end(s, 1)
        assert 9.5 < time.monotonic() - begin < 30
        p.expect_nothing("cancel")  # nobody was asked


def test_caller_leaves():
    """The dialogue goes from the person's screen."""
    with Bus() as bus, manager(bus) as m, polkit(bus, "silent") as p:
        started = bus.start_call(*CALLS[0][0], user=NOBODY)
        name = p.expect(".*cancellation='(.+)'$").group(1)
        started.kill()
        started.communicate()
        p.expect(f"cancel '{name}'$")
        m.expect_nothing("call|gone")


def test_handover_leaves():
    """What the call is about is gone when polkit allows it."""
    with Bus() as bus, manager(bus) as m, polkit(bus, "person") as p:
        started = bus.start_call(*CALLS[0][0], user=NOBODY)
        p.expect("check")
        m.do("remove h")
        m.expect("call 1 activate h$")
        m.do("fail 1 5 gone")  # PF_ERROR_NOT_FOUND
        assert "gone" in end(started, 1)


def test_bus_leaves():
    with Bus() as bus, manager(bus) as m, polkit(bus, "silent") as p:
        started = bus.start_call(*CALLS[0][0], user=NOBODY)
        p.expect("check")
        bus.stop()
        m.expect("lost")
        started.communicate()
        bus.start()
        m.expect("acquired")
        m.expect_nothing("call|gone")


def test_many():
    """Somebody calls and calls: it costs a bounded amount, and not root's."""
    with Bus() as bus, manager(bus) as m, polkit(bus, "silent") as p:
        calls = [bus.start_call(*CALLS[0][0], user=NOBODY) for _ in range(70)]
        for _ in range(64):
            p.expect("check")
        wait_for(lambda: sum(c.poll() is not None for c in calls) >= 6, what="refusals")
        over = [c for c in calls if c.poll() is not None]
        assert len(over) == 6
        for c in over:
            assert "Too many calls" in end(c, 1)
        started = bus.start_call(*CALLS[1][0])
        m.expect("call 1 rollback h$")
        m.do("reply 1")
        end(started)
        for c in calls:
            c.kill()
            c.communicate()


def test_hook_calls():
    """They are for root, whatever polkit would say."""
    with Bus() as bus, manager(bus) as m, polkit(bus, "yes") as p:
        for call in HOOK_CALLS:
            assert "only root may do that" in end(bus.start_call(*call, user=NOBODY), 1)
        p.expect_nothing("check")
        m.expect_nothing("call|released")


def test_bus_policy():
    """The policy that is installed lets through what polkit decides about, and no more."""
    with Bus(BUS_POLICY, POLKIT_POLICY_OPEN) as bus, manager(bus) as m, polkit(bus, "yes") as p:
        for n, (call, said, *_) in enumerate(CALLS, 1):
            started = bus.start_call(*call, user=NOBODY)
            p.expect("check")
            m.expect(f"call {n} {said}$")
            m.do(f"reply {n}")
            end(started)
        for call in HOOK_CALLS:
            end(bus.start_call(*call, user=NOBODY), 1)
        p.expect_nothing("check")
        m.expect_nothing("call|released")


def test_actions_file():
    """Every action is there, with messages to translate, and for administrators."""
    tree = ElementTree.parse(ACTIONS).getroot()
    actions = {a.get("id"): a for a in tree.iter("action")}
    assert set(actions) == {f"org.portferry1.{action}" for _, _, action, _ in CALLS}
    for action in actions.values():
        for tag in ("description", "message"):
            assert action.find(tag).get("gettext-domain") == "portferry"
            assert action.find(tag).text.strip() == action.find(tag).text
        assert {d.tag: d.text for d in action.find("defaults")} == {
            "allow_any": "auth_admin", "allow_inactive": "auth_admin",
            "allow_active": "auth_admin_keep"}


RULES = """
polkit.addRule(function(action, subject) {
    if (action.id == "org.portferry1.hold" && subject.user == "nobody" &&
        action.lookup("domain") == "vm1" && action.lookup("handover") == "h")
        return polkit.Result.YES;
    if (action.id == "org.portferry1.forget")
        return polkit.Result.NO;
});
"""


def test_real_polkit():
    """Debian's polkitd reads the actions, and a rule that an administrator may write."""
    if not os.path.exists(POLKITD) or not os.path.exists(POLKIT_BUS_POLICY):
        return "there is no polkitd"
    with tempfile.TemporaryDirectory(prefix="pf-polkit-") as folder:
        os.chmod(folder, 0o755)
        for name, text in (("actions", None), ("rules", RULES)):
            os.mkdir(os.path.join(folder, name))
            os.chmod(os.path.join(folder, name), 0o755)
            if text:
                with open(os.path.join(folder, name, "10-test.rules"), "w",
                          encoding="utf-8") as f:
                    f.write(text)
        with open(ACTIONS, encoding="utf-8") as f, \
                open(os.path.join(folder, "actions/org.portferry1.policy"), "w",
                     encoding="utf-8") as g:
            g.write(f.read())
        # Its own folders, in a mount namespace of its own.
        script = (f"mount --bind {folder}/actions /usr/share/polkit-1/actions && "
                  f"mount --bind {folder}/rules /etc/polkit-1/rules.d && "
                  f"exec {POLKITD} --no-debug")
        if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
            return "no mount namespace can be made here"
        with Bus(BUS_POLICY, POLKIT_BUS_POLICY) as bus, manager(bus) as m:
            with subprocess.Popen(["unshare", "--mount", "sh", "-c", script],
                                  env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": bus.address},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
                try:
                    return with_real_polkit(bus, m)
                finally:
                    daemon.kill()


def with_real_polkit(bus, m):
    def there():
        status, out, _ = bus.busctl("list")
        return status == 0 and "org.freedesktop.PolicyKit1" in out

    wait_for(there, seconds=20, what="polkitd")
    # Known actions: an administrator's password would do, and nobody is there to be asked.
    for call, _, action, _ in CALLS:
        if action in ("hold", "forget"):
            continue
        text = end(bus.start_call(*call, user=NOBODY, interactive=False), 1)
        assert "polkit wants a password" in text, (call, text)
        # With leave to ask somebody, but nobody's agent: no.
        text = end(bus.start_call(*call, user=NOBODY, interactive=True), 1)
        assert "polkit" in text, (call, text)
    # The rule's yes, which depends on the details, and its no.
    for n, call in enumerate((CALLS[2], CALLS[3]), 1):
        started = bus.start_call(*call[0], user=NOBODY, interactive=False)
        m.expect(f"call {n} {call[1]}$")
        m.do(f"reply {n}")
        end(started)
    m.do(f"add other vm2 {UUID} destination binding")
    text = end(bus.start_call(ROOT + "/handover/other", HANDOVER, "Hold", user=NOBODY,
                              interactive=False), 1)
    assert "polkit wants a password" in text, text
    text = end(bus.start_call(*CALLS[4][0], user=NOBODY, interactive=False), 1)
    assert "polkit does not allow it" in text, text
    # Root, while polkit is there.
    started = bus.start_call(*CALLS[0][0])
    m.expect("call 3 activate h$")
    m.do("reply 3")
    end(started)
    m.expect_nothing("call")


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root, to be somebody else")
        sys.exit(0)
    with tempfile.NamedTemporaryFile("w", prefix="pf-polkit-", suffix=".conf") as policy:
        POLKIT_POLICY_OPEN = policy.name
        os.chmod(policy.name, 0o644)
        policy.write('<busconfig><policy context="default">'
                     '<allow own="org.freedesktop.PolicyKit1"/>'
                     '<allow send_destination="org.freedesktop.PolicyKit1"/>'
                     '</policy></busconfig>')
        policy.flush()
        sys.exit(run([
            test_allowed,
            test_root_needs_no_polkit,
            test_denied,
            test_challenge,
            test_odd_answers,
            test_absent,
            test_silent,
            test_caller_leaves,
            test_handover_leaves,
            test_bus_leaves,
            test_many,
            test_hook_calls,
            test_bus_policy,
            test_actions_file,
            test_real_polkit,
        ]))
