# SPDX-License-Identifier: LGPL-2.1-or-later
"""Crash points: where a daemon of a test build dies or stands still (src/crash.h)."""

import os
import pathlib
import signal
import subprocess
import threading

from . import artifacts
from .hosts import LabError, wait_until

FILE = "/run/lab/portferry-crash"
ENVIRONMENT = {"PORTFERRY_CRASH": FILE}


def known():
    """The names of all points, as the daemon tells them; none if its build has none."""
    answer = subprocess.run([artifacts.BUILD / "daemon" / "portferryd", "--list-crash-points"],
                            capture_output=True, text=True, check=False)
    return answer.stdout.split() if answer.returncode == 0 else []


def is_cms(name):
    """Whether it is only passed by handovers that a CMS runs."""
    return name.startswith("enter-cms-") or name == "enter-unfinished"


class Point:
    """Makes the daemon of a host die or stop at a point, once.

    `then` is called as soon as it has, by another thread.
    """

    def __init__(self, host, name, then, how="KILL"):
        self.host = host
        self.name = name
        self.error = None
        self._how = how
        self._then = then
        self._reached = threading.Event()
        self._given_up = threading.Event()
        self._path = pathlib.Path(host.path(FILE))
        self._service = host.services["portferryd"]
        self._pid = self._service.pid
        # Never half a file.
        made = self._path.with_suffix(".new")
        made.write_text(f"{how} {name}\n", encoding="utf-8")
        made.rename(self._path)
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    @property
    def reached(self):
        return self._reached.is_set()

    def _watch(self):
        while self._path.exists():
            if self._given_up.wait(0.005):
                return
        try:
            wait_until(self._is_down, f"portferryd at {self.name}", 10, interval=0.002)
            self._reached.set()
            self._then()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
            self._reached.set()

    def _is_down(self):
        if self._how == "KILL":
            return not self._service.running
        with open(f"/proc/{self._pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def go_on(self):
        """For a daemon that has been stopped."""
        os.kill(self._pid, signal.SIGCONT)

    def end(self, timeout):
        """Waits until the point was reached, and until `then` has returned."""
        if not self._reached.wait(timeout):
            self.forget()
            raise LabError(f"portferryd on {self.host.name} never came to {self.name}")
        self._thread.join(timeout)
        if self.error:
            raise self.error

    def forget(self):
        """Disarms it; nothing happens any more."""
        self._given_up.set()
        if not self._reached.is_set():
            self._path.unlink(missing_ok=True)
        self._thread.join(60)
