# SPDX-License-Identifier: Apache-2.0
"""Claims about weft at a terminal: what is typed arrives, what is shown is what was written, and the terminal is given back. usage: test_terminal.py
build/weft"""
import json
import os
import re
import select
import signal
import stat
import subprocess
import tempfile
import termios
import unicodedata
import unittest

import common
from common import WEFT, main, run
from screen import Program

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")
MODEL = os.path.join(MODELS, "alderbrook.gguf")
# Any token at all, each as likely as the others, so that an answer seldom ends early; and slowly.
LONG = ("--temp", "100", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "1")
SLOW = {"WEFT_THREADS": "1", **({} if common.SANITIZED else {"WEFT_CPU": "ref"})}
TYPED = "Grüße, 日本 🦊 e\u0301"
QUESTION = "Where does Mira live?"
ANSWER = "Mira the fox lives in the old mill."


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "WEFT_HISTORY", "NO_COLOR"))}
        self.environment.update(TERM="xterm", XDG_STATE_HOME=self.path("state"), HOME=self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, *words, columns=80, rows=24, env=(), **kwargs):
        p = Program([*WEFT, *words], columns, rows, env={**self.environment, **dict(env)}, cwd=self.folder, **kwargs)
        self.addCleanup(p.close)
        return p

    def chat(self, *options, **kwargs):
        """weft chat at its first prompt."""
        p = self.program("chat", MODEL, "--temp", "0", "-n", "40", *options, **kwargs)
        p.prompts()
        return p

    def leave(self, p, keys="\x04"):
        p.press(keys)
        self.assertEqual(p.end(), 0, p.screen.text())
        self.assertEqual(p.after, p.before)
        self.assertEqual(p.screen.unknown, [])
        self.assertNotIn(True, [on for mode, on in p.screen.modes.items() if mode != 25], p.screen.modes)
        self.assertIs(p.screen.modes.get(25, True), True)

    def said(self, p, name="said.json"):
        """What was said and answered, by /save."""
        p.press(f"/save {name}\r")
        p.wait(r"^\[\d+ messages in")
        p.prompts()
        with open(self.path(name)) as f:
            return [m["content"] for m in json.load(f)["messages"]]

    def history(self):
        with open(self.path("state/weft/chat_history")) as f:
            return f.read().split("\n")[:-1]


class Typing(Case):
    def test_every_character_arrives_in_every_locale(self):
        for env in ({}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "C.UTF-8"}, {"LANG": "de_DE.ISO-8859-1"}, {"TERM": "dumb", "LC_ALL": "C"}):
            with self.subTest(env):
                p = self.chat(env=env)
                for byte in TYPED.encode():  # as a slow line brings them
                    p.press(bytes([byte]))
                p.wait(re.escape("> " + TYPED))
                p.press("\r" if "TERM" not in env else "\n")
                p.prompts(2)
                self.assertEqual(self.said(p)[0], TYPED)
                self.leave(p)

    def test_keys_move_by_what_a_reader_sees(self):
        p = self.chat("--no-history")
        left, right, home, end, delete = "\x1b[D", "\x1b[C", "\x1b[H", "\x1b[F", "\x1b[3~"
        for keys, line in ((f"abc{left}\x7fx", "axc"), (f"日本{left}語", "日語本"), ("ae\u0301\x7fb", "ab"), (f"{TYPED}{left}{left}\x7f", "Grüße, 日本  e\u0301"),
                           (f"🦊x{home}{delete}", "x"), (f"one two{left * 3}\x17", "two"), (f"one two\x1bb\x0b\x19{home}\x19", "twoone two"),
                           (f"ab{left}\x14", "ba"), (f"one two\x1b[1;5D\x1b[1;5Dx{end}y", "xone twoy"), (f"ab\x01{right}-", "a-b"), ("one\x1b\x7f", ""),
                           ("a\x1b\rb\x01c", "a\n  cb"), ("a\x1b\rb\x1b[Ac", "ac\n  b"), ("\x1b[15~\x1bOP\x1b[I\x1b[O\x1b[<0;1;1Mx", "x")):
            p.press("\x05\x15" if "\r" not in keys else "")
            p.press(keys)
            p.wait(lambda text, line=line: text.split("\n> ")[-1] == line if line else text.endswith("\n>"), f"after {keys!r}")
            p.press("\x1b>\x05\x15\x7f\x15")
            p.prompts()
        self.leave(p)

    def test_a_narrow_window_and_one_that_changes(self):
        p = self.chat(columns=20, rows=10)
        text = "日本語 " * 8 + "e\u0301nd"
        p.press(text)
        def rows(columns):
            out, used = ["> "], 2
            for c in re.findall(".[\u0300-\u036f]*", text):
                wide = 2 if unicodedata.east_asian_width(c[0]) == "W" else 1
                if used + wide > columns:
                    out, used = [*out, ""], 0
                out[-1] += c
                used += wide
            return "\n".join(row.rstrip() for row in out)
        p.wait(lambda seen: seen.endswith(rows(20)))
        for columns in (33, 11, 80, 20):
            drawn = p.raw.count(b"\x1b[J")
            p.size(columns, 24)
            # Drawn by the program, to the cursor's last move: what the window's own breaking of rows shows may be the same before.
            p.wait(lambda seen, columns=columns, drawn=drawn: p.raw.count(b"\x1b[J") > drawn and p.raw.endswith(b"C") and seen.endswith("\n" + rows(columns))
                   and len(re.findall("^>", seen, re.M)) == 1, f"once in {columns} columns")
        p.press("\x0c")
        p.wait(lambda seen: seen == rows(20))
        self.leave(p, "\x15\x04")

    def test_more_than_the_window_holds(self):
        p = self.chat(columns=20, rows=5)
        p.press("\x1b[200~" + "\r".join(f"line {i}" for i in range(1, 30)) + "\x1b[201~")
        p.wait("line 29")
        p.press("\x1b[A" * 15)
        p.wait(lambda text: "  line 14" in text.split("\n")[-5:])
        p.press("!\r")
        p.prompts()
        self.assertEqual(self.said(p)[0].split("\n")[13], "line 14!")
        self.leave(p)


