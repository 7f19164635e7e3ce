"""A model on the chat wire that refuses what is longer than its window, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BYTES_PER_TOKEN = 3.9
SUMMING_UP = "You sum up"


class WindowModel:
    """Counts tokens by bytes; `answer` gives the words or the tool call for a request, or breaks it off."""

    def __init__(
        self, window_tokens: int, answer: Callable[[dict[str, Any]], object], *, is_quiet: bool = False
    ) -> None:
        self.window_tokens = window_tokens
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.refused = 0
        self.largest = 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, kind, sent = model.reply(body)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def do_GET(self) -> None:
                sent = b'{"data": [{"id": "scripted"}]}'
                self.send_response(200)
                self.send_header("content-length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                if not is_quiet:  # an answer that breaks on purpose is no news
                    super().handle_error(request, client_address)

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, body: dict[str, Any]) -> tuple[int, str, bytes]:
        """Status, kind and bytes of the answer."""
        said = json.dumps([body["messages"], body.get("tools", [])], ensure_ascii=False).encode()
        tokens = int(len(said) / BYTES_PER_TOKEN)
        if tokens > self.window_tokens:
            self.refused += 1
            error = {"message": "maximum context length exceeded", "code": "context_length_exceeded"}
            return 400, "application/json", json.dumps({"error": error}).encode()
        self.largest = max(self.largest, tokens)
        self.asked.append(body)
        answer = self.answer(body)
        delta: dict[str, Any] = {"content": answer}
        reason = "stop"
        if isinstance(answer, dict):
            call = {"index": 0, "id": f"call_{len(self.asked)}", "type": "function", "function": answer}
            delta, reason = {"tool_calls": [call]}, "tool_calls"
        usage = {"prompt_tokens": tokens, "completion_tokens": 20}
        events = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": usage},
        ]
        sent = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        return 200, "text/event-stream", sent + b"data: [DONE]\n\n"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def is_summing_up(body: dict[str, Any]) -> bool:
    """Whether a request asks for a summary."""
    first = body["messages"][0]
    return str(first["content"]).startswith(SUMMING_UP)
