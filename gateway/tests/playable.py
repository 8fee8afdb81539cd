"""Plays what the gateway serves: every resolution and aspect ratio of 2.6, decoded frame by frame by FFmpeg's
libraries (package `av`, the only one needed). Usage: GATEWRIGHT_API_KEY=… python playable.py http://127.0.0.1:8080"""

import io
import json
import os
import sys
import time
import urllib.request

import av

BASE = sys.argv[1].rstrip("/")
HEADERS = {"authorization": f"Bearer {os.environ['GATEWRIGHT_API_KEY']}", "content-type": "application/json"}
SIZES = {
    ("720p", "16:9"): (1280, 720),
    ("720p", "9:16"): (720, 1280),
    ("720p", "1:1"): (720, 720),
    ("1080p", "16:9"): (1920, 1080),
    ("1080p", "9:16"): (1080, 1920),
    ("1080p", "1:1"): (1080, 1080),
}


def call(path: str, body: object = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(BASE + path, data, HEADERS)) as answer:
        return json.load(answer)


for (resolution, aspect_ratio), size in SIZES.items():
    request = {"model": "video_model_1", "prompt": "a tide coming in", "duration": 3}
    task = call("/v1/videos/generations", request | {"resolution": resolution, "aspect_ratio": aspect_ratio})
    while task["status"] == "processing":
        time.sleep(0.2)
        task = call(f"/v1/videos/generations/{task['id']}")
    assert task["status"] == "completed", task
    with urllib.request.urlopen(task["output"]["url"]) as file, av.open(io.BytesIO(file.read())) as video:
        stream = video.streams.video[0]
        frames = [bytes(frame.planes[0]) for frame in video.decode(stream)]
        seconds = float(stream.duration * stream.time_base)
    assert (stream.width, stream.height) == size, (stream.width, stream.height)
    assert seconds == 3.0 and len(frames) == 30, (seconds, len(frames))
    assert frames[0] != frames[-1], "the picture does not move"
    print(f"{resolution} {aspect_ratio}: {size[0]}x{size[1]}, {seconds} s, {len(frames)} frames")