class Blocks(Case):
    def test_a_pasted_block_is_one_message(self):
        for n, (pasted, message) in enumerate((("one\r/exit\r\ttwo\r", "one\n/exit\n\ttwo"), ("a\r\nb\nc \x1b[31m\x03\x04 d", "a\nb\nc \x1b[31m\x03\x04 d"),
                                               ("/exit\rand more", "/exit\nand more"), ('"""doc"""\rcode', '"""doc"""\ncode'))):
            p = self.chat()
            p.press("\x1b[200~" + pasted[:3])
            p.press(pasted[3:] + "\x1b[20")
            p.press("1~")
            p.press("!\r" if n == 0 else "\r")
            p.prompts(2)
            self.assertEqual(self.said(p)[0], message + ("\n!" if n == 0 else ""))
            self.leave(p)

    def test_lines_between_quotes_are_one_message(self):
        p = self.chat()
        p.press('"""one\r')
        p.prompts(1, "... ")
        p.press('/exit\r""\r"""\r')
        p.prompts(2)
        p.press('"""alone"""\r/system """\rBe\rbrief."""\r')
        p.wait("begun anew, with a system message")
        p.press('"""\r')
        p.prompts(2, "... ")
        p.press("\x03")  # drops the block
        p.wait("Ctrl-C again leaves")
        p.press(f"{QUESTION}\r")
        p.wait("mill")
        p.prompts(4)
        self.assertEqual(self.said(p), ["Be\nbrief.", QUESTION, ANSWER])
        self.assertIn('"""one\\n/exit\\n""\\n"""', self.history())
        self.leave(p)

    def test_what_begins_with_a_slash(self):
        p = self.chat()
        for i, text in enumerate(("/etc/passwd is what?", " /exit", "/2 is a half")):
            p.press(text + "\r")
            p.prompts(2 + i)
        p.press("/fly\r")
        p.wait("unknown command /fly")
        self.assertEqual(self.said(p)[::2], ["/etc/passwd is what?", " /exit", "/2 is a half"])
        self.leave(p, "/bye\r")


