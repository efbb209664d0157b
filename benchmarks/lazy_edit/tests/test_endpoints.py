"""Services at a local server: the requests that go out have the shapes that their makers write."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from lazy_edit_bench.judge import judge
from lazy_edit_bench.speed import measure
from lazy_edit_bench.systems.endpoints import ENDPOINTS, ApplyService, Endpoint, HttpSystem
from lazy_edit_bench.task import BenchError, Task

ORIGINAL, RIGHT = "a = 1\nb = 2\n", "a = 1\nb = 5\n"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def _task(dialect="markers", **more):
    update = "# ... existing code ...\nb = 5\n"
    if dialect == "hashline":
        update = '[{"op": "replace", "pos": "2:0000", "lines": ["b = 5"]}]'
    fields = {"id": "t", "language": "python", "kind": "replace", "treat": "apply", "path": "a.py"}
    fields |= {"instruction": "I set b to 5.", "original": ORIGINAL, "update": update}
    return Task(**{**fields, "results": (RIGHT,), "dialect": dialect, **more})


@pytest.fixture
def service():
    """Answers each request with the next of `replies`, and keeps what it got in `requests`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append((self.path, self.headers.get("Authorization"), body))
            status, headers, reply = server.replies.pop(0)
            content = json.dumps(reply).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.replies = [], []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _chat_reply(content):
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": USAGE}


def test_morph(service):
    service.replies.append((200, {}, _chat_reply(RIGHT)))
    system = HttpSystem("morph", Endpoint(url=service.url, model="morph-v3-large", key="sk-1"))
    answer = system.answer(_task())
    path, key, body = service.requests[0]
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer sk-1", "morph-v3-large")
    assert body["messages"] == [
        {
            "role": "user",
            "content": f"<instruction>I set b to 5.</instruction>\n<code>{ORIGINAL}</code>\n"
            "<update># ... existing code ...\nb = 5\n</update>",
        }
    ]
    assert judge(_task(), answer).outcome == "right"
    assert (answer.tokens_in, answer.tokens_out) == (11, 7)


def test_relace(service):
    service.replies.append((200, {}, {"mergedCode": RIGHT, "usage": USAGE}))
    answer = HttpSystem("relace", Endpoint(url=service.url)).answer(_task())
    path, key, body = service.requests[0]
    assert (path, key) == ("/v1/code/apply", None)
    assert body["initial_code"] == ORIGINAL
    assert body["edit_snippet"].endswith("b = 5\n")
    assert judge(_task(), answer).outcome == "right"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("chat-kortix", f"<updated-code>\n{RIGHT}</updated-code>"),
        ("chat-rewrite", f"<new>\n{RIGHT}</new>"),
        ("chat-search-replace", "<<<<<<< SEARCH\nb = 2\n=======\nb = 5\n>>>>>>> REPLACE"),
        ("chat-morph", RIGHT),
    ],
)
def test_prompts_of_models(kind, content, service):
    service.replies.append((200, {}, _chat_reply(content)))
    answer = HttpSystem(kind, Endpoint(url=f"{service.url}/v1", model="m")).answer(_task())
    assert service.requests[0][0] == "/v1/chat/completions"
    assert ORIGINAL in service.requests[0][2]["messages"][-1]["content"]
    assert judge(_task(), answer).outcome == "right"


def test_a_model_may_ask(service):
    service.replies.append((200, {}, _chat_reply("<unclear/>")))
    answer = HttpSystem("chat-rewrite", Endpoint(url=service.url)).answer(_task("hashline"))
    assert "2:" in service.requests[0][2]["messages"][-1]["content"]
    assert answer.status == "asked"


def test_apply_service_and_what_its_choices_write(service):
    choices = [{"id": "c1"}, {"id": "c2"}]
    asked = {"status": "needs_review", "merged": None, "choices": choices, "usage": USAGE}
    resolved = [
        {"status": "applied", "merged": text, "usage": USAGE} for text in ("other\n", RIGHT)
    ]
    service.replies += [(200, {}, asked), *((200, {}, reply) for reply in resolved)]
    answer = ApplyService(Endpoint(url=service.url)).answer(_task("hashline"))
    first, second = service.requests[0][2], service.requests[1][2]
    assert (first["format"], first["update"][0]["pos"]) == ("hashline", "2:0000")
    assert second["resolve"] == "c1"
    found = judge(_task("hashline"), answer)
    assert (found.outcome, found.after_question) == ("asked_needlessly", True)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ((200, {}, {"status": "rejected", "merged": None, "usage": USAGE}), "refused"),
        ((422, {}, {"detail": "no place"}), "refused"),
        ((500, {}, {"error": "broken"}), "failed"),
        ((200, {}, {"nothing": 1}), "failed"),
    ],
)
def test_what_is_no_success(reply, status, service):
    service.replies.append(reply)
    assert ApplyService(Endpoint(url=service.url)).answer(_task()).status == status


def test_a_busy_service_is_asked_again(service):
    service.replies += [(429, {"Retry-After": "0"}, {}), (200, {}, {"mergedCode": RIGHT})]
    answer = HttpSystem("relace", Endpoint(url=service.url)).answer(_task())
    assert answer.text == RIGHT
    assert len(service.requests) == 2


def test_nobody_listens():
    answer = HttpSystem("relace", Endpoint(url="http://127.0.0.1:9")).answer(_task())
    assert answer.status == "failed"
    assert "HTTP 0" in answer.note


def test_the_speed_track_counts_all_and_right_edits(service):
    service.replies += [(200, {}, {"mergedCode": RIGHT})] * 6 + [(200, {}, {"mergedCode": "x"})] * 2
    system = HttpSystem("relace", Endpoint(url=service.url))
    speed = measure(system, [_task(id=str(n)) for n in range(8)], num_at_once=4)
    assert (speed.num_tasks, speed.num_failed) == (8, 0)
    assert speed.right_per_s == pytest.approx(speed.edits_per_s * 0.75, rel=0.02)
    with pytest.raises(BenchError, match="no dialect"):
        measure(system, [_task("diff")], num_at_once=1)


def test_an_unknown_api_is_named():
    assert "morph" in ENDPOINTS
    with pytest.raises(BenchError, match="no API 'x'"):
        HttpSystem("x", Endpoint(url="http://127.0.0.1:9"))
