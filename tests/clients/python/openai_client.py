"""Runs the list of what a client must be able to do with Python's openai, and prints what came of it as JSON.

Reads one JSON object from standard input: model, embeddings, and services, each with its base_url, key, and the keys of
accounts whose plan refuses. Prints a list with {name: {...}} for each service; a step that failed in an unexpected way
has "unexpected".
"""

import json
import math
import ssl
import sys
import time

import openai
from openai import OpenAI
from pydantic import BaseModel

PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII="
)
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
read = json.load(sys.stdin)
model = read["model"]
services = [(given, {}) for given in read["services"]]
# Each client would load the certificates again, which takes longer than its requests.
tls = ssl.create_default_context()
slept = []
# The SDK's own pauses between two tries take no time, and are told instead.
time.sleep = slept.append


class Weather(BaseModel):
    city: str
    degrees: float


def connect(key, **options):
    """A client, and the list to which every HTTP request that it makes is added."""
    sent = []
    hooks = {"request": [lambda request: sent.append(request.url.path)]}
    http_client = openai.DefaultHttpxClient(event_hooks=hooks, verify=tls)
    return OpenAI(base_url=given["base_url"], api_key=key, http_client=http_client, **options), sent


def step(name, run):
    """Runs one step with a client of its own and keeps what it gives."""
    client, sent = connect(given["key"])
    try:
        results[name] = {**run(client), "requests": len(sent)}
    except Exception as error:  # Whatever it is, the test is to show it.
        results[name] = {"unexpected": f"{type(error).__name__}: {error}", "requests": len(sent)}


def refused(name, key, ask, **options):
    """What a person reads who is refused, and how many requests that took."""
    client, sent = connect(key, **options)
    slept.clear()
    try:
        ask(client)
        results[name] = {"unexpected": "it was not refused"}
    except openai.APIStatusError as error:
        results[name] = {
            "class": type(error).__name__,
            "status": error.status_code,
            "code": error.code,
            "said": str(error),
            "message": error.body["message"],
            "request_id": error.request_id,
            "requests": len(sent),
            "slept": list(slept),
        }
    except Exception as error:
        results[name] = {"unexpected": f"{type(error).__name__}: {error}", "requests": len(sent)}


def weather_in(arguments):
    city = json.loads(arguments)["city"]
    return f"{len(city)} degrees in {city}"


def chat_text(client):
    answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Say hello."}])
    return {"text": answer.choices[0].message.content, "model": answer.model, "tokens": answer.usage.completion_tokens}


def chat_stream(client):
    pieces, finish = [], None
    messages = [{"role": "user", "content": "Say hello."}]
    for chunk in client.chat.completions.create(model=model, messages=messages, stream=True):
        if chunk.choices:
            pieces.append(chunk.choices[0].delta.content or "")
            finish = chunk.choices[0].finish_reason or finish
    return {"text": "".join(pieces), "pieces": len(pieces), "finish": finish}


def chat_tools(client):
    messages = [{"role": "user", "content": "What is the weather in Oslo and Lima?"}]
    tools = [{"type": "function", "function": WEATHER}]
    first = client.chat.completions.create(model=model, messages=messages, tools=tools)
    calls = first.choices[0].message.tool_calls
    messages.append(first.choices[0].message)
    for call in calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": weather_in(call.function.arguments)})
    second = client.chat.completions.create(model=model, messages=messages, tools=tools)
    return {"text": second.choices[0].message.content, "calls": len(calls)}


def chat_structured(client):
    messages = [{"role": "user", "content": "The weather?"}]
    answer = client.chat.completions.parse(model=model, messages=messages, response_format=Weather)
    return {"parsed": answer.choices[0].message.parsed.model_dump()}


def chat_image(client):
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": content}])
    return {"text": answer.choices[0].message.content}


def responses_text(client):
    answer = client.responses.create(model=model, input="Say hello.")
    return {"text": answer.output_text, "model": answer.model, "tokens": answer.usage.output_tokens}


def responses_stream(client):
    pieces, finish = [], None
    for event in client.responses.create(model=model, input="Say hello.", stream=True):
        if event.type == "response.output_text.delta":
            pieces.append(event.delta)
        finish = event.type
    return {"text": "".join(pieces), "pieces": len(pieces), "finish": finish}