class Leaving(Case):
    def test_ctrl_c_drops_the_line_and_leaves_when_pressed_twice(self):
        p = self.chat()
        p.press("half a line\x03")
        p.wait("Ctrl-C again leaves")
        p.prompts(2)
        p.press("x\x7f\x03")
        p.wait(lambda text: text.count("again leaves") == 2)
        p.prompts(3)
        self.leave(p, "\x03")

    def test_the_terminal_is_given_back(self):
        for keys in ("\x04", "/exit\r", "/quit\r", "\x03\x03"):
            self.leave(self.chat(), keys)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
            p = self.chat()
            self.assertNotEqual(termios.tcgetattr(p.keep), p.before)
            if number == signal.SIGQUIT:
                p.press("\x1c")
            else:
                p.process.send_signal(number)
            self.assertEqual(p.end(), -number)
            self.assertEqual((p.after, p.screen.modes), (p.before, {2004: False}))

    def test_ctrl_c_stops_the_answer_and_keeps_the_chat(self):
        p = self.program("chat", MODEL, *LONG, env=SLOW)
        p.prompts()
        for n in range(1, 100):  # until it is still writing when the keys come
            p.press("go on\r")
            p.wait(lambda text, n=n: text.count("> go on") == n and not text.endswith("> go on"))
            p.process.send_signal(signal.SIGSTOP)
            while p.read(0.2) and select.select([p.ours], [], [], 0.2)[0]:
                pass
            stopped = p.screen.text().count("\n>") == n
            if stopped:
                p.press("typed\x03")
            p.process.send_signal(signal.SIGCONT)
            if stopped:
                p.press("\x03")  # of somebody who is not patient
                break
            p.prompts(n + 1)
        text = p.wait(r"^\[stopped\]$")
        text = p.wait(lambda text: text.endswith("\n>"))
        self.assertNotIn("typed", text)
        p.press("/reset\rgo on\r")
        p.wait(lambda text: text.count("\n> go on") == n + 1 and text.endswith("\n>") and p.screen.column == 2)
        self.assertEqual(len(self.said(p)), 2)
        self.leave(p)

    def test_ctrl_z_gives_the_terminal_to_the_shell(self):
        p = Program(["bash", "--norc", "--noprofile", "-i"], 80, 24, env={**self.environment, "PS1": "$ "}, cwd=self.folder)
        self.addCleanup(p.close)
        p.press(f"stty -g > before; {' '.join(WEFT)} chat {MODEL}\n")
        p.wait("^/help lists")
        p.prompts()
        p.press("half")
        p.wait("^> half$")
        p.press("\x1a")
        p.wait("Stopped")
        p.press("stty -g | diff - before && echo as be''fore\n")
        p.wait("^as before")
        p.press("fg\n")
        p.wait(lambda text: text.split("\n")[-1] == "> half")
        p.press("\x15\x04")
        p.wait(lambda text: text.split("\n")[-1] == "$")
        p.press("stty -g | diff - before && echo again as be''fore\n")
        p.wait("^again as before")

    def test_what_is_typed_meanwhile_is_the_next_message(self):
        p = self.chat()
        p.press(f"{QUESTION}\r/stats\rWho is Tobin?\r")
        p.prompts(4)
        text = p.screen.text()
        self.assertEqual(text.count("/stats"), 1)
        self.assertEqual(self.said(p)[0:3:2], [QUESTION, "Who is Tobin?"])
        self.leave(p)


