# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pages, completions and translations against what they are about:
test_docs.py SOURCE-ROOT PORTFERRY CONFIG-KEYS INTERFACE-PAGE FAKE-DAEMON PORTFERRYD"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

from buslab import Bus, Program, run

SOURCE, PORTFERRY, CONFIG_KEYS, INTERFACE_PAGE, FAKE_DAEMON, PORTFERRYD = sys.argv[1:7]

PAGES = [os.path.join(SOURCE, "data/man", p)
         for p in ("portferry.1", "portferryd.8", "portferry.conf.5")] + [INTERFACE_PAGE]
UUID = "5d3c6b4e-1111-4000-8000-000000000001"


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def output(*command, **env):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "", **env}).stdout


def page_text(path):
    """A page as it is read, in one long line."""
    text = output("groff", "-man", "-Tascii", "-P-cbou", "-rLL=2000n", path)
    return re.sub(r"\s+", " ", text)


def help_of(*command):
    return output(*command, "--help")


def commands():
    return re.findall(r"^  ([a-z]+) +\S", help_of(PORTFERRY).split("Commands:")[1], re.M)


def options(text):
    return set(re.findall(r"(--[a-z-]+)", re.sub(r"--help-\w+", "", text)))


def test_pages_are_clean():
    """groff has no complaint."""
    if not shutil.which("groff"):
        return "no groff"
    for page in PAGES:
        p = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", page], capture_output=True,
                           text=True, check=False)
        assert p.returncode == 0 and p.stderr == "", (page, p.stderr)
        if shutil.which("man"):
            p = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                               check=False, env={**os.environ, "LC_ALL": "C.UTF-8",
                                                 "MANWIDTH": "80", "PAGER": "cat"})
            assert p.returncode == 0 and p.stderr == "", (page, p.stderr)
    return None


def test_client_page():
    """portferry(1) has every command, option and exit status."""
    if not shutil.which("groff"):
        return "no groff"
    text = page_text(PAGES[0])
    names = commands()
    assert len(names) == 13, names
    for command in names:
        assert re.search(rf" {command} [A-Z\[]", text), command
        for option in options(help_of(PORTFERRY, command)):
            assert option in text, (command, option)
    for option in options(help_of(PORTFERRY)):
        assert option in text, option
    section = text[text.index("EXIT STATUS"):text.index(" JSON ", text.index("EXIT STATUS"))]
    header = read("client/client.h")
    codes = re.findall(r"PF_EXIT_\w+ = (\d+)", header)
    assert len(codes) == 8 and all(f" {c} " in section for c in codes), codes
    # The keys of its JSON, and its environment.
    source = "".join(read("client/" + f) for f in ("show.c", "remote.c", "watch.c", "override.c",
                                                   "check.c", "client.c"))
    for key in set(re.findall(r'pf_json_set\(\w+, "(\w+)"', source)):
        assert re.search(rf"\b{key}\b", text), key
    for variable in set(re.findall(r'g_getenv\("(\w+)"\)', read("client/terminal.c"))) - {"TERM"}:
        assert variable in text, variable
    return None


def test_daemon_page():
    """portferryd(8) has every option and phase."""
    if not shutil.which("groff"):
        return "no groff"
    text = page_text(PAGES[1])
    for option in options(help_of(PORTFERRYD)) - {"--help"}:
        assert option in text, option
    phases = set(re.findall(r'PF_ROLE_\w+, +"(\w+)"', read("src/handover.c")))
    assert len(phases) > 15
    for phase in phases:
        assert re.search(rf"\b{phase}\b", text), phase
        assert re.search(rf'^ *{{"{phase}", PF_KIND_', read("client/phases.c"), re.M), phase
    return None


def test_configuration_page():
    """portferry.conf(5) and the shipped file have every key with its default, and no other."""
    if not shutil.which("groff"):
        return "no groff"
    text = page_text(PAGES[2])
    shipped = read("data/portferry.conf")
    keys = dict(line.split(" ", 1) for line in output(CONFIG_KEYS).splitlines())
    assert len(keys) > 10
    for key, default in keys.items():
        match = re.search(rf" {key}=[A-Za-z|]+ (.*?[Dd]efault.*?\.) ", text)
        assert match, key
        assert default in match[1], (key, default, match[1])
        assert f"\n#{key}={default}\n" in shipped, key
    section = text[text.index(" KEYS "):text.index("DOMAINS THAT DIFFER")]
    assert set(re.findall(r" ([a-z-]+)=[A-Za-z]+", section)) == set(keys)
    assert set(re.findall(r"^#([a-z-]+)=", shipped, re.M)) == set(keys)
    return None


