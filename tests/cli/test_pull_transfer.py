# SPDX-License-Identifier: Apache-2.0
"""Claims about the downloads of weft pull: servers that drop, lie, change their mind or stall; two pulls at once, and interrupted ones.

usage: test_pull_transfer.py build/weft"""
import hashlib
import json
import os
import shutil
import signal
import threading
import time

from common import PATIENCE, check_report, main
from pull_case import BIG, Case, noise
from pull_server import PullServer, entry


class Bad(Case):
    """Servers that drop, lie, change their mind or stall."""
    repos = {"owner/name": {"model.gguf": BIG}}

    def ranges(self):
        return [headers.get("Range") for path, headers in self.server.log if "resolve" in path]

    def test_dropped_connection_is_resumed(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG, stop_after=1_000_000 if n == 1 else None)
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges()[0], None)
        self.assertRegex(self.ranges()[1], r"bytes=\d{5,}-")
        self.assertEqual(len(self.ranges()), 2)

    def test_dropped_many_times(self):
        """More often than the tries that are allowed without progress."""
        self.server.on_file = lambda r, path, n: r.send_file(BIG, stop_after=400_000)
        self.pulled("owner/name", BIG)
        self.assertGreaterEqual(len(self.ranges()), 7)

    def test_dropped_for_good_leaves_a_part_that_the_next_run_uses(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG, stop_after=1_000_000 if n == 1 else 0)
        self.refused("owner/name", "broke off")
        part = self.place("owner", "name", "model.gguf.part")
        self.assertEqual(os.path.getsize(part), 1_000_000)
        self.server.log.clear()
        self.server.on_file = None
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges(), ["bytes=1000000-"])
        self.assertTrue([h for _, h in self.server.log if h.get("If-Range", "").startswith('"')])

    def leave_part(self, n=1_000_000, data=BIG, etag=None):
        """An unfinished download of n bytes, as a run that was cut off leaves it."""
        self.server.on_file = lambda r, path, k: r.send_file(data, etag, stop_after=n if k == 1 else 0)
        self.refused("owner/name", WEFT_PULL_RETRIES="0")
        self.server.on_file = None
        self.server.log.clear()
        self.server.counts.clear()
        return self.place("owner", "name", "model.gguf.part")

    def test_server_without_ranges(self):
        self.leave_part()
        self.server.on_file = lambda r, path, n: r.send_file(BIG, ranges=False)
        self.pulled("owner/name", BIG)

    def test_changed_etag_between_ranges_starts_over(self):
        """The content changes while it is fetched, and so do listing and ETag: the old bytes are dropped."""
        new = noise(3, len(BIG))

        def serve(r, path, n):
            if n == 1:
                return r.send_file(BIG, '"one"', stop_after=1_000_000)
            return r.send_file(new, '"two"')
        self.server.on_file = serve
        self.server.on_api = lambda r, path: r.reply_json([{**entry("model.gguf", new), "lfs": None}])
        self.pulled("owner/name", new)

    def test_changed_etag_in_a_partial_answer_starts_over(self):
        """A server that ignores If-Range and sends a range of the new content."""
        new = noise(4, len(BIG))

        def serve(r, path, n):
            if n == 1:
                return r.send_file(BIG, '"one"', stop_after=1_000_000)
            del r.headers["If-Range"]
            return r.send_file(new, '"two"')
        self.server.on_file = serve
        self.server.on_api = lambda r, path: r.reply_json([{**entry("model.gguf", new), "lfs": None}])
        self.pulled("owner/name", new)
        self.assertEqual(self.ranges()[-1], None)

    def test_part_of_other_content_is_found_out_by_the_hash(self):
        """No usable ETag anywhere: the hash fails, and one try from the start sets it right."""
        self.server.on_file = lambda r, path, n: r.send_file(BIG, 'W/"x"', stop_after=1_000_000 if n == 1 else 0)
        self.refused("owner/name")
        part = self.place("owner", "name", "model.gguf.part")
        with open(part, "r+b") as f:
            f.write(b"damaged")
        self.server.on_file = lambda r, path, n: r.send_file(BIG, 'W/"x"')
        self.pulled("owner/name", BIG)

    def test_part_without_record_is_not_trusted(self):
        part = self.leave_part()
        os.remove(part + ".json")
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges(), [None])

    def test_part_longer_than_the_file(self):
        part = self.leave_part()
        with open(part, "ab") as f:
            f.write(b"x" * len(BIG))
        self.pulled("owner/name", BIG)

    def test_complete_part_is_only_checked(self):
        part = self.leave_part()
        with open(part, "wb") as f:
            f.write(BIG)
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges(), [])

    def test_wrong_hash_is_refused_and_not_kept(self):
        bad = bytearray(BIG)
        bad[12345] ^= 1
        self.server.on_file = lambda r, path, n: r.send_file(bytes(bad))
        self.refused("owner/name", "SHA-256", hashlib.sha256(BIG).hexdigest())
        self.assertEqual(self.files(), [])
        self.assertFalse(os.path.exists(self.place("owner")))

    def test_hash_in_the_header_of_the_answer(self):
        """Without one in the listing, X-Linked-Etag of the endpoint counts; not that of another host."""
        self.server.on_api = lambda r, path: r.reply_json([{**entry("model.gguf", BIG), "lfs": None}])
        wrong = {"X-Linked-Etag": '"%s"' % ("0" * 64)}
        self.server.on_file = lambda r, path, n: r.send_file(BIG, headers=wrong)
        self.refused("owner/name", "SHA-256", "0" * 64)
        right = {"X-Linked-Etag": '"%s"' % hashlib.sha256(BIG).hexdigest()}
        with PullServer() as other:
            other.on_file = lambda r, path, n: r.send_file(BIG, headers=wrong)
            self.server.on_file = lambda r, path, n: r.redirect(other.url + "/x", headers=right)
            self.pulled("owner/name", BIG)

    def test_listing_and_answer_disagree_on_the_hash(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG, headers={"X-Linked-Etag": '"%s"' % ("0" * 64)})
        self.refused("owner/name", "changed on the server")

    def test_no_hash_at_all_says_so(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "size": len(BIG), "type": "file"}])
        p = self.weft("pull", "owner/name")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"no SHA-256", p.stderr)

    def test_longer_than_listed(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG + b"more")
        self.refused("owner/name", "3000004", "3000000")

    def test_shorter_than_listed(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG[:-4])
        self.refused("owner/name", "2999996", "3000000")

    def chunked(self, r, data):
        r.send_response(200)
        r.send_header("Transfer-Encoding", "chunked")
        r.end_headers()
        try:
            for at in range(0, len(data), 65536):
                piece = data[at:at + 65536]
                r.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
            r.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass

    def test_without_a_length(self):
        self.server.on_file = lambda r, path, n: self.chunked(r, BIG)
        self.pulled("owner/name", BIG)

    def test_without_a_length_and_too_long(self):
        self.server.on_file = lambda r, path, n: self.chunked(r, BIG + b"more")
        self.refused("owner/name", "more than the 3000000")

    def test_without_any_length_at_all(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "type": "file"}])
        self.server.on_file = lambda r, path, n: self.chunked(r, BIG)
        self.refused("owner/name", "does not say how long")

    def test_wrong_range_starts_over(self):
        self.leave_part()

        def serve(r, path, n):
            if n == 1:
                return r.reply(206, BIG[500_000:], {"ETag": '"x"', "Content-Range": f"bytes 500000-{len(BIG) - 1}/{len(BIG)}"})
            return r.send_file(BIG)
        self.server.on_file = serve
        self.pulled("owner/name", BIG)

    def test_range_of_another_length_is_refused(self):
        self.leave_part()
        self.server.on_file = lambda r, path, n: r.reply(206, BIG[1_000_000:], {"Content-Range": "bytes 1000000-8999999/9000000"})
        self.refused("owner/name", "9000000")

    def test_partial_answer_that_nobody_asked_for(self):
        self.server.on_file = lambda r, path, n: r.reply(206, BIG[5:], {"Content-Range": f"bytes 5-{len(BIG) - 1}/{len(BIG)}"})
        self.refused("owner/name", "another range")

    def test_range_not_satisfiable_starts_over(self):
        self.leave_part()
        self.server.on_file = lambda r, path, n: (r.reply(416) if n == 1 else r.send_file(BIG))
        self.pulled("owner/name", BIG)

    def test_server_errors_pass(self):
        self.server.on_file = lambda r, path, n: (r.reply(503) if n <= 2 else r.send_file(BIG))
        self.pulled("owner/name", BIG)
        self.server.on_file = lambda r, path, n: r.reply(500)
        shutil.rmtree(self.place())
        self.refused("owner/name", "500")

    def test_slow_server_times_out(self):
        def serve(r, path, n):
            r.send_response(200)
            r.send_header("Content-Length", str(len(BIG)))
            r.end_headers()
            r.wfile.write(BIG[:100_000])
            r.wfile.flush()
            told.wait(PATIENCE)
        told = threading.Event()
        self.server.on_file = serve
        self.refused("owner/name", "WEFT_PULL_TIMEOUT", WEFT_PULL_TIMEOUT="1", WEFT_PULL_RETRIES="0")
        told.set()

    def test_slow_listing_times_out(self):
        told = threading.Event()
        self.server.on_api = lambda r, path: told.wait(PATIENCE)
        self.refused("owner/name", "WEFT_PULL_TIMEOUT", WEFT_PULL_TIMEOUT="1", WEFT_PULL_RETRIES="0")
        told.set()

    def test_redirects_end(self):
        self.server.on_file = lambda r, path, n: r.redirect(f"/again{n}")
        self.refused("owner/name", "redirects")
        self.assertLess(len(self.server.log), 15)

    def test_headers_without_end(self):
        def serve(r, path, n):
            r.send_response(200)
            for i in range(4000):
                r.send_header(f"X-{i}", "y" * 200)
            r.end_headers()
        self.server.on_file = serve
        self.refused("owner/name")

    def test_disk_space(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "size": 10 ** 18, "type": "file"}])
        self.refused("owner/name", "GB", "WEFT_CACHE")
        self.assertEqual([p for p in self.server.paths() if "resolve" in p], [])
        self.server.on_api = lambda r, path: r.reply_json([{"path": f"m-0000{i}-of-00003.gguf", "size": 2 ** 63 - 1,
                                                            "type": "file"} for i in (1, 2, 3)])
        self.refused("owner/name", "more bytes than there can be")

    def test_disk_space_told_late(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "type": "file"}])
        self.server.on_file = lambda r, path, n: r.reply(200, b"x", {}, 10 ** 17)
        self.refused("owner/name", "GB", "WEFT_CACHE")