def responses_tools(client):
    items = [{"role": "user", "content": "What is the weather in Oslo and Lima?"}]
    tools = [{"type": "function", "strict": True, **WEATHER}]
    first = client.responses.create(model=model, input=items, tools=tools, store=False)
    calls = [item for item in first.output if item.type == "function_call"]
    items += first.output
    for call in calls:
        output = weather_in(call.arguments)
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    second = client.responses.create(model=model, input=items, tools=tools, store=False)
    return {"text": second.output_text, "calls": len(calls)}


def responses_structured(client):
    answer = client.responses.parse(model=model, input="The weather?", text_format=Weather)
    return {"parsed": answer.output_parsed.model_dump()}


def responses_image(client):
    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
    ]
    return {"text": client.responses.create(model=model, input=[{"role": "user", "content": content}]).output_text}


FUSION = "svc-router:fusion"
CONSULT = "Please consult other models: how many?"
# How a deliberation is asked for: what goes with each request, and which model is asked.
WAYS = {
    "alias": ({}, "svc-router/fusion"),
    "tool": ({"tools": [{"type": FUSION}]}, model),
    "header": ({"extra_headers": {"X-Svc-Router-Tools": FUSION}}, model),
}


def fused_chat(way, stream):
    options, asked = WAYS[way]

    def run(client):
        messages = [{"role": "user", "content": CONSULT}]
        answer = client.chat.completions.create(model=asked, messages=messages, stream=stream, **options)
        if not stream:
            return {"text": answer.choices[0].message.content, "fusion": answer.svc_router["fusion"]}
        text, fusion = "", None
        for chunk in answer:
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""
            fusion = (getattr(chunk, "svc_router", None) or {}).get("fusion", fusion)
        return {"text": text, "fusion": fusion}

    return run


def fused_responses(way, stream):
    options, asked = WAYS[way]

    def run(client):
        if stream:
            with client.responses.stream(model=asked, input=CONSULT, **options) as events:
                for _ in events:
                    pass
                answer = events.get_final_response()
        else:
            answer = client.responses.create(model=asked, input=CONSULT, **options)
        items = [item.type for item in answer.output if item.type != "reasoning"]
        return {"text": answer.output_text, "items": items, "fusion": answer.svc_router["fusion"]}

    return run


def embeddings(client):
    texts = ["The cat sleeps.", "The dog runs.", "The cat sleeps."]
    first, second, third = client.embeddings.create(model=read["embeddings"], input=texts, dimensions=16).data
    return {
        "size": len(first.embedding),
        "length": math.hypot(*first.embedding),
        "same": first.embedding == third.embedding and first.embedding != second.embedding,
    }


def models(client):
    return {"ids": [entry.id for entry in client.models.list()], "one": client.models.retrieve(model).id}


def ask_chat(client):
    client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}])


def ask_stream(client):
    client.responses.create(model=model, input="Hello", stream=True)


def ask_fusion(client):
    tools = [{"type": "svc-router:fusion"}]
    client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}], tools=tools)


# First, while the minutes are still spent.
for given, results in services:
    for name, key, ask, options in [
        ("refused_401", "sk_svc_mistyped", ask_chat, {}),
        ("refused_401_stream", "sk_svc_mistyped", ask_stream, {}),
        ("refused_402", given["spent_month"], ask_chat, {}),
        ("refused_403", given["free"], ask_fusion, {}),
        ("refused_429", given["spent_minute"], ask_chat, {"max_retries": 0}),
        ("refused_429_waiting", given["spent_minute"], ask_stream, {}),
    ]:
        refused(name, key, ask, **options)
for given, results in services:
    for run in [
        chat_text,
        chat_stream,
        chat_tools,
        chat_structured,
        chat_image,
        responses_text,
        responses_stream,
        responses_tools,
        responses_structured,
        responses_image,
        embeddings,
        models,
    ]:
        step(run.__name__, run)
    for way in WAYS:
        for form, stream in [("whole", False), ("streamed", True)]:
            step(f"{way}_chat_{form}", fused_chat(way, stream))
            step(f"{way}_responses_{form}", fused_responses(way, stream))
json.dump([results for _, results in services], sys.stdout)
