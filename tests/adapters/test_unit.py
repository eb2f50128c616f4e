# SPDX-License-Identifier: LGPL-2.1-or-later
"""The unit says of itself what systemd says of it: test_unit.py UNIT SOURCE-ROOT"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

UNIT, ROOT = sys.argv[1:3]
if not shutil.which("systemd-analyze"):
    sys.exit(77)

with open(UNIT, encoding="utf-8") as f:
    unit = f.read()

with tempfile.TemporaryDirectory() as folder:
    # Its program need not be installed; and what its comments say is not meant for systemd.
    path = os.path.join(folder, "portferryd.service")
    with open(path, "w", encoding="utf-8") as f:
        f.write(re.sub(r"(?m)^ExecStart=.*", "ExecStart=/bin/true", unit))
    p = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True,
                       text=True, check=False)
    assert p.returncode == 0 and p.stderr == "", p.stderr
    p = subprocess.run(["systemd-analyze", "security", "--offline=yes", path],
                       capture_output=True, text=True, check=True, env={**os.environ,
                                                                         "LC_ALL": "C.UTF-8"})

score = re.search(r"Overall exposure level for portferryd.service: ([\d.]+)", p.stdout)[1]
claimed = re.search(r'"systemd-analyze security portferryd" says ([\d.]+)', unit)[1]
assert float(score) <= float(claimed), (score, claimed)

# Every exception has its reason in the comment.
reasons = unit[unit.index("What is missing for a 0"):unit.index("CapabilityBoundingSet=")]
for line in p.stdout.splitlines():
    if line.startswith("✗") and re.search(r" \d\.\d *$", line):
        name = line.split()[1]
        words = re.findall(r"[A-Z][A-Za-z]+=(?=/|$)|CAP_\w+|INET6?|AF_\w+", name)
        assert words and any(word in reasons for word in words), (line, words)

# The bus starts the unit by the alias that "systemctl enable" makes.
with open(os.path.join(ROOT, "data/org.portferry1.service"), encoding="utf-8") as f:
    alias = re.search(r"^SystemdService=(.*)$", f.read(), re.M)[1]
assert f"\nAlias={alias}\n" in unit
with open(os.path.join(ROOT, "daemon/main.c"), encoding="utf-8") as f:
    code = re.search(r"#define EXIT_CONFIG (\d+)", f.read())[1]
assert f"\nRestartPreventExitStatus={code}\n" in unit
