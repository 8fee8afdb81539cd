"""The official SDKs of the four protocols, as their users write them."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

import anthropic
import openai
from google import genai
from google.genai import errors, types
from scenarios import Answer, Call, Client, Refused, Target, Tool

SYSTEM = "You are terse."


@contextmanager
def refusals(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        headers = getattr(getattr(error, "response", None), "headers", {})
        known = status if isinstance(status, int) else None
        raise Refused(known, str(error), headers.get("retry-after")) from error


def data_url(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


class OpenAi(Client):
    """What both protocols of this SDK share."""

    def __init__(self, target: Target, model: str) -> None:
        super().__init__(target, model)
        self.sdk = openai.OpenAI(base_url=f"{target.url}/v1", api_key=target.key, max_retries=0)


class OpenAiChat(OpenAi):
    name = "openai, chat"
    protocol = "chat"

    def send(self, text: str, *more: object, **options: object):
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}, *more]
        with refusals(openai.APIError):
            return self.sdk.chat.completions.create(model=self.model, messages=messages, **options)

    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        content = text
        if picture is not None:
            content = [
                {"type": "text", "text": text},
                {"type": "image_url", "image_url": {"url": data_url(picture)}},
            ]
        completion = self.send(content)
        assert completion.choices[0].finish_reason == "stop", completion
        usage = completion.usage
        return Answer(completion.choices[0].message.content, usage.prompt_tokens, usage.completion_tokens)

    def stream(self, text: str) -> Iterator[str]:
        with refusals(openai.APIError):
            ended, usage = None, None
            for chunk in self.send(text, stream=True, stream_options={"include_usage": True}):
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    ended = choice.finish_reason or ended
                    if choice.delta.content:
                        yield choice.delta.content
            assert ended == "stop", ended
        self.written = usage and usage.completion_tokens

    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        options = {"tools": [self.tool(tool)], "tool_choice": "required"}
        if streamed:
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
            with (
                refusals(openai.APIError),
                self.sdk.chat.completions.stream(model=self.model, messages=messages, **options) as stream,
            ):
                completion = stream.get_final_completion()
        else:
            completion = self.send(text, **options)
        message = completion.choices[0].message
        assert completion.choices[0].finish_reason == "tool_calls", completion
        (call,) = message.tool_calls
        return Call(call.function.name, json.loads(call.function.arguments), message, call.id)

    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        returned = {"role": "tool", "tool_call_id": call.id, "content": result}
        completion = self.send(text, call.turn, returned, tools=[self.tool(tool)])
        return completion.choices[0].message.content

    def fill(self, text: str, schema: dict) -> dict:
        form = {"type": "json_schema", "json_schema": {"name": "places", "schema": schema, "strict": True}}
        return json.loads(self.send(text, response_format=form).choices[0].message.content)

    def draw(self, text: str, size: str) -> bytes:
        with refusals(openai.APIError):
            drawn = self.sdk.images.generate(
                model=self.model, prompt=text, size=size, response_format="b64_json"
            )
        (picture,) = drawn.data
        return base64.b64decode(picture.b64_json)

    @staticmethod
    def tool(tool: Tool) -> dict:
        return {"type": "function", "function": vars(tool)}


class OpenAiResponses(OpenAi):
    name = "openai, responses"
    protocol = "responses"

    def send(self, content: object, *more: object, **options: object):
        items = [{"role": "user", "content": content}, *more]
        with refusals(openai.APIError):
            return self.sdk.responses.create(
                model=self.model, instructions=SYSTEM, input=items, store=False, **options
            )

    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        content = text
        if picture is not None:
            content = [
                {"type": "input_text", "text": text},
                {"type": "input_image", "image_url": data_url(picture), "detail": "auto"},
            ]
        response = self.send(content)
        assert response.status == "completed", response
        return Answer(response.output_text, response.usage.input_tokens, response.usage.output_tokens)

    def stream(self, text: str) -> Iterator[str]:
        with refusals(openai.APIError):
            ended = None
            for event in self.send(text, stream=True):
                if event.type == "response.output_text.delta":
                    yield event.delta
                elif event.type == "error":
                    raise Refused(None, event.message)
                elif event.type == "response.failed":
                    raise Refused(None, event.response.error.message)
                elif event.type == "response.completed":
                    ended = event.response
        self.written = ended.usage and ended.usage.output_tokens

    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        options = {"tools": [self.tool(tool)], "tool_choice": "required"}
        if streamed:
            items = [{"role": "user", "content": text}]
            with (
                refusals(openai.APIError),
                self.sdk.responses.stream(
                    model=self.model, instructions=SYSTEM, input=items, store=False, **options
                ) as stream,
            ):
                response = stream.get_final_response()
        else:
            response = self.send(text, **options)
        (call,) = [item for item in response.output if item.type == "function_call"]
        return Call(call.name, json.loads(call.arguments), response.output, call.call_id)

    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        returned = {"type": "function_call_output", "call_id": call.id, "output": result}
        return self.send(text, *call.turn, returned, tools=[self.tool(tool)]).output_text

    def fill(self, text: str, schema: dict) -> dict:
        form = {"type": "json_schema", "name": "places", "schema": schema, "strict": True}
        return json.loads(self.send(text, text={"format": form}).output_text)

    @staticmethod
    def tool(tool: Tool) -> dict:
        return {"type": "function", "strict": False, **vars(tool)}


class Anthropic(Client):
    name = "anthropic, messages"
    protocol = "messages"

    def __init__(self, target: Target, model: str) -> None:
        super().__init__(target, model)
        self.sdk = anthropic.Anthropic(base_url=target.url, api_key=target.key, max_retries=0)

    def options(self, content: object, *more: object, **options: object) -> dict:
        messages = [{"role": "user", "content": content}, *more]
        return {"model": self.model, "max_tokens": 1024, "system": SYSTEM, "messages": messages, **options}

    def send(self, content: object, *more: object, **options: object):
        with refusals(anthropic.APIError):
            return self.sdk.messages.create(**self.options(content, *more, **options))

    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        content = text
        if picture is not None:
            data = base64.b64encode(picture).decode()
            source = {"type": "base64", "media_type": "image/png", "data": data}
            content = [{"type": "text", "text": text}, {"type": "image", "source": source}]
        message = self.send(content)
        assert message.stop_reason == "end_turn", message
        return Answer(self.text(message), message.usage.input_tokens, message.usage.output_tokens)

    def stream(self, text: str) -> Iterator[str]:
        with refusals(anthropic.APIError), self.sdk.messages.stream(**self.options(text)) as stream:
            yield from stream.text_stream
            message = stream.get_final_message()
            assert message.stop_reason == "end_turn", message
        self.written = message.usage.output_tokens

    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        options = self.options(text, tools=[self.tool(tool)], tool_choice={"type": "any"})
        with refusals(anthropic.APIError):
            if streamed:
                with self.sdk.messages.stream(**options) as stream:
                    message = stream.get_final_message()
            else:
                message = self.sdk.messages.create(**options)
        assert message.stop_reason == "tool_use", message
        (call,) = [block for block in message.content if block.type == "tool_use"]
        return Call(call.name, call.input, {"role": "assistant", "content": message.content}, call.id)

    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        returned = {"type": "tool_result", "tool_use_id": call.id, "content": result}
        tools = [self.tool(tool)]
        return self.text(self.send(text, call.turn, {"role": "user", "content": [returned]}, tools=tools))

    def fill(self, text: str, schema: dict) -> dict:
        form = {"format": {"type": "json_schema", "schema": schema}}
        return json.loads(self.text(self.send(text, output_config=form)))

    @staticmethod
    def text(message) -> str:
        return "".join(block.text for block in message.content if block.type == "text")

    @staticmethod
    def tool(tool: Tool) -> dict:
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


class Genai(Client):
    name = "google-genai, native"
    protocol = "native"

    def __init__(self, target: Target, model: str) -> None:
        super().__init__(target, model)
        self.sdk = genai.Client(api_key=target.key, http_options=types.HttpOptions(base_url=target.url))

    @staticmethod
    def config(**options: object) -> types.GenerateContentConfig:
        off = types.AutomaticFunctionCallingConfig(disable=True)
        return types.GenerateContentConfig(
            system_instruction=SYSTEM, automatic_function_calling=off, **options
        )

    def send(self, contents: object, **options: object) -> types.GenerateContentResponse:
        with refusals(errors.APIError):
            return self.sdk.models.generate_content(
                model=self.model, contents=contents, config=self.config(**options)
            )

    def pieces(self, contents: object, **options: object) -> Iterator[types.GenerateContentResponse]:
        with refusals(errors.APIError):
            yield from self.sdk.models.generate_content_stream(
                model=self.model, contents=contents, config=self.config(**options)
            )

    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        parts = [types.Part(text=text)]
        if picture is not None:
            parts.append(types.Part.from_bytes(data=picture, mime_type="image/png"))
        answer = self.send([types.Content(role="user", parts=parts)])
        assert answer.candidates[0].finish_reason is types.FinishReason.STOP, answer
        usage = answer.usage_metadata
        return Answer(answer.text, usage.prompt_token_count, usage.candidates_token_count)

    def stream(self, text: str) -> Iterator[str]:
        last = None
        for last in self.pieces(text):
            if last.text:
                yield last.text
        assert last.candidates[0].finish_reason is types.FinishReason.STOP, last
        self.written = last.usage_metadata and last.usage_metadata.candidates_token_count

    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        mode = types.FunctionCallingConfig(mode="ANY")
        options = {
            "tools": [self.tool(tool)],
            "tool_config": types.ToolConfig(function_calling_config=mode),
        }
        answers = self.pieces(text, **options) if streamed else [self.send(text, **options)]
        candidates = [candidate for answer in answers for candidate in answer.candidates or []]
        parts = [part for each in candidates if each.content for part in each.content.parts or []]
        (call,) = [part.function_call for part in parts if part.function_call]
        return Call(call.name, call.args, types.Content(role="model", parts=parts), call.id)

    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        response = types.FunctionResponse(id=call.id, name=call.name, response={"output": result})
        contents = [
            types.Content(role="user", parts=[types.Part(text=text)]),
            call.turn,
            types.Content(role="user", parts=[types.Part(function_response=response)]),
        ]
        return self.send(contents, tools=[self.tool(tool)]).text

    def fill(self, text: str, schema: dict) -> dict:
        return json.loads(
            self.send(text, response_mime_type="application/json", response_json_schema=schema).text
        )

    @staticmethod
    def tool(tool: Tool) -> types.Tool:
        function = types.FunctionDeclaration(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
        )
        return types.Tool(function_declarations=[function])
