"""Ask the head of a running cluster one question, and print the answer.

python tools/ask.py "$(clusterctl status --json)" "What is a computer cluster?"
"""

from __future__ import annotations

import json
import shlex
import sys

import httpx

TIMEOUT_S = 120


def main() -> None:
    """Ask through the OpenAI-compatible API; shows the same request as a curl command first."""
    status, question = sys.argv[1:]
    url = f"{json.loads(status)['head']['url']}/v1/chat/completions"
    body = json.dumps({"messages": [{"role": "user", "content": question}], "max_tokens": 64, "temperature": 0})
    headers = {"Content-Type": "application/json"}
    print(f"\n$ curl {url} -H 'Content-Type: application/json' -d {shlex.quote(body)}")
    reply = httpx.post(url, content=body, headers=headers, timeout=TIMEOUT_S).raise_for_status()
    print(reply.json()["choices"][0]["message"]["content"])


if __name__ == "__main__":
    main()
