#!/usr/bin/env python3
"""Lists the times in which no stream of a run received a token, from records.jsonl alone.

usage: pauses.py RUN PREFILL_TOKENS_PER_S

A silence lasts at least 100 ms and 10 median gaps between tokens, in which a request had been sent and was not
finished. The prompts that were sent before its end and had their first token within a quarter of its length after it
need their tokens / PREFILL_TOKENS_PER_S. If less than the minimum remains, the silence is a prefill, else a pause.
"""
import bisect
import json
import os
import statistics
import sys


def level(rows, rate):
    events, gaps, streams = [], [], []
    for r in rows:
        if r.get("failure") or "at_ns" not in r.get("events", {}):
            continue
        at, t = [], 0
        for step in r["events"]["at_ns"]:
            t += step
            at.append(t)
        if not at:
            continue
        events += at
        gaps += [b - a for a, b in zip(at, at[1:])]
        streams.append((r["sent_ns"], at[0], at[-1], r["input_tokens"]))
    events.sort()
    if len(events) < 2:
        return
    least = max(100e6, 10 * statistics.median(gaps)) if gaps else 100e6
    for a, b in zip(events, events[1:]):
        if b - a < least:
            continue
        busy = [s for s in streams if s[0] < b and s[2] >= b]
        begin = max(a, min(s[0] for s in busy))
        if b - begin < least:
            continue
        tokens = sum(s[3] for s in busy if b <= s[1] <= b + (b - begin) / 4)
        left = (b - begin) - tokens / rate * 1e9
        yield begin / 1e9, (b - begin) / 1e6, tokens, "prefill" if left < least else "pause"


def main():
    run, rate = sys.argv[1], float(sys.argv[2])
    stages = {}
    with open(os.path.join(run, "records.jsonl")) as lines:
        for line in lines:
            r = json.loads(line)
            if "stage" in r:
                stages.setdefault(r["stage"], []).append(r)
    for stage, rows in sorted(stages.items()):
        found = list(level(rows, rate))
        prefills = [f for f in found if f[3] == "prefill"]
        text = "; ".join(f"{at:.2f} s: {ms:.0f} ms" for at, ms, _, kind in found if kind == "pause")
        print(f"level {stage}: {len(rows)} requests, pauses: {text or 'none'}; {len(prefills)} prefills")


main()
