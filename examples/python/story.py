"""The whole service in one file: runs every operation once. `cargo xtask demo` runs it.

Usage: GATEWRIGHT_BASE_URL=… GATEWRIGHT_API_KEY=… python story.py FOLDER
"""

import sys
from base64 import b64decode
from pathlib import Path
from urllib.request import urlopen

import gatewright
from gatewright import Client

REPORTS = Path(__file__).resolve().parent.parent / "reports"


def main(folder: Path) -> None:
    with Client() as client:
        models = client.models.list()
        print("models:", ", ".join(model.id for model in models.data))
        print("model:", client.models.retrieve(models.data[0].id).owned_by)

        completion = client.chat.completions.create(
            model="model-sol",
            messages=[{"role": "user", "content": "Reply with exactly: good morning"}],
        )
        print("chat:", completion.choices[0].message.content)

        with client.chat.completions.create(
            model="model-breeze",
            messages=[{"role": "user", "content": "Tell me about rivers."}],
            stream=True,
        ) as stream:
            text = "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices)
        print("stream:", text)

        response = client.responses.create(model="model-terra", input="Reply with exactly: a response")
        for item in response.output:
            if item.type == "message":
                for part in item.content:
                    if part.type == "output_text":
                        print("responses:", part.text)

        with client.responses.create(
            model="model-terra", input="Tell me about lakes.", stream=True
        ) as events:
            names = [event.type for event in events]
        print("responses stream:", names[0], "to", names[-1])

        content = client.native.generate_content(
            model="model-luna",
            contents=[{"parts": [{"text": "Reply with exactly: native content"}]}],
        )
        candidates = content.candidates or []
        print(
            "native:", "".join(part.text or "" for c in candidates if c.content for part in c.content.parts)
        )
        native_models = client.native.models.list()
        print("native models:", len(native_models.models))
        native_model = client.native.models.get(native_models.models[0].name)
        print("native model:", native_model.name, native_model.baseModelId)

        image = client.images.generate(
            model="image_model_2", prompt="a lighthouse at dusk", size="256x256", response_format="b64_json"
        )
        picture = b64decode(image.data[0].b64_json or "")
        (folder / "image.png").write_bytes(picture)
        print("image: PNG of", len(picture), "bytes")

        task = client.videos.generations.create_and_wait(
            model="video_model_4", prompt="waves on a beach", duration=3, resolution="720p", interval=0.2
        )
        if task.output is None:
            raise SystemExit("a completed task has an output")
        with urlopen(task.output.url) as video:
            (folder / "video.mp4").write_bytes(video.read())
        print("video:", task.status, task.output.resolution, f"{task.output.duration} s", task.output.format)

        try:
            client.images.generate(model="image_model_1", prompt="two cats", n=2, size="512x512")
        except gatewright.BadRequestError as error:
            print("refused:", error.status_code, error.code, error.param)

    for name in ("good", "broken"):
        result = gatewright.report.validate(REPORTS / f"{name}.json")
        print(f"{name} report:", "valid" if result.valid else "invalid")
        for violation in result.violations:
            print(f"  {violation.line}:{violation.column} {violation.pointer} {violation.rule}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
