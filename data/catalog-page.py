#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The catalog as a page: data/catalog-page.py >docs/messages.md"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """\
<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->
<!-- Made by data/catalog-page.py. -->
# Every message, and what to do

Noteworthy entries of the journal have a MESSAGE_ID that never changes its meaning. `journalctl
--catalog -t portferryd -t portferry-hook` shows the text below with each of them; `journalctl
MESSAGE_ID=...` finds all of one kind, which is what monitoring should look for.

| what has happened | MESSAGE_ID |
|---|---|
"""


def page():
    catalog = (ROOT / "data/portferry.catalog").read_text(encoding="utf-8")
    table, texts = "", ""
    for entry in re.split(r"^-- ", catalog, flags=re.M)[1:]:
        head, _, body = entry.partition("\n\n")
        identifier = head.split("\n", 1)[0]
        subject = re.search(r"^Subject: (.*)$", head, re.M)[1]
        # A field of the entry, as a placeholder.
        plain = re.sub(r"@(\w+)@", lambda m: m[1], subject)
        anchor = re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-")
        table += f"| [{plain}](#{anchor}) | `{identifier}` |\n"
        body = re.sub(r"@(\w+)@", r"*\1*", body.strip())
        texts += f"\n## {plain}\n\n{body}\n"
    return HEAD + table + texts


if __name__ == "__main__":
    sys.stdout.write(page())
