# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of the test's own: what it writes, as a person would see it, and the keys that are pressed. usage: tests import it"""
import codecs
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

from common import PATIENCE

SEQUENCE = re.compile(r"\x1b(?:\[([?]?)([0-9;]*)([@-~])|[()][AB0])")


def width(c):
    if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


class Screen:
    """The cells of a terminal that knows what programs here may send; anything else is in `unknown`."""
    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells, self.row, self.column, self.wraps = [[]], 0, 0, False
        self.unknown, self.modes, self.part = [], {}, ""

    def line(self):
        while len(self.cells) <= self.row:
            self.cells.append([])
        return self.cells[self.row]

    def put(self, c):
        wide = width(c)
        if wide == 0:
            at = [i for i, cell in enumerate(self.line()[:self.column + self.wraps]) if cell]
            if at:
                self.line()[at[-1]] += c
            return
        if self.wraps or self.column + wide > self.columns:
            self.row, self.column, self.wraps = self.row + 1, 0, False
        line = self.line()
        line += [" "] * (self.column + wide - len(line))
        line[self.column:self.column + wide] = [c] + [""] * (wide - 1)
        self.column += wide
        if self.column >= self.columns:
            self.column, self.wraps = self.columns - 1, True

    def control(self, private, numbers, final):
        n = int(numbers.split(";")[0] or 0) if not private else 0
        if private and final in "hl":
            for mode in numbers.split(";"):
                self.modes[int(mode)] = final == "h"
        elif final == "A":
            self.row = max(self.row - max(n, 1), max(len(self.cells) - self.rows, 0))
        elif final == "B":
            self.row += max(n, 1)
        elif final == "C":
            self.column = min(self.column + max(n, 1), self.columns - 1)
        elif final == "H":
            self.row, self.column = max(len(self.cells) - self.rows, 0), 0
        elif final == "J" and n in (0, 2):
            if n == 0:
                del self.line()[self.column:]
                del self.cells[self.row + 1:]
            else:
                self.cells, self.row = [[]], 0
        elif final == "K" and n == 0:
            del self.line()[self.column:]
        elif final != "m":
            self.unknown.append((private, numbers, final))
        self.wraps = False if final in "ABCH" else self.wraps

    def feed(self, text):
        text, self.part = self.part + text, ""
        at = 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    if len(text) - at > 20:
                        self.unknown.append(text[at:at + 20])
                        at += 1
                        continue
                    self.part = text[at:]
                    return
                if found[3]:
                    self.control(found[1], found[2], found[3])
                at = found.end()
                continue
            at += 1
            if c == "\r":
                self.column, self.wraps = 0, False
            elif c == "\n":
                self.row, self.wraps = self.row + 1, False
                self.line()
            elif c == "\b":
                self.column = max(self.column - 1, 0)
            elif c != "\a" and ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0:
                self.unknown.append(c)
            elif c != "\a":
                self.put(c)

    def resize(self, columns, rows):
        """As terminals that keep their lines together have it: what no longer fits goes on in the next row."""
        cells, row, column = [], 0, 0
        for i, line in enumerate(self.cells):
            pieces = [[]]
            for at, cell in enumerate(line):
                if len(pieces[-1]) >= columns or (len(pieces[-1]) == columns - 1 and line[at + 1:at + 2] == [""]):
                    pieces.append([])
                if (i, at) == (self.row, self.column):
                    row, column = len(cells) + len(pieces) - 1, len(pieces[-1])
                pieces[-1].append(cell)
            if i == self.row and self.column >= len(line):
                row, column = len(cells) + len(pieces) - 1, len(pieces[-1]) + self.column - len(line)
                if column >= columns:
                    row, column = row + 1, 0
            cells += pieces
        self.column = column
        self.cells, self.row, self.columns, self.rows, self.wraps = cells, row, columns, rows, False

    def lines(self):
        return ["".join(cell for cell in line).rstrip() for line in self.cells]

    def text(self):
        return "\n".join(self.lines()).rstrip("\n")


class Program:
    """A command on a terminal: `press` keys, `wait` for what is to be seen. The terminal is the program's own, so that keys are signals."""
    def __init__(self, command, columns=80, rows=24, session=True, **kwargs):
        self.ours, theirs = pty.openpty()
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.screen, self.raw, self.theirs_name = Screen(columns, rows), b"", os.ttyname(theirs)
        self.size(columns, rows)
        self.keep = os.open(self.theirs_name, os.O_RDWR | os.O_NOCTTY)  # so that its modes can be asked for in the end
        self.before = termios.tcgetattr(self.keep)
        streams = {name: theirs for name in ("stdin", "stdout", "stderr")}
        own = (lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if session else None
        self.process = subprocess.Popen(command, start_new_session=session, preexec_fn=own, **{**streams, **kwargs})
        os.close(theirs)

    def size(self, columns, rows):
        self.screen.resize(columns, rows)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        data = keys if isinstance(keys, bytes) else keys.encode()
        while data:
            if select.select([], [self.ours], [], PATIENCE)[1]:
                data = data[os.write(self.ours, data[:512]):]
            self.read(0)

    def read(self, seconds):
        """What has come, into the screen; False at the end."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.ours, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            return False
        self.raw += data
        self.screen.feed(self.decoder.decode(data))
        return True

    def wait(self, seen, what="to be seen"):
        """Until seen() of the screen's text, or a regular expression is found there."""
        until = time.monotonic() + PATIENCE
        test = seen if callable(seen) else lambda text: re.search(seen, text, re.M)
        while not test(self.screen.text()):
            if time.monotonic() > until or (not self.read(0.1) and not test(self.screen.text())):
                raise AssertionError(f"{seen!r} was {what}; there is\n{self.screen.text()}")
        return self.screen.text()

    def prompts(self, n=1, prompt="> "):
        """Waits for so many prompts in all, the last one empty and with the cursor behind it."""
        shown = prompt.rstrip()
        return self.wait(lambda text: len(re.findall(f"^{re.escape(shown)}( |$)", text, re.M)) >= n and text.split("\n")[-1] == shown
                         and self.screen.column == len(prompt))

    def end(self):
        """Waits for the end: the exit status, with the terminal's modes as they were."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < until:
            self.read(0.05)
        while self.read(0) and select.select([self.ours], [], [], 0.05)[0]:
            pass
        status = self.process.wait(timeout=1)
        self.after = termios.tcgetattr(self.keep)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        for fd in (self.ours, self.keep):
            os.close(fd)
