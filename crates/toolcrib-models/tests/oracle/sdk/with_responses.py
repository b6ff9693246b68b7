"""Responses through the package `openai`."""

import openai
from found import found
from with_openai import connect, describe, read, written

__all__ = ["ERRORS", "Conversation", "connect", "describe"]


class Failed(Exception):
    """An answer that failed after it had begun."""

    def __init__(self, error):
        super().__init__(error.message if error else "")
        self.code = error.code if error else None


ERRORS = (openai.OpenAIError, Failed)


def declared(tool):
    return {
        "type": "function",
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["input_schema"],
        "strict": False,
    }


def called(item):
    if item.type == "tool_search_call":
        return {"id": item.call_id, "name": "search_tools", "arguments": item.arguments}
    return {"id": item.call_id, "name": item.name, "arguments": read(item.arguments)}


class Conversation:
    def __init__(self, client, case, job):
        self.client = client
        self.options = {
            "model": job["model"],
            "max_output_tokens": job["max_tokens"],
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if case["system"]:
            self.options["instructions"] = case["system"]
        if case["tools"]:
            self.options["tools"] = [declared(tool) for tool in case["tools"]]
        self.deferred = {tool["name"]: tool for tool in case.get("deferred", [])}
        if self.deferred:
            # The client's own search, after which found tools are called by their names.
            self.options["tools"] = [
                {
                    "type": "tool_search",
                    "execution": "client",
                    "description": tool["description"],
                    "parameters": tool["parameters"],
                }
                if tool["name"] == "search_tools"
                else tool
                for tool in self.options["tools"]
                if tool["name"] != "call_tool"
            ]
        match case.get("tool_choice"):
            case {"tool": name}:
                self.options["tool_choice"] = {"type": "function", "name": name}
            case str(choice):
                self.options["tool_choice"] = choice
        match case.get("settings", {}):
            case {"temperature": temperature}:
                self.options["temperature"] = temperature
            case {"reasoning": effort}:
                self.options["reasoning"] = {"effort": effort}
        self.input = []

    def user(self, text):
        self.input.append({"role": "user", "content": text})

    def assistant(self, text, calls):
        if text:
            self.input.append({"role": "assistant", "content": text})
        self.input.extend(
            {
                "type": "function_call",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": written(call["arguments"]),
            }
            for call in calls
        )

    def results(self, results):
        for result in results:
            if self.deferred and result.call["name"] == "search_tools":
                tools = [
                    {**declared(self.deferred[name]), "defer_loading": True}
                    for name in found(result.text)
                ]
                self.input.append(
                    {
                        "type": "tool_search_output",
                        "call_id": result.call["id"],
                        "execution": "client",
                        "status": "completed",
                        "tools": tools,
                    }
                )
                continue
            output = result.text
            if result.images:
                output = [{"type": "input_text", "text": result.text}] + [
                    {
                        "type": "input_image",
                        "image_url": f"data:{image['media_type']};base64,{image['data']}",
                    }
                    for image in result.images
                ]
            self.input.append(
                {"type": "function_call_output", "call_id": result.call["id"], "output": output}
            )

    def ask(self):
        response = None
        for event in self.client.responses.create(input=self.input, stream=True, **self.options):
            match event.type:
                case "error":
                    raise Failed(event)
                case "response.failed":
                    raise Failed(event.response.error)
                case "response.completed" | "response.incomplete":
                    response = event.response
        # What is stored nowhere goes back as it came.
        self.input += response.output
        messages = [item for item in response.output if item.type == "message"]
        parts = [part for message in messages for part in message.content]
        thoughts = [item for item in response.output if item.type == "reasoning"]
        summaries = [part.text for item in thoughts for part in item.summary]
        usage = response.usage
        details = response.incomplete_details
        return {
            "text": response.output_text,
            "refusal": "".join(p.refusal for p in parts if p.type == "refusal") or None,
            "reasoning": "\n\n".join(summaries),
            "calls": [
                called(item)
                for item in response.output
                if item.type in ("function_call", "tool_search_call")
            ],
            "stop": details.reason if details else response.status,
            "usage": {
                "input": usage.input_tokens,
                "cached": usage.input_tokens_details.cached_tokens,
                "output": usage.output_tokens,
            },
        }
