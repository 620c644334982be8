# SPDX-License-Identifier: Apache-2.0
"""A full disk, against the real program. It is a file system of 64 KB that is mounted for this: a program of its own, so that the other
faults count where nobody may mount.

usage: test_faults_disk.py build/weft     skipped (77) where no file system can be mounted"""
import os
import subprocess
import sys
import tempfile
import unittest

import test_faults

FOLDER = None  # where it is


def mount():
    """Why there is no small file system; nothing where there is one now."""
    if os.getuid():
        return "only root may mount a small file system; test_files_may_not_grow is everywhere"
    p = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", FOLDER], capture_output=True, text=True)
    return "no small file system can be mounted: " + p.stderr.strip() if p.returncode else ""


class Disk(test_faults.Serving):
    def test_the_disk_is_full(self):
        self.assertTrue(os.path.ismount(FOLDER))
        self.fill_disk(os.path.join(FOLDER, "store"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        why = mount()
        if why:
            print("SKIP: " + why)
            sys.exit(77)
        try:
            unittest.main(verbosity=1)
        finally:
            subprocess.run(["umount", "-l", FOLDER], check=True)
