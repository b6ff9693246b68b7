"""The results of searches."""

import json


def found(text):
    """The names in the lists of a search, each once."""
    lists = json.loads(text)["found"]
    return list(dict.fromkeys(tool["name"] for need in lists for tool in need["tools"]))
