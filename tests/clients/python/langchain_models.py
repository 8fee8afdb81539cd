"""The chat models of langchain, one per protocol, through the interface that they share."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

import anthropic
import openai
from google.genai import errors
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai.chat_models import ChatGoogleGenerativeAIError
from langchain_openai import ChatOpenAI
from scenarios import Answer, Call, Client, Refused, Tool

ERRORS = (openai.APIError, anthropic.APIError, errors.APIError, ChatGoogleGenerativeAIError, ValueError)
"""What langchain raises; the last is a failed response of the responses protocol."""


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        cause = error if hasattr(error, "status_code") else error.__cause__
        status = getattr(cause, "status_code", None) or getattr(cause, "code", None)
        headers = getattr(getattr(cause, "response", None), "headers", {})
        known = status if isinstance(status, int) else None
        raise Refused(known, str(error), headers.get("retry-after")) from error


class LangChain(Client):
    """The parts that do not depend on the protocol."""

    def model_of(self):
        raise NotImplementedError

    @staticmethod
    def prompt(text: str, picture: bytes | None = None) -> list:
        content: list | str = text
        if picture is not None:
            data = base64.b64encode(picture).decode()
            image = {"type": "image", "base64": data, "mime_type": "image/png"}
            content = [{"type": "text", "text": text}, image]
        return [SystemMessage("You are terse."), HumanMessage(content)]

    @staticmethod
    def tool(tool: Tool) -> dict:
        return {"type": "function", "function": vars(tool)}

    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        with refusals():
            message = self.model_of().invoke(self.prompt(text, picture))
        usage = message.usage_metadata
        return Answer(message.text, usage["input_tokens"], usage["output_tokens"])

    def stream(self, text: str) -> Iterator[str]:
        with refusals():
            whole = None
            for chunk in self.model_of().stream(self.prompt(text)):
                whole = chunk if whole is None else whole + chunk
                if chunk.text:
                    yield chunk.text
        self.written = (whole.usage_metadata or {}).get("output_tokens")

    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        model = self.model_of().bind_tools([self.tool(tool)], tool_choice="any")
        with refusals():
            if streamed:
                message = None
                for chunk in model.stream(self.prompt(text)):
                    message = chunk if message is None else message + chunk
            else:
                message = model.invoke(self.prompt(text))
        (call,) = message.tool_calls
        return Call(call["name"], call["args"], message, call["id"])

    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        returned = ToolMessage(result, tool_call_id=call.id, name=call.name)
        with refusals():
            model = self.model_of().bind_tools([self.tool(tool)])
            return model.invoke([*self.prompt(text), call.turn, returned]).text

    def fill(self, text: str, schema: dict) -> dict:
        titled = {"title": "places", "description": "Places and days.", **schema}
        with refusals():
            model = self.model_of().with_structured_output(titled, method="json_schema")
            return model.invoke(self.prompt(text))


class LangChainChat(LangChain):
    name = "langchain-openai, chat"
    protocol = "chat"

    def model_of(self) -> ChatOpenAI:
        url = f"{self.target.url}/v1"
        return ChatOpenAI(
            model=self.model, base_url=url, api_key=self.target.key, max_retries=0, stream_usage=True
        )


class LangChainResponses(LangChain):
    name = "langchain-openai, responses"
    protocol = "responses"

    def model_of(self) -> ChatOpenAI:
        url = f"{self.target.url}/v1"
        return ChatOpenAI(
            model=self.model, base_url=url, api_key=self.target.key, max_retries=0, use_responses_api=True
        )


class LangChainMessages(LangChain):
    name = "langchain-anthropic, messages"
    protocol = "messages"

    def model_of(self) -> ChatAnthropic:
        return ChatAnthropic(
            model=self.model,
            base_url=self.target.url,
            api_key=self.target.key,
            max_retries=0,
            max_tokens=1024,
        )


class LangChainNative(LangChain):
    name = "langchain-google-genai, native"
    protocol = "native"

    def model_of(self) -> ChatGoogleGenerativeAI:
        return ChatGoogleGenerativeAI(
            model=self.model, base_url=self.target.url, api_key=self.target.key, max_retries=0
        )
