# SPDX-License-Identifier: Apache-2.0
"""How well a model predicts a text and how far another's probabilities are from its, by the definitions of llama-perplexity; in double
precision, from the logits of the plain forward pass."""
import struct

import numpy as np

CLIP = 16.0  # what is further below the largest logit is written as if it were so far


def chunks(ids, n_ctx, bos):
    """(rows to evaluate, what follows their second halves): each begins with BOS; [chunk, n_ctx] and [chunk, scored]."""
    whole = np.array(ids[:len(ids) // n_ctx * n_ctx]).reshape(-1, n_ctx)
    rows = whole.copy()
    rows[:, 0] = bos
    return rows, whole[:, n_ctx // 2 + 1:]


def scored(model, rows):
    """Logits of the second halves but their last token, [n, vocabulary]."""
    n_ctx = rows.shape[1]
    return np.concatenate([model.logits(row)[n_ctx // 2:n_ctx - 1] for row in rows])


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def base_file(ids, n_ctx, logits):
    """(its bytes, the log-probabilities as they are read from it)."""
    n_chunks, (n, v) = len(ids) // n_ctx, logits.shape
    low = np.maximum(logits.min(-1), logits.max(-1) - CLIP)
    scale = ((logits.max(-1) - low) / 65535).astype("<f4")
    lowest = (low + (log_softmax(logits) - logits)[:, 0]).astype("<f4")
    codes = np.rint(np.maximum(logits - low[:, None], 0) / scale[:, None]).clip(0, 65535).astype("<u2")
    head = b"_logits_" + struct.pack("<3i", n_ctx, v, n_chunks) + np.array(ids[:n_ctx * n_chunks], "<i4").tobytes()
    records = np.concatenate([scale[:, None].view("<u2"), lowest[:, None].view("<u2"), codes, np.zeros((n, v % 2), "<u2")], -1)
    return head + records.tobytes(), (scale[:, None] * codes + lowest[:, None]).astype(np.float64)


def mean(x):
    """(mean, its standard error)."""
    return x.mean(), np.sqrt(max((x * x).mean() - x.mean() ** 2, 0) / (len(x) - 1))


def estimate(logits, following):
    """"PPL = ..." of the tokens that follow."""
    value, error = mean(-log_softmax(logits)[np.arange(len(logits)), following])
    return f"PPL = {np.exp(value):.4f} +/- {np.exp(value) * error:.5f}"


def summary(logits, base, following):
    """The lines of a comparison: `base` log-probabilities as a base file has them, `logits` another model's."""
    rows = np.arange(len(logits))
    ours, p = log_softmax(logits), np.where(base > -CLIP, np.exp(base), 0)
    nll, nll_base = -ours[rows, following], -base[rows, following]
    kld = (p * (base - ours)).sum(-1)
    moved = 100 * (np.exp(-nll) - np.exp(-nll_base))
    figures = [("Mean PPL(Q)", np.exp(nll.mean())), ("Mean PPL(base)", np.exp(nll_base.mean())), ("Mean ln(PPL(Q)/PPL(base))", (nll - nll_base).mean()),
               ("Mean KLD", kld.mean()), ("Median KLD", np.median(kld)), ("99.0% KLD", np.quantile(kld, 0.99)), ("Mean \u0394p", moved.mean()),
               ("RMS \u0394p", np.sqrt((moved ** 2).mean())), ("Same top p", 100 * (ours.argmax(-1) == base.argmax(-1)).mean())]
    lines = [f"{name}: {value:.6f}" for name, value in figures]
    return lines + [f"Cor(ln(PPL(Q)), ln(PPL(base))): {100 * np.corrcoef(nll, nll_base)[0, 1]:.2f}%"]
