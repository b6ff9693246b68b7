"""Asks one vendor's SDK to hold conversations, and says what it makes of the answers.

Started as `python -IB sdk API BASE_URL`. Each line of the input is a job

    {"case": CASE, "model": NAME, "max_tokens": N}

and is answered by one line, an array with what came of each request that the case makes:

    {"text", "reasoning", "calls": [{"id", "name", "arguments"}], "stop", "usage": {"input", "cached", "output"}}
    {"error": {"class", "status", "code", "retry_after", "message"}}

A conversation ends with its first error. What a job cannot do at all, such as a case without
messages, ends the program.
"""

import importlib
import json
import sys
from pathlib import Path

APIS = ("anthropic", "gemini", "ollama", "openai", "responses")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in APIS:
        sys.exit(f"usage: python -IB sdk {'|'.join(APIS)} BASE_URL")
    # Isolated mode (-I) leaves out this folder, and with it modules that shadow the SDKs' own.
    sys.path.append(str(Path(__file__).parent))
    note = importlib.import_module("note")
    vendor = importlib.import_module(f"with_{sys.argv[1]}")
    client = vendor.connect(sys.argv[2])
    for line in sys.stdin:
        job = json.loads(line)
        case = job["case"]
        if sys.argv[1] != "responses":
            case["messages"] = list(note.alternating(case["messages"]))
        print(json.dumps(hold(vendor, vendor.Conversation(client, case, job), case)), flush=True)


def hold(vendor, conversation, case):
    """Holds the conversation of a case."""
    outcomes = []
    calls = []
    results = []

    def ask():
        nonlocal calls
        try:
            outcome = conversation.ask()
        except vendor.ERRORS as error:
            outcomes.append({"error": vendor.describe(error)})
            return False
        calls = outcome["calls"]
        outcomes.append(outcome)
        return True

    def give_results():
        if results:
            conversation.results(list(results))
            results.clear()

    for message in case["messages"]:
        match message:
            case {"role": "tool", "of": position, **rest}:
                results.append(Result(calls[position], **rest))
                continue
        give_results()
        match message:
            case {"role": "user", "text": text}:
                conversation.user(text)
            case {"role": "assistant", "heard": True}:
                if not ask():
                    return outcomes
            case {"role": "assistant", "text": text, **rest}:
                calls = rest.get("calls", [])
                conversation.assistant(text, calls)
    give_results()
    ask()
    return outcomes


class Result:
    """What a tool gave back."""

    def __init__(self, call, text, role="tool", is_error=False, images=()):
        self.call = call
        self.text = text
        self.is_error = is_error
        self.images = images


main()
