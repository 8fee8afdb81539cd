"""The arguments of methods that are built on `create`: those of `create`, without those that such a method
gives another meaning. A test compares them with the generated ones."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import Required, TypedDict

from gatewright import types
from gatewright._engine import NotGiven, Record
from gatewright.generated.options import CallOptions

class ChatBase(CallOptions, total=False):
    """Without tools, response_format and stream."""

    model: Required[str]
    messages: Required[Sequence[types.ChatMessageParam | Record]]
    temperature: float | None | NotGiven
    max_tokens: int | None | NotGiven
    top_p: float | None | NotGiven
    frequency_penalty: float | None | NotGiven
    presence_penalty: float | None | NotGiven
    stop: str | Sequence[str] | None | NotGiven
    n: int | None | NotGiven
    max_completion_tokens: int | None | NotGiven
    stream_options: types.ChatStreamOptionsParam | Record | None | NotGiven
    tool_choice: Literal["none", "auto", "required"] | str | types.ChatToolChoiceParam | None | NotGiven
    parallel_tool_calls: bool | None | NotGiven
    functions: Sequence[types.ChatFunctionParam | Record] | None | NotGiven
    function_call: Literal["none", "auto"] | str | types.ChatToolNameParam | Record | None | NotGiven
    seed: int | None | NotGiven
    user: str | None | NotGiven
    logprobs: bool | None | NotGiven
    top_logprobs: int | None | NotGiven
    logit_bias: Mapping[str, float] | None | NotGiven
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | str | None | NotGiven
    metadata: Mapping[str, str] | None | NotGiven
    store: bool | None | NotGiven
    service_tier: str | None | NotGiven

class ChatArguments(ChatBase, total=False):
    """Without response_format and stream."""

    tools: Sequence[types.ChatToolParam] | None | NotGiven

class TextOptions(TypedDict, total=False):
    """`types.ResponseTextOptionsParam`, whose format may also be a type."""

    format: types.ResponseTextFormatParam | type[Any] | None
    verbosity: Literal["low", "medium", "high"] | str | None

class ResponseBase(CallOptions, total=False):
    """Without tools and stream."""

    model: Required[str]
    input: Required[str | Sequence[types.InputItemParam]]
    instructions: str | None | NotGiven
    max_output_tokens: int | None | NotGiven
    tool_choice: Literal["none", "auto", "required"] | str | types.ResponseToolChoiceParam | None | NotGiven
    parallel_tool_calls: bool | None | NotGiven
    previous_response_id: str | None | NotGiven
    store: bool | None | NotGiven
    temperature: float | None | NotGiven
    top_p: float | None | NotGiven
    text: types.ResponseTextOptionsParam | TextOptions | Record | None | NotGiven
    reasoning: types.ResponseReasoningOptionsParam | Record | None | NotGiven
    truncation: Literal["auto", "disabled"] | str | None | NotGiven
    include: Sequence[str] | None | NotGiven
    metadata: Mapping[str, str] | None | NotGiven
    prompt_cache_key: str | None | NotGiven
    service_tier: str | None | NotGiven
    user: str | None | NotGiven
    safety_identifier: str | None | NotGiven
    max_tool_calls: int | None | NotGiven
    top_logprobs: int | None | NotGiven
    background: bool | None | NotGiven

class ResponseArguments(ResponseBase, total=False):
    """Without stream."""

    tools: Sequence[types.ResponseToolParam] | None | NotGiven

class MessageLoopBase(CallOptions, total=False):
    """Without tools, output_format and stream."""

    model: Required[str]
    max_tokens: Required[int]
    messages: Required[Sequence[types.MessageTurnParam | Record]]
    system: str | Sequence[types.MessageTextBlockParam | Record] | None | NotGiven
    stop_sequences: Sequence[str] | None | NotGiven
    temperature: float | None | NotGiven
    top_p: float | None | NotGiven
    top_k: int | None | NotGiven
    tool_choice: types.MessageToolChoiceParam | None | NotGiven
    thinking: types.MessageThinkingParam | None | NotGiven
    metadata: types.MessageMetadataParam | Record | None | NotGiven
    service_tier: Literal["auto", "standard_only"] | str | None | NotGiven
    output_config: types.MessageOutputConfigParam | Record | None | NotGiven
    cache_control: types.MessageCacheControlParam | Record | None | NotGiven

class MessageBase(MessageLoopBase, total=False):
    """Without output_format and stream."""

    tools: Sequence[types.MessageToolParam] | None | NotGiven

class MessageArguments(MessageBase, total=False):
    """Without stream."""

    output_format: types.MessageOutputFormatParam | None | NotGiven

class NativeBase(CallOptions, total=False):
    """Without the model and tools."""

    contents: Required[Sequence[types.NativeContentParam | Record]]
    systemInstruction: types.NativeContentParam | Record | None | NotGiven
    generationConfig: types.NativeGenerationConfigParam | Record | None | NotGiven
    toolConfig: types.NativeToolConfigParam | Record | None | NotGiven
    safetySettings: Sequence[Mapping[str, object]] | None | NotGiven
    cachedContent: str | None | NotGiven

class NativeArguments(NativeBase, total=False):
    """All but the model."""

    tools: Sequence[types.NativeToolParam | Record] | None | NotGiven
