# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lab compiles and packs for itself, cached in build/lab."""

import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
BUILD = REPO / "build"
CACHE = BUILD / "lab"

QEMU = HERE / "qemu"

TOOLS = {
    "hostns": [],
    "probe": [],
    "tcpflow": [],
    "hooktime": [],
    "eventlog": ["libvirt", "libvirt-qemu"],
}

# In the order in which the guest inserts them.
MODULES = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
]

CFLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra"]


class ArtifactError(Exception):
    pass


def _outdated(target, sources):
    if not target.exists():
        return True
    made = target.stat().st_mtime_ns
    return any(source.stat().st_mtime_ns > made for source in sources)


def _compile(source, target, packages=(), static=False, flags=()):
    command = ["gcc", *CFLAGS, *flags, "-o", str(target), str(source)]
    if static:
        command.append("-static")
    if packages:
        flags = subprocess.run(
            ["pkgconf", "--cflags", "--libs", *packages],
            check=True, capture_output=True, text=True)
        command += flags.stdout.split()
    subprocess.run(command, check=True)


# Not programs but libraries to be preloaded.
LIBRARIES = ["bigsockets"]


def tool(name):
    """The path of one of the lab's own C programs, compiled if need be."""
    source = HERE / f"{name}.c"
    target = CACHE / "bin" / name
    if _outdated(target, [source]):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Made aside and moved: another lab may be running the old one, or be
        # compiling it at this moment.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = pathlib.Path(folder) / name
            if name in LIBRARIES:
                _compile(source, made, flags=["-shared", "-fPIC"])
            else:
                _compile(source, made, TOOLS[name])
            made.rename(target)
    return target


def kernel():
    """The guest's kernel, as tests/prepare has unpacked it."""
    found = sorted((CACHE / "kernel" / "boot").glob("vmlinuz-*"))
    if not found:
        raise ArtifactError("no guest kernel in build/lab: run tests/prepare")
    return found[-1]


def initramfs():
    """The guest's whole system: busybox, the virtio modules, our programs."""
    programs = sorted((HERE / "guest").glob("*.c"))
    init = HERE / "guest" / "init"
    target = CACHE / "initramfs"
    if not _outdated(target, [*programs, init, kernel(), pathlib.Path(__file__)]):
        return target

    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        root = pathlib.Path(folder) / "root"
        for name in ("bin", "dev", "proc", "sys", "modules", "tmp"):
            (root / name).mkdir(parents=True)
        shutil.copy(init, root / "init")
        os.chmod(root / "init", 0o755)

        busybox = shutil.which("busybox")
        shutil.copy(busybox, root / "bin" / "busybox")
        applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True)
        for applet in applets.stdout.split():
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")

        for source in programs:
            _compile(source, root / "bin" / source.stem, static=True)
        _copy_modules(root / "modules")

        files = subprocess.run(["find", ".", "-print0"], cwd=root, check=True, capture_output=True)
        archive = subprocess.run(
            ["cpio", "--null", "--create", "--format=newc", "--owner=0:0", "--quiet"],
            cwd=root, check=True, capture_output=True, input=files.stdout)
        made = pathlib.Path(folder) / "initramfs"
        # Not compressed: unpacking under emulation costs more than reading.
        made.write_bytes(archive.stdout)
        made.rename(target)
    return target


BARE_FLAGS = [
    "-m32", "-march=i586", "-mgeneral-regs-only", "-std=gnu17", "-O2", "-Wall", "-Wextra",
    "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables", "-fno-delete-null-pointer-checks",
    "-Wl,--build-id=none", "-Wl,-z,noexecstack",
]


def bare():
    """The guest without an operating system, see guest/bare/bare.h."""
    folder = HERE / "guest" / "bare"
    sources = sorted([*folder.glob("*.c"), *folder.glob("*.S")])
    script = folder / "link.ld"
    target = CACHE / "bare"
    if _outdated(target, [*sources, script, *folder.glob("*.h"), pathlib.Path(__file__)]):
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as made_in:
            made = pathlib.Path(made_in) / "bare"
            subprocess.run(["gcc", *BARE_FLAGS, f"-Wl,-T,{script}", "-o", str(made),
                            *map(str, sources)], check=True)
            made.rename(target)
    return target


def _copy_modules(folder):
    available = {}
    for path in (CACHE / "kernel" / "lib" / "modules").rglob("*.ko*"):
        name = path.name.split(".ko")[0].replace("-", "_")
        available[name] = path
    order = []
    for name in MODULES:
        # Some kernels have one or the other of them built in.
        path = available.get(name)
        if path is None:
            continue
        if path.suffix == ".xz":
            with open(folder / f"{name}.ko", "wb") as plain:
                subprocess.run(["xz", "-dc", str(path)], check=True, stdout=plain)
        else:
            shutil.copy(path, folder / f"{name}.ko")
        order.append(f"{name}.ko")
    (folder / "order").write_text("".join(f"{name}\n" for name in order))
