"""Make an image and save it. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import base64
from pathlib import Path

import gatewright

client = gatewright.Client()

images = client.images.generate(
    model="image_model_2", prompt="a lighthouse at dusk", size="512x512", response_format="b64_json"
)
for number, image in enumerate(images.data, start=1):
    if image.b64_json is not None:
        path = Path(f"image-{number}.png")
        path.write_bytes(base64.b64decode(image.b64_json))
        print(f"{path}: {path.stat().st_size} bytes")