class Together(Case):
    repos = {"owner/name": {"model.gguf": BIG}}

    def slow(self, gate):
        """The first half at once, the second when the gate opens."""
        def serve(r, path, n):
            first = r.first_byte()
            r.send_response(206 if first else 200)
            r.send_header("ETag", '"e"')
            if first:
                r.send_header("Content-Range", f"bytes {first}-{len(BIG) - 1}/{len(BIG)}")
            r.send_header("Content-Length", str(len(BIG) - first))
            r.end_headers()
            middle = max(first, len(BIG) // 2)
            try:
                r.wfile.write(BIG[first:middle])
                r.wfile.flush()
                gate.wait(PATIENCE)
                r.wfile.write(BIG[middle:])
            except OSError:
                pass
        self.server.on_file = serve

    def wait_for(self, condition):
        until = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), until, "it never came")
            time.sleep(0.05)

    def part_has(self, n):
        part = self.place("owner", "name", "model.gguf.part")
        return os.path.exists(part) and os.path.getsize(part) >= n

    def test_two_at_once(self):
        gate = threading.Event()
        self.slow(gate)
        a = self.start("pull", "owner/name")
        self.wait_for(lambda: self.part_has(1_000_000))
        b = self.start("pull", "owner/name")
        self.assertEqual(b.stderr.readline(), b"another process is pulling this model: waiting\n")
        self.assertIsNone(b.poll())
        self.assertIn(b"another process", self.weft("rm", "owner/name").stderr)
        gate.set()
        for p in (a, b):
            out, err = p.communicate(timeout=PATIENCE)
            check_report(err)
            self.assertEqual(p.returncode, 0, err)
            with open(out.decode().strip(), "rb") as f:
                self.assertEqual(f.read(), BIG)
        self.assertEqual(len([p for p in self.server.paths() if "resolve" in p]), 1)

    def interrupt(self, signal_number):
        gate = threading.Event()
        self.slow(gate)
        p = self.start("pull", "owner/name")
        self.wait_for(lambda: self.part_has(1_000_000))
        p.send_signal(signal_number)
        out, err = p.communicate(timeout=PATIENCE)
        check_report(err)
        gate.set()
        self.assertEqual(self.files(), ["owner/name/model.gguf.part"])
        self.server.log.clear()
        self.server.on_file = lambda r, path, n: r.send_file(BIG, '"e"')
        return p, out, err

    def test_interrupt_leaves_a_part(self):
        p, out, err = self.interrupt(signal.SIGINT)
        self.assertEqual((p.returncode, out), (1, b""))
        self.assertIn(b"continues", err)
        listed = json.loads(self.weft("list", "--json").stdout)
        self.assertEqual([(m["name"], m["complete"]) for m in listed], [("owner/name:model.gguf", False)])
        self.assertEqual(self.weft("info", "owner/name").returncode, 1)
        self.pulled("owner/name", BIG)
        self.assertRegex([h.get("Range") for path, h in self.server.log if "resolve" in path][0], r"bytes=\d{7}-")

    def test_killed_leaves_a_part(self):
        self.interrupt(signal.SIGKILL)
        self.pulled("owner/name", BIG)
        self.assertRegex([h.get("Range") for path, h in self.server.log if "resolve" in path][0], r"bytes=\d{7}-")

    def test_interrupt_while_waiting_for_the_other(self):
        gate = threading.Event()
        self.slow(gate)
        a = self.start("pull", "owner/name")
        self.wait_for(lambda: self.part_has(1_000_000))
        b = self.start("pull", "owner/name")
        self.assertEqual(b.stderr.readline(), b"another process is pulling this model: waiting\n")
        b.send_signal(signal.SIGINT)
        check_report(b.communicate(timeout=PATIENCE)[1])
        self.assertEqual(b.returncode, 1)
        gate.set()
        check_report(a.communicate(timeout=PATIENCE)[1])
        self.assertEqual(a.returncode, 0)


if __name__ == "__main__":
    main()
