# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hook with daemons of all kinds: test_hook.py HOOK FAKE-DAEMON BUS-TEST-DIRECTORY

HOOK is built with PF_HOOK_TEST: the environment tells it other paths, and that it need not be root.
Times are generous: what matters is that there is a limit, and which."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HOOK, FAKE_DAEMON = sys.argv[1:3]
sys.path.insert(0, sys.argv[3])
SOURCE = sys.argv[4]

from buslab import Bus, Program, run  # noqa: E402  pylint: disable=wrong-import-position

UUID = "5d3c6b4e-1111-4000-8000-000000000001"
OTHER = "5d3c6b4e-2222-4000-8000-000000000002"
XML = f"""<domain type='kvm' id='3' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>vm1 &lt;uuid&gt;{OTHER}&lt;/uuid&gt;</name>
  <uuid>{UUID}</uuid>
  <metadata><x:uuid xmlns:x="urn:x">{OTHER}</x:uuid></metadata>
  <genid>{OTHER}</genid>
</domain>
"""
XML_LIMIT = 1024 * 1024

# Everything but the first line would take the hook beyond these.
CONFIG = """[portferry]
preplug-timeout=0.5
ready-timeout=0.5
"""
MIGRATE_LIMIT = 1.5  # preplug-timeout + 1 s
STARTED_LIMIT = 2.5  # ready-timeout + 2 s
SLACK = 10  # the machine may be busy; a hang would be longer


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def __repr__(self):
        return f"status {self.status}, {self.seconds:.3f} s, out {self.out!r}, err {self.err!r}"


