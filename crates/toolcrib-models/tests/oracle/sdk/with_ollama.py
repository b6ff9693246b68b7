"""`/api/chat` through the package `ollama`."""

import httpx
import ollama
import pydantic

ERRORS = (
    ollama.RequestError,
    ollama.ResponseError,
    httpx.HTTPError,
    pydantic.ValidationError,
    ConnectionError,
)


def describe(error):
    return {
        "class": type(error).__name__,
        "status": getattr(error, "status_code", None),
        "code": None,
        "retry_after": None,
        "message": str(error),
    }


def connect(base_url):
    return ollama.Client(
        host=base_url, headers={"authorization": "Bearer a-dummy-key"}, timeout=20
    )


class Conversation:
    def __init__(self, client, case, job):
        self.client = client
        self.options = {"model": job["model"], "options": {"num_predict": job["max_tokens"]}}
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
        match case.get("settings", {}):
            case {"temperature": temperature}:
                self.options["options"]["temperature"] = temperature
            case {"reasoning": effort}:
                self.options["think"] = effort
        self.messages = []
        if case["system"]:
            self.messages.append({"role": "system", "content": case["system"]})

    def user(self, text):
        self.messages.append({"role": "user", "content": text})

    def assistant(self, text, calls):
        message = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [
                {"function": {"name": call["name"], "arguments": call["arguments"]}}
                for call in calls
            ]
        self.messages.append(message)

    def results(self, results):
        for result in results:
            message = {"role": "tool", "content": result.text, "tool_name": result.call["name"]}
            if result.images:
                message["images"] = [image["data"] for image in result.images]
            self.messages.append(message)

    def ask(self):
        text = reasoning = ""
        calls = []
        last = None
        for last in self.client.chat(messages=self.messages, stream=True, **self.options):
            text += last.message.content or ""
            reasoning += last.message.thinking or ""
            calls.extend(last.message.tool_calls or [])
        self.messages.append(
            ollama.Message(
                role="assistant",
                content=text,
                thinking=reasoning or None,
                tool_calls=calls or None,
            )
        )
        return {
            "text": text,
            "reasoning": reasoning,
            "calls": [
                {
                    "id": None,
                    "name": call.function.name,
                    "arguments": call.function.arguments,
                }
                for call in calls
            ],
            "stop": last.done_reason if last else None,
            "usage": {
                "input": (last and last.prompt_eval_count) or 0,
                "cached": 0,
                "output": (last and last.eval_count) or 0,
            },
        }