def test_interface_page():
    """org.portferry1(5) has every member with its arguments, and every error."""
    if not shutil.which("groff"):
        return "no groff"
    text = page_text(PAGES[3])
    root = ElementTree.fromstring(read("data/org.portferry1.xml"))
    for interface in root.iter("interface"):
        assert interface.get("name") in text
        for member in interface:
            name = member.get("name")
            if member.tag == "property":
                assert f"{name} ({member.get('type')})" in text, name
                continue
            default = "out" if member.tag == "signal" else "in"
            inputs = ", ".join(f"{a.get('type')} {a.get('name')}" for a in member.iter("arg")
                               if a.get("direction", default) == default)
            assert f"{name} ({inputs})" in text, (name, inputs)
            for arg in member.iter("arg"):
                assert f"{arg.get('name')}: " in text, (name, arg.get("name"))
    for error in re.findall(r'"(org\.portferry1\.Error\.\w+)"', read("src/error.c")):
        assert error in text, error
    return None


def test_errors_have_hints():
    """The client's table of errors is the library's."""
    codes = re.findall(r"^ +(PF_ERROR_\w+),", read("src/error.h"), re.M)
    assert re.findall(r"^ +{(PF_ERROR_\w+),", read("client/client.c"), re.M) == codes


def test_completions():
    """Both shells know every command and option."""
    for name in ("portferry", "_portferry"):
        text = read("data/completions/" + name)
        for command in commands():
            assert re.search(rf"\b{command}\b", text), (name, command)
            for option in options(help_of(PORTFERRY, command)):
                assert option in text, (name, command, option)