class World:
    """What the hook sees: a configuration, a directory of expected domains, a bus."""

    def __init__(self, config=CONFIG, address="unix:path=/nonexistent/bus"):
        self.dir = tempfile.TemporaryDirectory(prefix="pf-hook-", dir="/tmp")
        self.address = address
        self.config = os.path.join(self.dir.name, "portferry.conf")
        self.incoming = os.path.join(self.dir.name, "incoming")
        self.journal_path = os.path.join(self.dir.name, "journal")
        self.journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.journal.bind(self.journal_path)
        self.journal.setblocking(False)
        if config is not None:
            with open(self.config, "w", encoding="utf-8") as f:
                f.write(config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.journal.close()
        self.dir.cleanup()

    def entries(self):
        """What went to the journal since the last call."""
        entries = []
        while True:
            try:
                data = self.journal.recv(65536).decode()
            except BlockingIOError:
                return entries
            entries.append(dict(line.split("=", 1) for line in data.split("\n")))

    def expect(self, *uuids, text=""):
        """Makes the files of these domains, by a rename as portferryd does."""
        os.makedirs(self.incoming, exist_ok=True)
        for uuid in uuids:
            path = os.path.join(self.incoming, uuid)
            with open(path + ".new", "w", encoding="utf-8") as f:
                f.write(text)
            os.rename(path + ".new", path)

    def env(self, **more):
        return {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C",
            "DBUS_SYSTEM_BUS_ADDRESS": self.address,
            "PF_HOOK_CONFIG": self.config,
            "PF_HOOK_INCOMING": self.incoming,
            "PF_HOOK_JOURNAL": self.journal_path,
            "PF_HOOK_NO_ROOT": "1",
            **more,
        }

    def hook(self, op, subop, xml=XML, stdin=None, domain="vm1", env=None):
        begin = time.monotonic()
        process = subprocess.Popen(
            [HOOK, domain, op, subop, "-"], env=env or self.env(),
            stdin=subprocess.PIPE if stdin is None else stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        try:
            out, err = process.communicate(
                xml.encode() if stdin is None and isinstance(xml, str) else
                xml if stdin is None else None, timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        result = Result(process.returncode, out.decode(), err.decode(), time.monotonic() - begin)
        assert result.out == "", f"libvirt would take this for XML: {result}"
        return result


def daemon(bus, mode):
    p = Program(FAKE_DAEMON, bus.address, mode)
    p.expect("ready")
    return p


def passes(result, within=SLACK):
    assert result.status == 0 and result.seconds < within and result.err == "", result


def refuses(result, *texts, within=SLACK, after=0.0):
    assert result.status == 1 and after <= result.seconds < within, result
    assert result.err.startswith("portferry: ") and result.err.count("\n") == 1, result
    for text in texts:
        assert text in result.err, (text, result)


POLICIES = (("proceed", "refuse"), ("refuse", "proceed"))


def both(missing, not_ready):
    return CONFIG + f"on-daemon-missing={missing}\non-not-ready={not_ready}\n"


def test_other_operations():
    """Nothing is read, nobody is asked: not even a frozen bus matters."""
    with Bus() as bus, World(address=bus.address) as w, daemon(bus, "refuse") as d:
        w.expect(UUID)
        d.freeze()
        bus.freeze()
        reader, writer = os.pipe()  # a standard input that never ends
        for op, subop in (("prepare", "begin"), ("start", "begin"), ("stopped", "end"),
                          ("reconnect", "begin"), ("attach", "begin"), ("restore", "begin"),
                          ("migrate", "end"), ("started", "end"), ("release", "begin"),
                          ("daemon", "start"), ("", "")):
            passes(w.hook(op, subop, stdin=reader))
        os.close(reader)
        os.close(writer)
        for args in ([], ["vm1"], ["vm1", "migrate"]):
            assert subprocess.run([HOOK, *args], env=w.env(), check=False).returncode == 0
        bus.thaw()
        d.thaw()
        d.expect_nothing(".*")


def test_not_root():
    with World(CONFIG + "on-daemon-missing=refuse\n") as w:
        env = w.env()
        del env["PF_HOOK_NO_ROOT"]
        if os.geteuid() == 0:
            refuses(w.hook("migrate", "begin", env=env))
            os.chmod(w.dir.name, 0o755)
            command = ["setpriv", "--reuid", "65534", "--clear-groups", HOOK]
            hook_dir = os.path.dirname(os.path.abspath(HOOK))
            if subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "test", "-x", HOOK],
                              check=False).returncode != 0:
                return f"others can't read {hook_dir}"
            p = subprocess.run([*command, "vm1", "migrate", "begin", "-"], env=env, input=b"x",
                               capture_output=True, check=False)
            assert (p.returncode, p.stdout, p.stderr) == (0, b"", b""), p
        else:
            passes(w.hook("migrate", "begin", env=env))
    return None


def test_migrate_ok():
    with Bus() as bus, World(address=bus.address) as w, daemon(bus, "ok") as d:
        passes(w.hook("migrate", "begin"))
        d.expect(f"MigrateBegin vm1 {len(XML)}$")
        # The daemon decides about these.
        for xml in (b"", b"\0\xff<", b"x" * XML_LIMIT):
            passes(w.hook("migrate", "begin", xml=xml), within=30)
            d.expect(f"MigrateBegin vm1 {len(xml)}$")
        passes(w.hook("migrate", "begin", domain="vm\n\x1b[1m"))
        d.expect(r"MigrateBegin vm\S+")


def test_migrate_refused():
    with Bus() as bus, World(address=bus.address) as w, daemon(bus, "refuse"):
        refuses(w.hook("migrate", "begin"), "port X is not bound here")


def test_migrate_missing():
    """No bus; no owner of the name; no such object; an owner that dies; foreign errors."""
    for missing, not_ready in POLICIES:
        check = passes if missing == "proceed" else refuses
        with World(both(missing, not_ready)) as w:
            check(w.hook("migrate", "begin"))
        with Bus() as bus, World(both(missing, not_ready), bus.address) as w:
            check(w.hook("migrate", "begin"))
            for mode in ("nothing", "die", "foreign"):
                with daemon(bus, mode):
                    check(w.hook("migrate", "begin"))


def test_journal():
    """One clear warning when a migration goes on without portferry; none otherwise."""
    with Bus() as bus, World(address=bus.address) as w:
        w.hook("migrate", "begin", domain="vm\nPRIORITY=0\n")
        (entry,) = w.entries()
        assert entry["PRIORITY"] == "4" and entry["SYSLOG_IDENTIFIER"] == "portferry-hook"
        assert len(entry["MESSAGE_ID"]) == 32
        assert "without portferry" in entry["MESSAGE"] and "vm" in entry["DOMAIN"]
        with daemon(bus, "silent"):
            w.hook("migrate", "begin")
            (entry,) = w.entries()
            assert "'vm1'" in entry["MESSAGE"] and "in time" in entry["MESSAGE"]
        with daemon(bus, "ok"):
            w.hook("migrate", "begin")
        w.hook("prepare", "begin")
        w.hook("started", "begin")
        w.hook("release", "end")
        assert w.entries() == []
        with World(CONFIG + "on-daemon-missing=refuse\n") as w2:
            w2.hook("migrate", "begin")
            assert w2.entries() == []

        # A journal that doesn't read: lost, but nothing waits.
        w.journal.close()
        passes(w.hook("migrate", "begin"))


def test_language():
    """That of the host: for whoever migrates, and in the journal."""
    if not shutil.which("msgfmt"):
        return "no gettext"
    with Bus() as bus, World(address=bus.address) as w, \
            World(CONFIG + "on-daemon-missing=refuse\n", bus.address) as refusing, \
            tempfile.TemporaryDirectory() as folder:
        for language, text in (("de", "geht ohne portferry weiter"),
                               ("es", "continúa sin portferry")):
            target = os.path.join(folder, language, "LC_MESSAGES")
            os.makedirs(target)
            subprocess.run(["msgfmt", "-o", target + "/portferry.mo",
                            f"{SOURCE}/po/{language}.po"], check=True)
            more = {"LC_ALL": "C.UTF-8", "LANGUAGE": language, "PF_HOOK_LOCALE": folder}
            passes(w.hook("migrate", "begin", domain="ä", env=w.env(**more)))
            (entry,) = w.entries()
            assert text in entry["MESSAGE"] and "ä" in entry["MESSAGE"], entry
            result = refusing.hook("migrate", "begin", env=refusing.env(**more))
            assert result.status == 1 and "portferry: " in result.err, result
            assert "cannot take care" not in result.err and "vm1" in result.err, result
    return None


def test_migrate_slow_garbage():
    with Bus() as bus, World(address=bus.address) as w:
        with daemon(bus, "garbage"):
            passes(w.hook("migrate", "begin"))
        with daemon(bus, "slow"), World("[portferry]\npreplug-timeout=4\n", bus.address) as w2:
            r = w2.hook("migrate", "begin")
            assert r.status == 0 and 1.9 < r.seconds < 2 + SLACK, r


def test_migrate_deadline():
    """However the daemon or the bus hangs, there is one deadline."""
    for missing, not_ready in POLICIES:
        with Bus() as bus, World(both(missing, not_ready), bus.address) as w:

            def check(**kwargs):
                r = w.hook("migrate", "begin", **kwargs)
                assert MIGRATE_LIMIT - 0.05 < r.seconds < MIGRATE_LIMIT + SLACK, r
                if missing == "proceed":
                    assert (r.status, r.err) == (0, ""), r
                else:
                    refuses(r, "'vm1'", "did not answer in time", within=MIGRATE_LIMIT + SLACK)

            with daemon(bus, "silent"):
                check()
            with daemon(bus, "ok") as d:
                d.freeze()
                check()
                d.thaw()
            with daemon(bus, "ok"):
                bus.freeze()
                check()
                bus.thaw()
                reader, writer = os.pipe()
                check(stdin=reader)  # libvirt never closes it
                os.close(reader)
                os.close(writer)


def test_migrate_too_large():
    for missing, not_ready in POLICIES:
        check = passes if missing == "proceed" else refuses
        with Bus() as bus, World(both(missing, not_ready), bus.address) as w, \
                daemon(bus, "ok") as d:
            check(w.hook("migrate", "begin", xml=b"x" * (XML_LIMIT + 1)), within=30)
            d.expect_nothing("MigrateBegin")


def test_slow_stdin():
    with Bus() as bus, World(address=bus.address) as w, daemon(bus, "ok") as d:
        reader, writer = os.pipe()

        def feed():
            for i in range(0, len(XML), 100):
                os.write(writer, XML[i:i + 100].encode())
                time.sleep(0.02)
            os.close(writer)

        threading.Thread(target=feed).start()
        passes(w.hook("migrate", "begin", stdin=reader))
        os.close(reader)
        d.expect(f"MigrateBegin vm1 {len(XML)}$")


def test_started_not_expected():
    """An ordinary boot: the daemon may be frozen, and the bus as well."""
    with Bus() as bus, World(both("refuse", "refuse"), bus.address) as w, \
            daemon(bus, "refuse") as d:
        bus.freeze()
        reader, writer = os.pipe()
        passes(w.hook("started", "begin", stdin=reader))  # no directory
        w.expect()
        passes(w.hook("started", "begin", stdin=reader))  # an empty one
        os.close(reader)
        os.close(writer)
        w.expect(OTHER)  # another domain, though its UUID stands elsewhere in this XML
        passes(w.hook("started", "begin"))
        w.expect(UUID)
        for xml in ("", "<domain>", "<uuid>", f"<uuid>{UUID}", "<uuid>../../etc</uuid>",
                    "<uuid></uuid>", "\0" * 1000):
            passes(w.hook("started", "begin", xml=xml))
        bus.thaw()
        d.expect_nothing(".*")


def test_started():
    with Bus() as bus, World(address=bus.address) as w:
        w.expect(UUID)
        with daemon(bus, "ok") as d:
            passes(w.hook("started", "begin"))
            d.expect(f"StartedBegin vm1 {len(XML)}$")
            passes(w.hook("started", "begin", xml=XML.replace(UUID, UUID.upper())))
            d.expect("StartedBegin")
        with daemon(bus, "refuse"):
            refuses(w.hook("started", "begin"), "port X is not bound here")


def test_started_missing():
    for missing, not_ready in POLICIES:
        check = passes if not_ready == "proceed" else refuses
        with Bus() as bus, World(both(missing, not_ready), bus.address) as w:
            w.expect(UUID)
            check(w.hook("started", "begin"))
            with daemon(bus, "die"):
                check(w.hook("started", "begin"))
            with daemon(bus, "ok") as d:
                d.freeze()
                r = w.hook("started", "begin")
                assert STARTED_LIMIT - 0.05 < r.seconds < STARTED_LIMIT + SLACK, r
                check(r, within=STARTED_LIMIT + SLACK)
                d.thaw()


def test_started_own_limit():
    """portferryd says for this domain how long it takes, and what follows if it doesn't answer."""
    for missing, not_ready in POLICIES:
        check = passes if missing == "proceed" else refuses  # the opposite of not_ready
        with Bus() as bus, World(both(missing, not_ready), bus.address) as w:
            with daemon(bus, "silent"):
                w.expect(UUID, text=f"1500000 0 {missing}\n")
                r = w.hook("started", "begin")
                assert 3.45 < r.seconds < 3.5 + SLACK, r
                check(r, within=3.5 + SLACK)
            with daemon(bus, "slow"):  # 2 s
                passes(w.hook("started", "begin"), within=2 + SLACK)
            check(w.hook("started", "begin"))  # nobody has the name
    for text in ("x", "1500000", "1500000 0", "1500000 0 refuse", "1500000 0 maybe\n",
                 "-1 0 refuse\n", "1500000  0 refuse\n", "9" * 30 + " 0 refuse\n",
                 "1500000 0 refuse\nmore\n", "0" * 70 + " 0 refuse\n"):
        with World(both("proceed", "proceed")) as w:
            w.expect(UUID, text=text)
            passes(w.hook("started", "begin"))  # as the configuration says


def test_started_held():
    """An operator holds the gate while the hook waits: the limit grows, but there still is one."""
    def now():
        return int(time.monotonic() * 1e6)

    with Bus() as bus, World(both("proceed", "refuse"), bus.address) as w:
        with daemon(bus, "silent") as d:
            w.expect(UUID, text="500000 0 refuse\n")

            def later(seconds, function):
                timer = threading.Timer(seconds, function)
                timer.start()
                return timer

            begin = time.monotonic()
            timer = later(1, lambda: w.expect(UUID, text=f"500000 {now() + 3000000} refuse\n"))
            r = w.hook("started", "begin")
            timer.join()
            assert 5.9 < time.monotonic() - begin < 6 + 2 * SLACK, r  # 1 + 3 + 2 of grace
            refuses(r, "did not answer in time", within=6 + 2 * SLACK)

            # Held for long, and then portferryd dies: that is noticed, and a new one waited for.
            w.expect(UUID, text=f"500000 {now() + 600000000} refuse\n")
            timer = later(4, d.kill)
            r = w.hook("started", "begin")
            timer.join()
            refuses(r, "did not come back", after=8.9, within=9 + SLACK)

        # Not expected any more when the time is over: no extension.
        with daemon(bus, "silent"):
            w.expect(UUID, text="500000 0 refuse\n")
            timer = later(1, lambda: os.unlink(os.path.join(w.incoming, UUID)))
            refuses(w.hook("started", "begin"), after=2.4, within=STARTED_LIMIT + SLACK)
            timer.join()

        # The extension doesn't disturb the call that is under way.
        with daemon(bus, "later"):  # 4 s
            w.expect(UUID, text="500000 0 refuse\n")
            timer = later(1, lambda: w.expect(UUID, text=f"500000 {now() + 9000000} refuse\n"))
            r = w.hook("started", "begin")
            timer.join()
            assert r.status == 0 and 3.9 < r.seconds < 4 + SLACK, r


def test_started_restarted():
    """portferryd ends while the hook waits, or just before: the next one is asked."""
    def replace(daemons, bus, *modes):
        """Kills the last daemon, and starts others half a second apart."""
        for mode in modes:
            time.sleep(0.5)
            daemons[-1].kill()
            time.sleep(0.5)
            daemons.append(daemon(bus, mode))

    for missing, not_ready in POLICIES:
        with Bus() as bus, World(both(missing, not_ready), bus.address) as w:
            def restart(first, *modes, limit=30):
                w.expect(UUID, text=f"{limit * 1000000} 0 {not_ready}\n")
                daemons = [daemon(bus, first)]
                thread = threading.Thread(target=replace, args=(daemons, bus, *modes))
                thread.start()
                result = w.hook("started", "begin")
                thread.join()
                daemons[-1].kill()
                return result, daemons

            r, daemons = restart("silent", "ok")
            passes(r)
            daemons[-1].expect(f"StartedBegin vm1 {len(XML)}$")
            r, daemons = restart("silent", "silent", "silent", "refuse")
            refuses(r, "port X is not bound here")
            for one in daemons:
                one.expect("StartedBegin")
            r, daemons = restart("die", "refuse")
            refuses(r, "port X is not bound here")

            # The deadline stays what it was.
            check = passes if not_ready == "proceed" else refuses
            r, daemons = restart("silent", "silent", limit=1)
            assert 2.9 < r.seconds < 3 + SLACK, r
            check(r, within=3 + SLACK)

            # Nobody comes: not waited for until the deadline.
            w.expect(UUID, text=f"60000000 0 {not_ready}\n")
            r = w.hook("started", "begin")
            assert 4.9 < r.seconds < 5 + SLACK, r
            check(r, within=5 + SLACK)
            if not_ready == "refuse":
                refuses(r, "'vm1'", "portferryd has ended, and did not come back in time",
                        within=5 + SLACK)

            # The bus itself ends.
            w.expect(UUID, text=f"60000000 0 {not_ready}\n")
            with daemon(bus, "silent"):
                timer = threading.Timer(1, bus.stop)
                timer.start()
                check(w.hook("started", "begin"))
                timer.join()
            bus.start()

            # Somebody comes soon.
            late = []
            timer = threading.Timer(1, lambda: late.append(daemon(bus, "ok")))
            timer.start()
            r = w.hook("started", "begin")
            timer.join()
            passes(r)
            assert r.seconds > 0.9, r
            late[0].expect("StartedBegin")
            late[0].kill()


def test_started_stdin_never_ends():
    """It isn't known whether the domain is expected, so it must not be stopped."""
    with Bus() as bus, World(both("refuse", "refuse"), bus.address) as w, daemon(bus, "refuse"):
        w.expect(UUID)
        reader, writer = os.pipe()
        passes(w.hook("started", "begin", stdin=reader), within=STARTED_LIMIT + SLACK)
        os.close(reader)
        os.close(writer)


def test_release():
    with Bus() as bus, World(both("refuse", "refuse"), bus.address) as w:
        with daemon(bus, "ok") as d:
            passes(w.hook("release", "end"))
            w.expect(OTHER)
            passes(w.hook("release", "end"))
            d.expect_nothing("Released")
            w.expect(UUID)
            passes(w.hook("release", "end"))
            d.expect(f"Released vm1 {len(XML)}$")
            passes(w.hook("stopped", "end"))
            d.expect_nothing(".*")
        for mode in ("refuse", "die", "garbage", "foreign", "nothing"):
            with daemon(bus, mode):
                passes(w.hook("release", "end"))
        passes(w.hook("release", "end"))  # no daemon
        with daemon(bus, "silent"):
            r = w.hook("release", "end")
            assert 0.4 < r.seconds < 0.5 + SLACK, r
            passes(r, within=0.5 + SLACK)
            bus.freeze()
            passes(w.hook("release", "end"), within=0.5 + SLACK)
            bus.thaw()
        bus.stop()
        passes(w.hook("release", "end"))


def test_bad_configuration():
    """The defaults apply: proceed without a daemon, and ask it when it's there."""
    for config in ("[portferry]\non-daemon-missing=refuse\nno-such-key=1\n", "rubbish", None):
        with Bus() as bus, World(config, bus.address) as w:
            passes(w.hook("migrate", "begin"))
            messages = [e["MESSAGE"] for e in w.entries()]
            assert len(messages) == (1 if config is None else 2), messages
            assert config is None or "default configuration" in messages[0], messages
            with daemon(bus, "refuse"):
                refuses(w.hook("migrate", "begin"), "port X")


def test_signals_inherited():
    """A blocked or ignored SIGALRM must not take the deadline away."""
    with Bus() as bus, World(address=bus.address) as w, daemon(bus, "silent"):
        for how in ("trap '' ALRM", ""):
            begin = time.monotonic()
            p = subprocess.run(
                [sys.executable, "-c",
                 "import os,signal,sys\n"
                 "signal.pthread_sigmask(signal.SIG_BLOCK,[signal.SIGALRM])\n"
                 + ("signal.signal(signal.SIGALRM,signal.SIG_IGN)\n" if how else "")
                 + "os.execv(sys.argv[1],sys.argv[1:])", HOOK, "vm1", "migrate", "begin", "-"],
                env=w.env(), input=XML.encode(), capture_output=True, check=False, timeout=20)
            assert p.returncode == 0, p
            assert time.monotonic() - begin < MIGRATE_LIMIT + SLACK


def test_no_descriptors():
    """Standard streams that are closed or broken."""
    with Bus() as bus, World(CONFIG + "on-daemon-missing=refuse\n", bus.address) as w:
        p = subprocess.run(["sh", "-c", '"$0" vm1 migrate begin - <&- >&- 2>&-', HOOK],
                           env=w.env(), check=False, timeout=20)
        assert p.returncode == 1, p
        with daemon(bus, "ok"):
            p = subprocess.run(["sh", "-c", '"$0" vm1 migrate begin - >&- 2>&-', HOOK],
                               env=w.env(), input=XML.encode(), check=False, timeout=20)
            assert p.returncode == 0, p


def test_time():
    """How long the ordinary calls take; printed, not judged."""
    with World() as w:
        null = open("/dev/null", "rb")  # pylint: disable=consider-using-with
        for op, subop in (("prepare", "begin"), ("started", "begin"), ("release", "end")):
            times = []
            for _ in range(50):
                times.append(w.hook(op, subop, stdin=null).seconds)
            times.sort()
            print(f"# {op} {subop}: median {times[25] * 1000:.1f} ms, fork and Python included")
        null.close()


if __name__ == "__main__":
    sys.exit(run([
        test_other_operations,
        test_not_root,
        test_migrate_ok,
        test_migrate_refused,
        test_migrate_missing,
        test_journal,
        test_language,
        test_migrate_slow_garbage,
        test_migrate_deadline,
        test_migrate_too_large,
        test_slow_stdin,
        test_started_not_expected,
        test_started,
        test_started_missing,
        test_started_own_limit,
        test_started_held,
        test_started_restarted,
        test_started_stdin_never_ends,
        test_release,
        test_bad_configuration,
        test_signals_inherited,
        test_no_descriptors,
        test_time,
    ]))
