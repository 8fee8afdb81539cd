"""Imports a client, creates one and prints the process's cost so far: `start.py bare|ours|openai`."""

import sys
import time

way = sys.argv[1]
if way == "ours":
    from gatewright import Client

    client = Client(base_url="http://127.0.0.1:9", api_key="none")
elif way == "openai":
    from openai import OpenAI

    client = OpenAI(base_url="http://127.0.0.1:9", api_key="none")
# Before anything that is only needed for the output.
cpu_us = time.process_time_ns() / 1e3
with open("/proc/self/status", encoding="ascii") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(f'{{"operations": 1, "cpu_us": {cpu_us}, "wall_us": 0, "peak_kb": {peak}, "answer": 1}}')
