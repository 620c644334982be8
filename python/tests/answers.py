# SPDX-License-Identifier: Apache-2.0
"""What `weft run` says in the cases that test_same.py compares.

Usage: answers.py PROGRAM     writes them to standard output, for systems in which the program does not run"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMPTS = ("Once upon a time", "The baker said:", "In winter", " ")
# A name: words of the command line, and the same as options of generate.
CASES = {
    "greedy": (["--temp", "0"], {"temperature": 0}),
    "sampled": (["--seed", "7"], {"seed": 7}),
    "warm": (["--seed", "11", "--temp", "1.5", "--top-k", "0", "--top-p", "1", "--min-p", "0"], dict(seed=11, temperature=1.5, top_k=0, top_p=1, min_p=0)),
    "penalties": (
        ["--seed", "3", "--repeat-penalty", "1.3", "--frequency-penalty", "0.5", "--presence-penalty", "0.25"],
        dict(seed=3, repeat_penalty=1.3, frequency_penalty=0.5, presence_penalty=0.25),
    ),
    "stops": (["--temp", "0", "--stop", ".", "--stop", " the "], dict(temperature=0, stop=[".", " the "])),
    "bias": (["--temp", "0", "--logit-bias", "51=-inf"], dict(temperature=0, logit_bias={51: float("-inf")})),
    "regex": (["--seed", "5", "--regex", "[A-Z][a-z]{2,7}, [0-9]{1,2} years"], dict(seed=5, regex="[A-Z][a-z]{2,7}, [0-9]{1,2} years")),
    "choices": (["--seed", "5", "--choices", "yes,no"], dict(seed=5, choices=["yes", "no"])),
    "adapter": (["--temp", "0", "--adapter", "pirate=models/pirate.gguf"], dict(temperature=0, adapter="pirate")),
    "scaled": (["--temp", "0", "--adapter", "poem=models/poem.gguf:0.5"], dict(temperature=0, adapter={"poem": 0.5})),
}
N = 24


def of_program(program, case, prompt):
    words = [program, "run", "models/alderbrook.gguf", prompt, "-n", str(N), "--threads", "2", "--json", *CASES[case][0]]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"{words}: {done.stderr}")
    said = json.loads(done.stdout)
    return {"text": said["text"], "tokens": said["tokens"], "finish": said["finish_reason"]}


def answer(case, prompt):
    """From the program, or from what was written."""
    if os.environ.get("WEFT_PROGRAM"):
        return of_program(os.environ["WEFT_PROGRAM"], case, prompt)
    if os.environ.get("WEFT_ANSWERS"):
        with open(os.environ["WEFT_ANSWERS"], encoding="utf-8") as f:
            return json.load(f)[case][prompt]
    return None


if __name__ == "__main__":
    json.dump({case: {prompt: of_program(sys.argv[1], case, prompt) for prompt in PROMPTS} for case in CASES}, sys.stdout)