class Kept(Case):
    def test_the_history_outlives_the_program(self):
        p = self.chat()
        p.press(f"{QUESTION}\r")
        p.prompts(2)
        p.press("\x1b[200~two\rlines\\n\x1b[201~\r")
        p.prompts(3)
        p.press(" not kept\r")
        p.prompts(4)
        p.press("/stats\r/stats\r")
        p.prompts(6)
        self.leave(p)
        file = self.path("state/weft/chat_history")
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode), 0o700)
        self.assertEqual(self.history(), [QUESTION, "two\\nlines\\\\n", "/stats"])
        p = self.chat()
        p.press("\x1b[A\x1b[A")
        p.wait(r"^> two\n  lines\\n$")
        p.press("\x1b[A\x1b[A")
        p.wait(re.escape("> " + QUESTION) + "$")
        p.press("\x1b[B\x1b[B")
        p.wait("^> /stats$")
        p.press("\x15\x12mIRA\x7f\x7f\x7f\x7fMira")
        p.wait(rf"^\(search: Mira\) {re.escape(QUESTION)}$")
        p.press("\x05!")
        p.wait(re.escape("> " + QUESTION + "!") + "$")
        self.leave(p, "\x15\x04")

    def test_its_bounds_and_who_reads_it(self):
        os.makedirs(self.path("state/weft"))
        file = self.path("state/weft/chat_history")
        with open(file, "wb") as f:
            f.write(b"".join(b"entry %d\n" % i for i in range(3000)) + b"\xff\xfe no text\n\x00\nlast\ncut")
        os.chmod(file, 0o644)
        p = self.chat()
        p.press("\x1b[A")
        p.wait("^> last$")
        self.leave(p, "\x15\x04")
        self.assertEqual((len(self.history()), self.history()[-1], stat.S_IMODE(os.stat(file).st_mode)), (1000, "last", 0o600))

    def test_it_can_be_turned_off_and_moved(self):
        for options, env in ((["--no-history"], {}), ([], {"WEFT_HISTORY": ""}), ([], {"WEFT_HISTORY": "off"}), ([], {"WEFT_HISTORY": self.path("elsewhere")})):
            p = self.chat(*options, env=env)
            p.press("/stats\r")
            p.prompts(2)
            p.press("\x1b[A")
            p.wait("^> /stats$")  # of this run
            self.leave(p, "\x15\x04")
        self.assertFalse(os.path.exists(self.path("state")))
        with open(self.path("elsewhere")) as f:
            self.assertEqual(f.read(), "/stats\n")
        for bad in ("/dev/null/history", self.path("pipe")):
            if bad.endswith("pipe"):
                os.mkfifo(bad)
            p = self.chat(env={"WEFT_HISTORY": bad})
            p.wait("nothing that is typed is kept")
            self.leave(p)

    def test_tab_completes(self):
        os.mkdir(self.path("größer"))
        for name in ("größer/one.json", "größer/other.json", "alone.json", ".hidden"):
            open(self.path(name), "w").close()
        p = self.chat("--adapter", f"pirate={MODELS}/pirate.gguf", "--adapter", f"plain={MODELS}/letter.gguf:0")
        for keys, line in (
            ("/lo\t", "/load "),
            ("/re\t", "/re"),
            ("/load gr\t", "/load größer/"),
            ("/load größer/o\t", "/load größer/o"),
            ("/load größer/on\t", "/load größer/one.json"),
            ("/save al\t", "/save alone.json"),
            ("/load ~/al\t", "/load ~/alone.json"),
            ("/adapter pi\t", "/adapter pirate"),
            ("/adapter plain pi\t", "/adapter plain pirate"),
            ("/adapter x=al\t", "/adapter x=alone.json"),
            ("say al\t", "say al"),
            ("/load .h\t", "/load .hidden"),
        ):
            p.press(keys + "|")
            p.wait(re.escape(f"> {line}|") + "$")
            p.press("\x15")
            p.prompts()
        p.press("/re\t\t")
        p.wait(r"^/regen +/reset\n> /re$")
        self.leave(p, "\x15\x04")

    def test_adapters_change(self):
        p = self.chat("--adapter", f"pirate={MODELS}/pirate.gguf")
        self.assertIn("adapter pirate", p.screen.text().split("\n")[0])
        for i, (command, said) in enumerate(
            (
                ("none", ANSWER),
                ("pirate:0.9", "Arr!"),
                (f"letter={MODELS}/letter.gguf", "Dear friend"),
                ("pirate:x", "no scale"),
                ("none", ANSWER),
            )
        ):
            p.press(f"/adapter {command}\r/reset\r{QUESTION}\r")
            p.prompts(1 + 3 * (i + 1))
            self.assertIn(said, p.screen.text().split(f"/adapter {command}")[-1])
        p.press("/adapter\r")
        p.wait(r"^  letter +1 ")
        self.leave(p)


