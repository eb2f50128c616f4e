# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every MESSAGE_ID is explained once, and nothing else is: test_catalog.py SOURCE-ROOT"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
FIELDS = {"DOMAIN", "DOMAIN_UUID", "HANDOVER", "PORT", "PHASE", "PHASE_OLD", "ROLE", "SOURCE",
          "DESTINATION", "DURATION_USEC"}

with open(os.path.join(ROOT, "daemon/message-ids.h"), encoding="utf-8") as f:
    ids = re.findall(r'#define PF_MESSAGE_\w+ "(\w+)"', f.read())
with open(os.path.join(ROOT, "data/portferry.catalog"), encoding="utf-8") as f:
    catalog = f.read()

assert ids and len(set(ids)) == len(ids), "an id is there twice"
assert all(re.fullmatch("[0-9a-f]{32}", i) for i in ids), "not an id"

entries = re.split(r"^-- ", catalog, flags=re.M)[1:]
explained = [e.split("\n", 1)[0] for e in entries]
assert sorted(explained) == sorted(ids), set(explained) ^ set(ids)
for entry in entries:
    head, _, body = entry.partition("\n\n")
    assert re.search(r"^Subject: \S", head, re.M), entry
    assert re.search(r"^Defined-By: portferry$", head, re.M), entry
    assert body.strip(), entry
    unknown = set(re.findall(r"@(\w+)@", entry)) - FIELDS
    assert not unknown, unknown

# The page for operators has them all.
page = subprocess.run([sys.executable, os.path.join(ROOT, "data/catalog-page.py")], check=True,
                      capture_output=True, text=True, env={**os.environ, "PYTHONUTF8": "1"}).stdout
with open(os.path.join(ROOT, "docs/messages.md"), encoding="utf-8") as f:
    assert f.read() == page, "data/catalog-page.py >docs/messages.md"
assert all(i in page for i in ids)

# As systemd itself reads it.
if shutil.which("journalctl"):
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(root + "/usr/lib/systemd/catalog")
        os.makedirs(root + "/var/lib/systemd/catalog")
        shutil.copy(os.path.join(ROOT, "data/portferry.catalog"),
                    root + "/usr/lib/systemd/catalog")
        p = subprocess.run(["journalctl", "--root=" + root, "--update-catalog"],
                           capture_output=True, text=True, check=False)
        if p.returncode == 0:
            p = subprocess.run(["journalctl", "--root=" + root, "--list-catalog"],
                               capture_output=True, text=True, check=False)
            if p.returncode == 0:
                assert len(p.stdout.splitlines()) == len(ids), p.stdout
