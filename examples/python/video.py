"""Submit a video task, wait for it, save the file. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import gatewright

client = gatewright.Client()

task = client.videos.generations.create(
    model="video_model_4", prompt="waves on a beach", duration=3, resolution="720p"
)
print(f"{task.id} was submitted")
try:
    task = client.videos.generations.wait(
        task.id, interval=0.2, timeout=120, on_progress=lambda task: print(f"{task.id} is {task.status}")
    )
except gatewright.TaskFailedError as error:
    raise SystemExit(f"the task failed: {error.message}") from error

size = client.videos.generations.save(task, "video.mp4")
print(f"video.mp4: {size} bytes")
