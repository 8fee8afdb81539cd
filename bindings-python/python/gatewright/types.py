"""Types of requests and responses for annotations: `def ask(m: ChatMessageParam) -> ChatCompletion: …`.

At run time every response type is `gatewright.Record` and every request type is `dict`.
"""

from gatewright.generated.types import *
from gatewright.generated.types import __all__ as __all__
