"""litellm as a client: a function for three protocols, by the prefix of the model, and one for responses."""

import base64
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import litellm
import openai
from scenarios import Answer, Call, Client, Refused, Target, Tool

litellm.telemetry = False
litellm.suppress_debug_info = True


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except openai.APIError as error:
        headers = getattr(error, "litellm_response_headers", None) or {}
        raise Refused(getattr(error, "status_code", None), str(error), headers.get("retry-after")) from error


class LiteLlm(Client):
    """The parts that do not depend on the protocol."""

    prefix = ""
    path = ""

    def send(self, messages: list, **options: object):
        with refusals():
            return litellm.completion(
                model=f"{self.prefix}/{self.model}",
                api_base=self.target.url + self.path,
                api_key=self.target.key,
                messages=messages,
                num_retries=0,
                max_retries=0,
                **options,
            )

    @staticmethod
    def prompt(text: str, picture: bytes | None = None) -> list:
        content: list | str = text
        if picture is not None:
            url = "data:image/png;base64," + base64.b64encode(picture).decode()
            content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
        return [{"role": "system", "content": "You are terse."}, {"role": "user", "content": content}]

    @staticmethod
    def tool(tool: Tool) -> dict:
        return {"type": "function", "function": vars(tool)}

    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        completion = self.send(self.prompt(text, picture))
        usage = completion.usage
        return Answer(completion.choices[0].message.content, usage.prompt_tokens, usage.completion_tokens)

    def stream(self, text: str) -> Iterator[str]:
        usage = None
        with refusals():
            for chunk in self.send(self.prompt(text), stream=True, stream_options={"include_usage": True}):
                usage = getattr(chunk, "usage", None) or usage
                for choice in chunk.choices:
                    if choice.delta.content:
                        yield choice.delta.content
        self.written = usage and usage.completion_tokens

    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        options = {"tools": [self.tool(tool)], "tool_choice": "required", "stream": streamed}
        completion = self.send(self.prompt(text), **options)
        if streamed:
            with refusals():
                completion = litellm.stream_chunk_builder(list(completion))
        message = completion.choices[0].message
        (call,) = message.tool_calls
        return Call(call.function.name, json.loads(call.function.arguments), message, call.id)

    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        returned = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result}
        completion = self.send([*self.prompt(text), call.turn, returned], tools=[self.tool(tool)])
        return completion.choices[0].message.content

    def fill(self, text: str, schema: dict) -> dict:
        form = {"type": "json_schema", "json_schema": {"name": "places", "schema": schema, "strict": True}}
        completion = self.send(self.prompt(text), response_format=form)
        return json.loads(completion.choices[0].message.content)


class LiteLlmChat(LiteLlm):
    name = "litellm, chat"
    protocol = "chat"
    prefix = "openai"
    path = "/v1"

    def draw(self, text: str, size: str) -> bytes:
        with refusals():
            drawn = litellm.image_generation(
                model=f"{self.prefix}/{self.model}",
                prompt=text,
                size=size,
                api_base=self.target.url + self.path,
                api_key=self.target.key,
                num_retries=0,
                max_retries=0,
            )
        (picture,) = drawn.data
        # For an unknown model it cannot request data: it gets a URL, which is the default. The third-party
        # server returns data anyway.
        if picture.b64_json is not None:
            return base64.b64decode(picture.b64_json)
        with urllib.request.urlopen(picture.url) as answer:
            return answer.read()


class LiteLlmMessages(LiteLlm):
    name = "litellm, messages"
    protocol = "messages"
    prefix = "anthropic"


class LiteLlmNative(LiteLlm):
    name = "litellm, native"
    protocol = "native"
    prefix = "gemini"
    path = "/v1beta"

    def __init__(self, target: Target, model: str) -> None:
        super().__init__(target, model)
        # Otherwise it writes the schema into the prompt, as for old models.
        litellm.register_model({f"gemini/{model}": {"supports_response_schema": True}})


class LiteLlmResponses(Client):
    name = "litellm, responses"
    protocol = "responses"

    def __init__(self, target: Target, model: str) -> None:
        super().__init__(target, model)
        # Otherwise it requests the whole response and turns it into a stream.
        litellm.register_model({f"openai/{model}": {"supports_native_streaming": True}})

    def send(self, content: object, *more: object, **options: object):
        with refusals():
            return litellm.responses(
                model=f"openai/{self.model}",
                api_base=self.target.url + "/v1",
                api_key=self.target.key,
                instructions="You are terse.",
                input=[{"role": "user", "content": content}, *more],
                store=False,
                num_retries=0,
                max_retries=0,
                **options,
            )

    @staticmethod
    def tool(tool: Tool) -> dict:
        return {"type": "function", "strict": False, **vars(tool)}

    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        content: list | str = text
        if picture is not None:
            url = "data:image/png;base64," + base64.b64encode(picture).decode()
            image = {"type": "input_image", "image_url": url, "detail": "auto"}
            content = [{"type": "input_text", "text": text}, image]
        response = self.send(content)
        assert response.status == "completed", response
        return Answer(response.output_text, response.usage.input_tokens, response.usage.output_tokens)

    def events(self, content: object, **options: object) -> Iterator:
        with refusals():
            for event in self.send(content, stream=True, **options):
                if event.type == "error":
                    raise Refused(None, str(event))
                if event.type == "response.failed":
                    raise Refused(None, str(event.response.error))
                yield event

    def stream(self, text: str) -> Iterator[str]:
        ended = None
        for event in self.events(text):
            if event.type == "response.output_text.delta":
                yield event.delta
            elif event.type == "response.completed":
                ended = event.response
        assert ended is not None
        self.written = ended.usage and ended.usage.output_tokens

    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        options = {"tools": [self.tool(tool)], "tool_choice": "required"}
        if streamed:
            events = list(self.events(text, **options))
            (response,) = [event.response for event in events if event.type == "response.completed"]
        else:
            response = self.send(text, **options)
        items = response.output
        turn = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in items]
        (call,) = [item for item in turn if item["type"] == "function_call"]
        return Call(call["name"], json.loads(call["arguments"]), turn, call["call_id"])

    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        returned = {"type": "function_call_output", "call_id": call.id, "output": result}
        return self.send(text, *call.turn, returned, tools=[self.tool(tool)]).output_text

    def fill(self, text: str, schema: dict) -> dict:
        form = {"type": "json_schema", "name": "places", "schema": schema, "strict": True}
        return json.loads(self.send(text, text={"format": form}).output_text)
