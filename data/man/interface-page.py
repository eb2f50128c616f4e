#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the page of the D-Bus interface: interface-page.py INTERFACE.xml > org.portferry1.5

The interface's XML is the one place where its members are documented; here it becomes a page.
What has no comment is an error.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

HEAD = r""".\" SPDX-License-Identifier: LGPL-2.1-or-later
.\" Made from {file}; change that.
.TH ORG.PORTFERRY1 5 "" portferry "D-Bus Interfaces"
.nh
.ad l
.SH NAME
org.portferry1 \- the D-Bus interface of portferryd
.SH SYNOPSIS
.EX
busctl introspect org.portferry1 /org/portferry1
busctl tree org.portferry1
gdbus introspect \-\-system \-\-dest org.portferry1 \-\-object\-path /org/portferry1
.EE
.SH DESCRIPTION
.BR portferryd (8)
shows on the system bus what it does, and takes orders there.
.BR portferry (1)
is written on top of this alone.
.PP
Members that are documented here keep their meaning; later versions may add some.
"""

TAIL = r""".SH EXAMPLES
The handovers that portferryd knows:
.PP
.RS
.EX
busctl call org.portferry1 /org/portferry1 org.portferry1.Manager ListHandovers
.EE
.RE
.PP
All properties of all handovers, in one call:
.PP
.RS
.EX
busctl call org.portferry1 /org/portferry1 org.freedesktop.DBus.ObjectManager \e
    GetManagedObjects
.EE
.RE
.PP
What happens, as it happens:
.PP
.RS
.EX
gdbus monitor \-\-system \-\-dest org.portferry1
.EE
.RE
.SH SEE ALSO
.BR portferryd (8),
.BR portferry (1),
.BR portferry.conf (5),
.BR busctl (1)
"""

EMITS = "org.freedesktop.DBus.Property.EmitsChangedSignal"
NOTES = {
    "true": "changes are announced with the new value",
    "invalidates": "changes are announced without the value",
    "const": "never changes",
    "false": "changes are not announced",
}


def escape(text):
    """'text' as troff shows it."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def is_table(paragraph):
    """Whether it has columns: two blanks that don't follow a sentence's end."""
    return any(re.search(r"[^\s.:] {2,}\S", line) for line in paragraph)


def paragraphs(text):
    """Lists of lines, without the indentation that they share."""
    lines = text.rstrip().splitlines()
    if lines and lines[0].strip():
        lines[0] = lines[0].strip()
    indents = [len(l) - len(l.lstrip()) for l in lines[1:] if l.strip()]
    cut = min(indents, default=0)
    lines = [l.rstrip() if i == 0 else l[cut:].rstrip() for i, l in enumerate(lines)]
    block = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def write_paragraph(lines):
    if is_table(lines):
        print(".RS\n.EX\n" + escape("\n".join(lines)) + "\n.EE\n.RE")
    else:
        print(escape("\n".join(l.strip() for l in lines)))


def arguments(member, direction):
    return ", ".join(
        f"{a.get('type')} {a.get('name')}" for a in member.findall("arg")
        if a.get("direction", "out" if member.tag == "signal" else "in") == direction)


def write_member(member, comment):
    name = member.get("name")
    blocks = list(paragraphs(comment))
    print(".TP")
    if member.tag == "property":
        emits = [a.get("value") for a in member.findall("annotation") if a.get("name") == EMITS]
        note = NOTES[emits[0] if emits else "true"]
        print(rf"\fB{escape(name)}\fR (\fI{member.get('type')}\fR)")
    else:
        # The comment's first block is the name, and what each argument is.
        head = blocks.pop(0)
        if head[0].strip() != name + ":":
            sys.exit(f"the comment of {name} begins with '{head[0]}'")
        out = arguments(member, "out")
        if member.tag == "signal":
            print(rf"\fB{name}\fR ({escape(out)})")
        else:
            result = rf" \(-> ({escape(out)})" if out else ""
            print(rf"\fB{name}\fR ({escape(arguments(member, 'in'))}){result}")
        described = re.findall(r"@(\w+): ((?:.|\n(?!@))*)", "\n".join(l.strip() for l in head[1:]))
        known = {a.get("name") for a in member.findall("arg")}
        if {d[0] for d in described} != known:
            sys.exit(f"the comment of {name} does not describe its arguments")
        for index, (arg, text) in enumerate(described):
            if index > 0:
                print(".br")
            print(rf"\fI{arg}\fR: {escape(text.strip())}")
        if described and blocks:
            print(".IP")
    for i, block in enumerate(blocks):
        if i > 0:
            print(".IP")
        write_paragraph(block)
    if member.tag == "property" and note not in comment.lower():
        print(f"({note[0].upper()}{note[1:]}.)")


def main():
    builder = ElementTree.TreeBuilder(insert_comments=True)
    parser = ElementTree.XMLParser(target=builder)
    # Comments before the root are not part of the tree.
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    head = re.findall(r"<!--(.*?)-->", text[:text.index("<node")], re.S)[-1]
    root = ElementTree.fromstring(text, parser)

    print(HEAD.replace("{file}", "data/org.portferry1.xml"), end="")
    for block in paragraphs(head):
        if "A test compares" in block[0]:
            continue # for those who work on it
        print(".PP")
        write_paragraph(block)
    for interface in root.iter("interface"):
        print(f'.SH "{interface.get("name")}"')
        for tag, title in (("property", "Properties"), ("method", "Methods"),
                           ("signal", "Signals")):
            comment = None
            titled = False
            for member in interface:
                if member.tag is ElementTree.Comment:
                    comment = member.text
                    continue
                if member.tag == tag:
                    if not comment:
                        sys.exit(f"{member.get('name')} has no comment")
                    if not titled:
                        print(".SS " + title)
                        titled = True
                    write_member(member, comment)
                comment = None
    print(TAIL, end="")


main()
