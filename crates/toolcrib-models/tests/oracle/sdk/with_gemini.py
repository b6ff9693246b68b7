"""`streamGenerateContent` through the package `google-genai`."""

from base64 import b64decode

import httpx
from google import genai
from google.genai import errors, types

ERRORS = (errors.APIError, errors.UnknownApiResponseError, httpx.HTTPError)

MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def describe(error):
    details = getattr(error, "details", None)
    details = details["error"].get("details", []) if isinstance(details, dict) else []
    reasons = [detail["reason"] for detail in details if "reason" in detail]
    waits = [detail["retryDelay"] for detail in details if "retryDelay" in detail]
    return {
        "class": type(error).__name__,
        "status": getattr(error, "code", None),
        "code": reasons[0] if reasons else getattr(error, "status", None),
        "retry_after": waits[0].removesuffix("s") if waits else None,
        "message": str(error),
    }


def connect(base_url):
    return genai.Client(
        api_key="a-dummy-key",
        vertexai=False,
        http_options=types.HttpOptions(
            base_url=base_url,
            timeout=20_000,
            retry_options=types.HttpRetryOptions(attempts=1),
        ),
    )


def in_one(parts):
    """Parts as they stood before they were streamed: texts that go on are one."""
    whole = []
    for part in parts:
        last = whole[-1] if whole else None
        if part.text == "" and not part.thought_signature:
            continue
        if part.text and last and last.text and last.thought == part.thought:
            if not last.thought_signature and not part.thought_signature:
                whole[-1] = types.Part(text=last.text + part.text, thought=part.thought)
                continue
        whole.append(part)
    return whole


class Conversation:
    def __init__(self, client, case, job):
        self.client = client
        self.model = job["model"]
        self.config = types.GenerateContentConfig(
            max_output_tokens=job["max_tokens"],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        if case["system"]:
            self.config.system_instruction = case["system"]
        if case["tools"]:
            self.config.tools = [
                types.Tool(
                    function_declarations=[
                        types.FunctionDeclaration(
                            name=tool["name"],
                            description=tool["description"],
                            parameters_json_schema=tool["input_schema"],
                        )
                        for tool in case["tools"]
                    ]
                )
            ]
        match case.get("tool_choice"):
            case {"tool": name}:
                self.choose(mode="ANY", allowed_function_names=[name])
            case str(choice):
                self.choose(mode=MODES[choice])
        match case.get("settings", {}):
            case {"temperature": temperature}:
                self.config.temperature = temperature
            case {"reasoning": effort}:
                # Models of the series 2.5 measure in tokens what later ones do in levels.
                if self.model.startswith("gemini-2.5-"):
                    how_much = {"thinking_budget": 1024}
                else:
                    how_much = {"thinking_level": effort.upper()}
                self.config.thinking_config = types.ThinkingConfig(
                    include_thoughts=True, **how_much
                )
        self.contents = []

    def choose(self, **options):
        self.config.tool_config = types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(**options)
        )

    def user(self, text):
        self.contents.append(types.Content(role="user", parts=[types.Part(text=text)]))

    def assistant(self, text, calls):
        parts = [types.Part(text=text)] if text else []
        for call in calls:
            parts.append(
                types.Part(
                    function_call=types.FunctionCall(
                        id=call["id"], name=call["name"], args=call["arguments"]
                    )
                )
            )
        self.contents.append(types.Content(role="model", parts=parts))

    def results(self, results):
        parts = []
        for result in results:
            response = types.FunctionResponse(
                id=result.call["id"],
                name=result.call["name"],
                response={"error" if result.is_error else "output": result.text},
            )
            if result.images:
                response.parts = [
                    types.FunctionResponsePart(
                        inline_data=types.FunctionResponseBlob(
                            mime_type=image["media_type"], data=b64decode(image["data"])
                        )
                    )
                    for image in result.images
                ]
            parts.append(types.Part(function_response=response))
        self.contents.append(types.Content(role="user", parts=parts))

    def ask(self):
        parts = []
        stop = usage = blocked = None
        for chunk in self.client.models.generate_content_stream(
            model=self.model, contents=self.contents, config=self.config
        ):
            usage = chunk.usage_metadata or usage
            if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
                blocked = chunk.prompt_feedback.block_reason.value
            for candidate in chunk.candidates or []:
                if candidate.content and candidate.content.parts:
                    parts.extend(candidate.content.parts)
                if candidate.finish_reason:
                    stop = candidate.finish_reason.value
        self.contents.append(types.Content(role="model", parts=in_one(parts)))
        return {
            "text": "".join(part.text for part in parts if part.text and not part.thought),
            "reasoning": "".join(part.text for part in parts if part.text and part.thought),
            "calls": [
                {
                    "id": part.function_call.id,
                    "name": part.function_call.name,
                    "arguments": part.function_call.args or {},
                }
                for part in parts
                if part.function_call
            ],
            "stop": stop,
            "blocked": blocked,
            "usage": {
                "input": usage.prompt_token_count or 0 if usage else 0,
                "cached": usage.cached_content_token_count or 0 if usage else 0,
                "output": (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
                if usage
                else 0,
            },
        }
