"""Make an image and save it. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import gatewright

client = gatewright.Client()

images = client.images.generate(
    model="image_model_2", prompt="a lighthouse at dusk", size="512x512", response_format="b64_json"
)
for number, image in enumerate(images.data, start=1):
    size = client.images.save(image, f"image-{number}.png")
    print(f"image-{number}.png: {size} bytes")