class Shown(Case):
    def test_who_begins_is_told_what_runs(self):
        p = self.chat("-c", "300", columns=100)
        self.assertRegex(p.screen.lines()[0], r"^\S+ \(Q8_0\) \| context 300 tokens \| adapter none$")
        p.press("/help\r")
        for command in ("/save", "/load", "/regen", "/reset", "/system", "/adapter", "/think", "/stats", "/exit"):
            p.wait(f"^{command} ")
        self.leave(p)

    def test_words_are_kept_together(self):
        p = self.chat("-n", "200", columns=24)
        p.press("Tell me a story.\r")
        text = p.prompts(2)
        answer = self.said(p)[1]
        shown = re.split("\n+(?:>|\\[stopped)", text.split("> Tell me a story.\n")[1])[0].split("\n")
        self.assertGreater(len(shown), 3)
        self.assertLessEqual(max(map(len, shown)), 24)
        self.assertEqual(" ".join(shown).split(), answer.split())
        self.leave(p)

    def test_thoughts_are_a_line(self):
        """With their length, in the place of the word that stands for them while they come; on demand they are there."""
        with open(os.path.join(MODELS, "..", "corpus", "chat.jinja")) as f, open(self.path("t.jinja"), "w") as t:
            t.write("{#- <think> </think> -#}\n" + f.read())
        with open(self.path("g.gbnf"), "w") as f:
            f.write('root ::= "<think>\\nHm, it is so.\\n</think>\\n\\nIt is."\n')
        p = self.chat("--chat-template", "t.jinja", "--grammar", "g.gbnf")
        p.press("Is it so?\r")
        text = p.prompts(2)
        self.assertIn("> Is it so?\n[thought 4 words; /think shows them]\nIt is.\n", text)
        p.press("/think\r")
        p.wait("^Hm, it is so.$")
        p.press("/think on\r/regen\r")
        self.assertIn("> /regen\nHm, it is so.\n\nIt is.\n", p.prompts(5))
        self.assertEqual(self.said(p), ["Is it so?", "It is."])
        self.leave(p)

    def test_nothing_of_a_model_steers_the_terminal(self):
        """Anything that a model can write, as random as it gets."""
        p = self.program("chat", MODEL, *LONG)
        p.prompts()
        seen = ""
        for i in range(12):
            p.press("go on\r/save said.json\r/reset\r")
            p.prompts(4 + 3 * i)
            with open(self.path("said.json")) as f:
                seen += json.load(f)["messages"][1]["content"]
        self.assertRegex(seen, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # there was something
        self.assertEqual(p.screen.unknown, [])
        self.assertEqual(set(p.screen.modes), {2004})
        self.leave(p)

    def test_weft_run_does_not_either(self):
        ids = {c: re.findall(rb"\d+", run([*WEFT, "tokenize", MODEL, c]).stdout)[-1].decode() for c in ("\x1b", "\x07")}
        for c, token in ids.items():
            p = self.program("run", MODEL, "x", "-n", "3", "--logit-bias", f"{token}=1000", "-q")
            p.end()
            self.assertIn(("\\x%02x" % ord(c)) * 3, p.screen.text())
            self.assertEqual(run([*WEFT, "run", MODEL, "x", "-n", "3", "--logit-bias", f"{token}=1000", "-q"]).stdout, c.encode() * 3 + b"\n")

    def test_terminals_that_cannot_draw_and_people_who_want_no_colours(self):
        p = self.chat(env={"TERM": "dumb"})
        p.press(f"{QUESTION}\n")
        p.prompts(2)
        p.press("\x03")
        p.wait("again leaves")
        p.prompts(3)
        p.press("\x03")
        self.assertEqual(p.end(), 0)
        self.assertNotIn(b"\x1b", p.raw)
        self.assertIn(ANSWER, p.screen.text())
        for env, coloured in (({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({}, True)):
            p = self.chat(env=env)
            self.leave(p)
            self.assertEqual(bool(re.search(rb"\x1b\[[0-9;]*m", p.raw)), coloured, env)

    def test_answers_go_where_they_are_sent(self):
        with open(self.path("answers"), "wb") as f:
            p = self.chat(stdout=f)  # who types sees what is typed on the terminal
            p.press(f"{QUESTION}\r")
            p.prompts(2)
            self.leave(p)
        with open(self.path("answers"), "rb") as f:
            self.assertEqual(f.read().strip().decode(), ANSWER)


class Pipes(Case):
    def pipe(self, data, *options):
        p = run([*WEFT, "chat", MODEL, "--temp", "0", "-n", "40", *options], input=data, env=self.environment, cwd=self.folder)
        return p.returncode, p.stdout, p.stderr.decode()

    def messages(self, data):
        status, out, err = self.pipe(data + b"\n/save said.json\n")
        err = err.replace("[stopped at the limit of tokens]\n", "")
        self.assertNotIn(b"\x1b", out + err.encode())
        with open(self.path("said.json")) as f:
            return [m["content"] for m in json.load(f)["messages"]][::2], status, err

    def content(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def test_lines_are_what_they_are(self):
        self.assertEqual(self.messages(f"{QUESTION}\r\nSecond\r\n\r\n   \r\n".encode()), ([QUESTION, "Second"], 0, ""))
        self.assertEqual(self.messages(b"\xef\xbb\xbfFirst\nab\0cd\ne\rf"), (["First", "ab\0cd", "e\rf"], 0, ""))
        self.assertEqual(self.messages(b'"""\r\none\r\n/exit\r\n"""\r\n"""x"""\nGr\xc3\xbc\xc3\x9fe'), (["one\n/exit", "x", "Grüße"], 0, ""))
        self.assertEqual(self.pipe(QUESTION.encode()), (0, ANSWER.encode() + b"\n", ""))  # no banner, no prompt
        self.assertFalse(os.path.exists(self.path("state")))

    def test_what_cannot_be_said_is_named(self):
        said, status, err = self.messages(b"good\nbad \xff\n\"\"\"\nin \xfe\n/exit\n\"\"\"\ngood again")
        self.assertEqual((said, status), (["good", "good again"], 1))
        self.assertIn("line 2 is not UTF-8 (its byte 5)", err)
        self.assertIn("line 4 is not UTF-8 (its byte 4)", err)
        status, out, err = self.pipe(b'"""\nhi\n/exit\n')
        self.assertEqual((status, out), (1, b""))
        self.assertIn('is not closed by """', err)

    def test_commands_that_lack_something(self):
        for line, message in (
            ("/regen", "there is nothing to answer yet"),
            ("/save", "a name is needed"),
            ("/load", "a name is needed"),
            ("/save x.json", "nothing to save yet"),
            ("/system Be brief.\n/regen", "there is nothing to answer yet"),
            ("/reset now", "takes nothing behind it"),
            ("/adapter none such", "there is no adapter"),
        ):
            status, out, err = self.pipe(line.encode() + b"\n")
            self.assertEqual((status, out), (1, b""), line)
            self.assertIn(message, err)
        self.assertNotIn("x.json", os.listdir(self.folder))

    def test_saved_and_loaded(self):
        """/save and /load take each other's files, and the last name again; nothing else is written over."""
        status, _, err = self.pipe(f"/system Be brief.\n{QUESTION}\n/save a.json\nMore\n/save\n/reset\n/load a.json\n/save ~/b.json\n".encode())
        self.assertEqual((status, err), (0, ""))
        with open(self.path("a.json")) as a, open(self.path("b.json")) as b:
            text = a.read()
            self.assertEqual(text, b.read())
        self.assertEqual([m["role"] for m in json.loads(text)["messages"]], ["system", "user", "assistant", "user", "assistant"])
        with open(self.path("old.json"), "w") as f:
            json.dump(json.loads(text)["messages"][:2], f, indent=2)  # as they were written once
        status, out, err = self.pipe(b"/load old.json\n/regen\n/save old.json\n")
        self.assertEqual((status, out, err), (0, ANSWER.encode() + b"\n", ""))
        with open(self.path("two.jsonl"), "w") as f:
            f.write(text * 2)
        with open(self.path("other.json"), "w") as f:
            f.write('{"name": "weft"}\n')
        for name, words in (("two.jsonl", "several records"), ("other.json", "not a conversation")):
            before = self.content(name)
            status, _, err = self.pipe(f"/load {name}\n{QUESTION}\n/save {name}\n".encode())
            self.assertEqual(status, 1)
            self.assertIn(words, err)
            self.assertIn("would be written over", err)
            self.assertEqual(self.content(name), before)

    def test_ctrl_c_ends_what_nobody_types(self):
        p = subprocess.Popen([*WEFT, "chat", MODEL, *LONG], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**self.environment, **SLOW}, cwd=self.folder)
        p.stdin.write(b"go on\n" * 100)
        p.stdin.flush()
        p.stdout.read(10)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=common.PATIENCE)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"[stopped]", err)


if __name__ == "__main__":
    main()
