"""Chat Completions through the package `openai`."""

import json

import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

from note import NO_ANSWER

ERRORS = (openai.OpenAIError,)


def describe(error):
    response = getattr(error, "response", None)
    return {
        "class": type(error).__name__,
        "status": getattr(error, "status_code", None),
        "code": getattr(error, "code", None) or getattr(error, "type", None),
        "retry_after": response.headers.get("retry-after") if response else None,
        "message": str(error),
    }


def connect(base_url):
    return openai.OpenAI(api_key="a-dummy-key", base_url=base_url, max_retries=0, timeout=20)


def written(arguments):
    """Arguments as a model writes them, or as it wrote them."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def read(arguments):
    """Arguments as data; the text where it is not JSON."""
    try:
        return json.loads(arguments or "{}")
    except json.JSONDecodeError:
        return arguments


class Conversation:
    def __init__(self, client, case, job):
        self.client = client
        self.options = {
            "model": job["model"],
            "max_completion_tokens": job["max_tokens"],
            "stream_options": {"include_usage": True},
        }
        if case["tools"]:
            self.options["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool["name"],
                        "description": tool["description"],
                        "parameters": tool["input_schema"],
                    },
                }
                for tool in case["tools"]
            ]
        match case.get("tool_choice"):
            case {"tool": name}:
                self.options["tool_choice"] = {"type": "function", "function": {"name": name}}
            case str(choice):
                self.options["tool_choice"] = choice
        self.shows_images = case.get("settings", {}).get("result_blocks", False)
        match case.get("settings", {}):
            case {"temperature": temperature}:
                self.options["temperature"] = temperature
            case {"reasoning": effort}:
                self.options["reasoning_effort"] = effort
        self.messages = []
        if case["system"]:
            self.messages.append({"role": "system", "content": case["system"]})

    def user(self, text):
        self.messages.append({"role": "user", "content": text})

    def assistant(self, text, calls):
        message = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {
                        "name": call["name"],
                        "arguments": written(call["arguments"]),
                    },
                }
                for call in calls
            ]
        self.messages.append(message)

    def results(self, results):
        for result in results:
            self.messages.append(
                {"role": "tool", "tool_call_id": result.call["id"], "content": result.text}
            )
        # A tool's message holds text only, so what a tool shows comes as the user's, if at all.
        shown = [image for result in results for image in result.images]
        if shown and self.shows_images:
            # The calls follow a message of the user, so a note of ours is between the two.
            self.assistant(NO_ANSWER, [])
            self.messages.append(
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "image_url",
                            "image_url": {
                                "url": f"data:{image['media_type']};base64,{image['data']}"
                            },
                        }
                        for image in shown
                    ],
                }
            )

    def ask(self):
        state = ChatCompletionStreamState()
        stream = self.client.chat.completions.create(
            messages=self.messages, stream=True, **self.options
        )
        for chunk in stream:
            state.handle_chunk(chunk)
        completion = state.current_completion_snapshot
        choice = completion.choices[0]
        message = choice.message
        extra = message.model_extra or {}
        calls = [
            {
                "id": call.id,
                "name": call.function.name,
                "arguments": call.function.arguments,
            }
            for call in message.tool_calls or []
        ]
        self.assistant(message.content, calls)
        usage = completion.usage
        details = usage and usage.prompt_tokens_details
        return {
            "text": message.content or "",
            "refusal": message.refusal,
            "reasoning": extra.get("reasoning_content") or extra.get("reasoning") or "",
            "calls": [{**call, "arguments": read(call["arguments"])} for call in calls],
            "stop": choice.finish_reason,
            "usage": {
                "input": usage.prompt_tokens if usage else 0,
                "cached": (details.cached_tokens if details else 0) or 0,
                "output": usage.completion_tokens if usage else 0,
            },
        }
