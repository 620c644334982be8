#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes train_losses_values.h: what TRL's DPO and GRPO losses are at a few points, by their formulas, in plain Python.

tests/peers/test_trl.py holds the same functions against TRL itself.
"""

import math
import os
import random


def log_sigmoid(x):
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def dpo(chosen, rejected, base_chosen, base_rejected, beta, smoothing, chosen_weight, n_chosen):
    """loss_type "sigmoid" with label_smoothing, plus chosen_weight times the mean -log p of the chosen answer's tokens."""
    x = beta * ((chosen - base_chosen) - (rejected - base_rejected))
    return -log_sigmoid(x) * (1 - smoothing) - log_sigmoid(-x) * smoothing - chosen_weight * chosen / n_chosen


def grpo_token(logp, old_logp, base_logp, advantage, beta, low, high):
    """The loss of a token, before any mean over tokens."""
    ratio = math.exp(logp - old_logp)
    loss = -min(ratio * advantage, min(max(ratio, 1 - low), 1 + high) * advantage)
    return loss + beta * (math.exp(base_logp - logp) - (base_logp - logp) - 1)


def advantages(rewards, scaled):
    """Of one group; `scaled`: by the deviation (GRPO), or not (Dr. GRPO)."""
    mean = sum(rewards) / len(rewards)
    out = [r - mean for r in rewards]
    if scaled:
        deviation = math.sqrt(sum(a * a for a in out) / (len(out) - 1))
        out = [a / (deviation + 1e-4) for a in out]
    return out


def grpo(token_losses, kind, most_tokens):
    """From the losses of each answer's tokens to that of the batch: loss_type "grpo", "dr_grpo" or "dapo"."""
    if kind == "grpo":
        return sum(sum(t) / len(t) for t in token_losses) / len(token_losses)
    if kind == "dr_grpo":
        return sum(sum(t) for t in token_losses) / (len(token_losses) * most_tokens)
    return sum(sum(t) for t in token_losses) / sum(len(t) for t in token_losses)


def row(numbers):
    return "    {" + ", ".join(f"{float(x):.11g}" for x in numbers) + "},\n"


def main():
    draw = random.Random(7)
    pairs, rows, groups = "", "", ""
    for i in range(8):
        at = [draw.uniform(-40, -1) for _ in range(4)]
        # numbers that a float holds: the losses are told them so
        beta, smoothing, weight, n = (0.125, 0.5)[i % 2], (0, 0.0625)[i // 2 % 2], (0, 0.75)[i // 4], 3 + i
        pairs += row([*at, beta, smoothing, weight, n, dpo(*at, beta, smoothing, weight, n)])
    for i in range(12):
        logp = draw.uniform(-4, -0.1)
        at = [logp, logp - draw.uniform(-0.6, 0.6), logp + draw.uniform(-1, 1), draw.uniform(-2, 2)]
        how = [(0, 0.0625)[i % 2], 0.25, (0.25, 0.3125)[i // 6]]
        rows += row([*at, *how, grpo_token(*at, *how)])
    for rewards in ([1, 0, 0, 1], [0.5, 0.25, 0, 1], [1, 1, 1, 1], [-1, 2, 0, 0]):
        groups += row([*rewards, *advantages(rewards, True), *advantages(rewards, False)])
    text = (
        "// SPDX-License-Identifier: Apache-2.0\n/* train_losses_values.h: written by train_losses.py. */\n"
        "#ifndef WEFT_TESTS_TRAIN_LOSSES_VALUES_H\n#define WEFT_TESTS_TRAIN_LOSSES_VALUES_H\n\n// clang-format off\n"
        "typedef struct trl_pair {\n    double chosen, rejected, base_chosen, base_rejected, beta, smoothing,"
        " chosen_weight, n_chosen, loss;\n} trl_pair;\nstatic const trl_pair TRL_PAIRS[] = {\n" + pairs + "};\n\n"
        "typedef struct trl_row {\n    double logp, old_logp, base_logp, advantage, beta, low, high, loss;\n} trl_row;\n"
        "static const trl_row TRL_ROWS[] = {\n" + rows + "};\n\n"
        "typedef struct trl_group {\n    double r0, r1, r2, r3, scaled0, scaled1, scaled2, scaled3, plain0, plain1,"
        " plain2, plain3;\n} trl_group;\nstatic const trl_group TRL_GROUPS[] = {\n" + groups + "};\n"
        "// clang-format on\n\n#endif\n"
    )
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_losses_values.h"), "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