def complete(bus, words):
    """What bash offers for the last of 'words'."""
    script = f"""
        portferry() {{ "{PORTFERRY}" --bus-address="{bus.address}" "$@"; }}
        virsh() {{ echo "guest one"; echo guest2; }}
        . "{SOURCE}/data/completions/portferry"
        COMP_WORDS=({" ".join(f"'{w}'" for w in words)})
        COMP_CWORD={len(words) - 1}
        _portferry
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    p = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False,
                       env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert p.stderr == "", p.stderr
    return p.stdout.split("\n")[:-1]


def test_bash_completion():
    if not shutil.which("bash"):
        return "no bash"
    subprocess.run(["bash", "-n", SOURCE + "/data/completions/portferry"], check=True)
    with Bus() as bus, Program(FAKE_DAEMON, bus.address) as daemon:
        daemon.expect("acquired")
        for identifier, name, phase in (("h1", "vm1", "ready"), ("h2", "a b", "ready"),
                                        ("h3", "old", "done")):
            daemon.do(f"add {identifier} '{name}' {UUID} source 1")
            daemon.do(f"phase {identifier} {phase} 1")
        assert complete(bus, ["portferry", "hi"]) == ["history"]
        assert complete(bus, ["portferry", "--json", "st"]) == ["status"]
        assert complete(bus, ["portferry", "timeline", "--s"]) == ["--svg"]
        assert complete(bus, ["portferry", "activate", ""]) == [r"a\ b", "h1", "h2", "vm1"]
        assert complete(bus, ["portferry", "activate", "v"]) == ["vm1"]
        assert complete(bus, ["portferry", "history", ""]) == ["h3", "old"]
        assert complete(bus, ["portferry", "show", "h"]) == ["h1", "h2", "h3"]
        assert complete(bus, ["portferry", "check", "g"]) == [r"guest\ one", "guest2"]
        assert complete(bus, ["portferry", "help", "ti"]) == ["timeline"]
        assert SOURCE + "/data" in complete(
            bus, ["portferry", "timeline", "--svg", "=", SOURCE + "/dat"])
        daemon.do("leave")
        assert complete(bus, ["portferry", "activate", ""]) in ([], [""])
    return None


def test_zsh_completion():
    if not shutil.which("zsh"):
        return "no zsh"
    subprocess.run(["zsh", "-n", SOURCE + "/data/completions/_portferry"], check=True)
    script = f"""
        fpath=("{SOURCE}/data/completions" $fpath)
        autoload -Uz compinit && compinit -u -D && whence -w _portferry
    """
    out = output("zsh", "-f", "-c", script)
    assert "_portferry: function" in out, out
    return None


# Translations


def messages(path):
    """The messages of a template or translation, without where they come from."""
    text = output("msgcat", "--no-location", "--no-wrap", "--sort-output", path)
    return text[text.index("\n\n"):]


def test_template():
    """po/portferry.pot is what po/update makes of the source; if not, run that."""
    if not shutil.which("xgettext"):
        return "no gettext"
    with tempfile.TemporaryDirectory() as folder:
        fresh = os.path.join(folder, "fresh.pot")
        output("sh", SOURCE + "/po/update", fresh)
        assert messages(fresh) == messages(SOURCE + "/po/portferry.pot"), "run po/update"
    listed = [l for l in read("po/POTFILES.in").splitlines() if l and not l.startswith("#")]
    assert listed == sorted(listed)
    for path in glob.glob(SOURCE + "/client/*.c") + glob.glob(SOURCE + "/hooks/*.c"):
        name = os.path.relpath(path, SOURCE)
        has = re.search(r'\b(N?_|ngettext)\("', read(name)) is not None
        assert has == (name in listed), name
    return None


def languages():
    return [l for l in read("po/LINGUAS").splitlines() if l and not l.startswith("#")]


def test_translations():
    """Each is complete, and its formats are right."""
    if not shutil.which("msgfmt"):
        return "no gettext"
    assert len(languages()) >= 2
    for language in languages():
        po = f"{SOURCE}/po/{language}.po"
        p = subprocess.run(["msgfmt", "--check", "--statistics", "-o", "/dev/null", po],
                           capture_output=True, text=True, check=False,
                           env={**os.environ, "LC_ALL": "C"})
        assert p.returncode == 0, p.stderr
        assert re.fullmatch(r"\d+ translated messages\.\n", p.stderr), (language, p.stderr)
        p = subprocess.run(["msgcmp", "--use-untranslated", po, SOURCE + "/po/portferry.pot"],
                           capture_output=True, text=True, check=False)
        assert p.returncode == 0, p.stderr
    return None


def test_languages_are_spoken():
    """Every text of the client comes in the language that is asked for."""
    if not shutil.which("msgfmt"):
        return "no gettext"
    with tempfile.TemporaryDirectory() as folder, Bus() as bus, \
            Program(FAKE_DAEMON, bus.address) as daemon:
        daemon.expect("acquired")
        for language in languages():
            target = os.path.join(folder, language, "LC_MESSAGES")
            os.makedirs(target)
            subprocess.run(["msgfmt", "-o", target + "/portferry.mo",
                            f"{SOURCE}/po/{language}.po"], check=True)
        say = lambda language, *args: output(PORTFERRY, "--bus-address=" + bus.address, *args,
                                             LANGUAGE=language, TEXTDOMAINDIR=folder)
        assert "Keine Übergabe ist im Gange." in say("de", "status")
        assert "No hay ningún traspaso en curso." in say("es", "status")
        assert "No handover is under way." in say("xx", "status")
        assert "Befehle:" in say("de", "--help") and "Órdenes:" in say("es", "--help")
        daemon.do(f"add h1 vm1 {UUID} destination 1")
        daemon.do("phase h1 ready 1")
        daemon.do("phase h1 done 1500001")
        assert "1.50 s" in say("de", "timeline", "h1")
        assert say("de", "show", "h1", "--json") == say("", "show", "h1", "--json")
        assert "das Netz ist bereit" in say("de", "show", "h1")
        for language in languages():
            for args in (("status",), ("history",), ("show", "h1"), ("timeline", "h1"),
                         ("timeline", "h1", "--svg=-")):
                assert say(language, *args) != say("", *args), (language, args)
    return None


def test_links():
    """What the documents point to is there."""
    for path in [SOURCE + "/README.md", *glob.glob(SOURCE + "/docs/*.md"),
                 SOURCE + "/tests/lab/README.md"]:
        text = read(path)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", text):
            assert os.path.exists(os.path.join(os.path.dirname(path), target)), (path, target)
        for name in re.findall(r"`((?:src|daemon|client|hooks|data|docs|po|tests)/[\w./-]+)`", text):
            assert os.path.exists(os.path.join(SOURCE, name)), (path, name)


def test_endings_have_tests():
    """Each row of the table names tests in the lab, and they exist."""
    known = {}
    rows = [line for line in read("docs/endings.md").splitlines()
            if line.startswith("| ") and not line.startswith("| ending ")]
    assert len(rows) > 40
    for row in rows:
        tests = re.findall(r"`(\w+) (\w+\.\w+)`", row.rstrip("| ").rpartition("|")[2])
        assert tests, row
        for module, name in tests:
            if module not in known:
                known[module] = output(sys.executable, f"{SOURCE}/tests/lab/test_{module}.py",
                                       "--list", "--thorough").split()
            assert name in known[module], (module, name)


def test_meson_knows_the_languages():
    """The files are made with the program."""
    text = read("po/meson.build")
    assert "i18n.gettext" in text
    for language in languages():
        assert os.path.exists(f"{SOURCE}/po/{language}.po")


if __name__ == "__main__":
    sys.exit(run([v for k, v in list(globals().items()) if k.startswith("test_")]))
