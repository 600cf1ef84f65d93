"""The official OpenAI client against a real cluster, through `connect`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import jsonschema
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from tests.lab.conftest import MakeLab
from tests.lab.lab import NodeSpec
from tests.lab.operator import Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

KEY = "a-key-of-the-lab"
KEY_FILE = "/root/keys"
ALIAS = "smollm2"
QUESTION: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the capital of France?"}]
TOWN: ResponseFormatJSONSchema = {
    "type": "json_schema",
    "json_schema": {
        "name": "town",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"town": {"type": "string", "maxLength": 20}, "is_capital": {"type": "boolean"}},
            "required": ["town", "is_capital"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def operator(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    lab = make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])
    lab.ssh("head", f"umask 077; echo {KEY} >{KEY_FILE}")
    plain = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["left", "right"])
    server = {**plain.recipe["server"], "api_key_file": KEY_FILE}
    operator = plain.with_recipe(model={"path": lab.model_path, "alias": ALIAS}, server=server, context=1024)
    operator.succeed("up")
    yield operator
    operator.succeed("down")
    lab.ssh("head", f"rm {KEY_FILE}")
    assert remains(lab) == {}


@pytest.fixture(scope="module")
def url(operator: Operator) -> Iterator[str]:
    with operator.running("connect", "--port", "0", "--json") as connecting:
        wait_until(lambda: connecting.printed.endswith("\n"))
        document = json.loads(connecting.printed)
        assert document["wants_key"] is True
        yield f"{document['url']}/v1"
        assert connecting.interrupt().exit_code == 0


def test_the_question_that_status_prints_is_answered_on_the_head(operator: Operator) -> None:
    shown = operator.succeed("status").stdout
    question, _, rest = shown.partition("ask it on head:\n")[2].partition("to ask from here")
    where = rest.partition("API_KEY is")[2]
    assert where.split() == ["a", "line", "of", KEY_FILE, "on", "head"]
    answer = operator.lab.ssh("head", f"API_KEY=$(cat {KEY_FILE})\n{question}")
    assert json.loads(answer.stdout)["choices"]


@pytest.mark.parametrize(
    "command", [["check"], ["status"], ["up"], ["logs", "-n", "3"]], ids=lambda words: words[0]
)
def test_a_document_of_a_real_cluster_is_what_its_schema_says(command: list[str], operator: Operator) -> None:
    schema = operator.succeed("schema", command[0]).document
    jsonschema.validate(operator.succeed(*command, "--json").document, schema, jsonschema.Draft202012Validator)


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key=KEY, timeout=60) as client:
        yield client


def test_the_model_is_listed_under_its_alias(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [ALIAS]


def test_a_chat_is_answered(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=ALIAS, messages=QUESTION, temperature=0, max_tokens=16)
    assert answer.choices[0].message.content
    assert answer.model == ALIAS
    assert answer.usage is not None
    assert 0 < answer.usage.completion_tokens <= 16


def test_a_streamed_chat_comes_in_pieces_and_says_the_same(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=ALIAS, messages=QUESTION, temperature=0, max_tokens=16)
    stream = client.chat.completions.create(
        model=ALIAS, messages=QUESTION, temperature=0, max_tokens=16, stream=True
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert len([piece for piece in pieces if piece]) > 3
    assert "".join(pieces) == whole.choices[0].message.content


def test_a_json_schema_is_kept_to(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=ALIAS, messages=QUESTION, temperature=0, max_tokens=64, response_format=TOWN
    )
    town = json.loads(answer.choices[0].message.content or "")
    assert town.keys() == {"town", "is_capital"}
    assert isinstance(town["town"], str)
    assert isinstance(town["is_capital"], bool)


def test_embeddings_that_are_not_served_are_refused_with_the_reason(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError, match="does not support embeddings") as refused:
        client.with_options(max_retries=0).embeddings.create(model=ALIAS, input="Paris")
    assert refused.value.status_code == 501
    assert client.chat.completions.create(model=ALIAS, messages=QUESTION, max_tokens=1).choices


def test_a_wrong_key_is_refused(url: str) -> None:
    with (
        openai.OpenAI(base_url=url, api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.chat.completions.create(model=ALIAS, messages=QUESTION, max_tokens=1)


def test_bench_knows_the_key(operator: Operator) -> None:
    arguments = ("--prompt-tokens", "16", "--decode-tokens", "8", "--repetitions", "1", "--warmup", "0")
    document = operator.succeed("bench", "--json", *arguments).document
    assert document["runs"][0]["loads"][0]["figures"]["decode_tok_s"]["median"] > 0
