"""Messages through the package `anthropic`."""

import anthropic
from found import found

ERRORS = (anthropic.AnthropicError,)

# What is the same from one request to the next is cached up to here.
BREAKPOINT = {"type": "ephemeral"}


def describe(error):
    body = getattr(error, "body", None)
    response = getattr(error, "response", None)
    return {
        "class": type(error).__name__,
        "status": getattr(error, "status_code", None),
        "code": body["error"]["type"] if isinstance(body, dict) else None,
        "retry_after": response.headers.get("retry-after") if response else None,
        "message": str(error),
    }


def connect(base_url):
    return anthropic.Anthropic(api_key="a-dummy-key", base_url=base_url, max_retries=0, timeout=20)


def with_breakpoints(messages):
    """The conversation is cached up to its end, and is found up to where it ended before."""
    messages = [dict(message) for message in messages]
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        *first, last = message["content"]
        message["content"] = [*first, {**last, "cache_control": BREAKPOINT}]
    return messages


class Conversation:
    def __init__(self, client, case, job):
        self.client = client
        self.options = {"model": job["model"], "max_tokens": job["max_tokens"]}
        if case["system"]:
            self.options["system"] = [
                {"type": "text", "text": case["system"], "cache_control": BREAKPOINT}
            ]
        if case["tools"]:
            self.options["tools"] = [
                {
                    "name": tool["name"],
                    "description": tool["description"],
                    "input_schema": tool["input_schema"],
                }
                for tool in case["tools"]
            ]
            if "deferred" in case:
                # The vendor loads found tools, so they are called by their names.
                self.options["tools"] = [
                    tool for tool in self.options["tools"] if tool["name"] != "call_tool"
                ]
            self.options["tools"][-1]["cache_control"] = BREAKPOINT
        self.deferred = {tool["name"]: tool for tool in case.get("deferred", [])}
        match case.get("tool_choice"):
            case {"tool": name}:
                self.options["tool_choice"] = {"type": "tool", "name": name}
            case "required":
                self.options["tool_choice"] = {"type": "any"}
            case str(choice):
                self.options["tool_choice"] = {"type": choice}
        # There is no temperature in the version of the API that this SDK speaks.
        match case.get("settings", {}):
            case {"reasoning": effort}:
                self.options["thinking"] = {"type": "adaptive", "display": "summarized"}
                self.options["output_config"] = {"effort": effort}
        self.messages = []

    def user(self, text):
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def assistant(self, text, calls):
        content = [{"type": "text", "text": text}] if text else []
        for call in calls:
            content.append(
                {
                    "type": "tool_use",
                    "id": call["id"],
                    "name": call["name"],
                    "input": call["arguments"],
                }
            )
        self.messages.append({"role": "assistant", "content": content})

    def results(self, results):
        content = []
        for result in results:
            if self.deferred and result.call["name"] == "search_tools":
                content.append(self.references(result))
                continue
            parts = [{"type": "text", "text": result.text}]
            for image in result.images:
                parts.append(
                    {
                        "type": "image",
                        "source": {
                            "type": "base64",
                            "media_type": image["media_type"],
                            "data": image["data"],
                        },
                    }
                )
            block = {"type": "tool_result", "tool_use_id": result.call["id"], "content": parts}
            if result.is_error:
                block["is_error"] = True
            content.append(block)
        self.messages.append({"role": "user", "content": content})

    def references(self, result):
        names = found(result.text)
        for name in names:
            tool = {**self.deferred[name], "defer_loading": True}
            if tool not in self.options["tools"]:
                self.options["tools"].append(tool)
        return {
            "type": "tool_result",
            "tool_use_id": result.call["id"],
            "content": [{"type": "tool_reference", "tool_name": name} for name in names],
        }

    def ask(self):
        messages = with_breakpoints(self.messages)
        with self.client.messages.stream(messages=messages, **self.options) as stream:
            message = stream.get_final_message()
        self.messages.append({"role": "assistant", "content": message.content})
        usage = message.usage
        cached = usage.cache_read_input_tokens or 0
        return {
            "text": "".join(block.text for block in message.content if block.type == "text"),
            "reasoning": "".join(
                block.thinking for block in message.content if block.type == "thinking"
            ),
            "calls": [
                {"id": block.id, "name": block.name, "arguments": block.input}
                for block in message.content
                if block.type == "tool_use"
            ],
            "stop": message.stop_reason,
            "usage": {
                "input": usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0),
                "cached": cached,
                "output": usage.output_tokens,
            },
        }
