"""Creates, continues and deletes a conversation with Python's openai, and prints what came of it as JSON."""

import json
import sys

import openai

model = sys.argv[1]
client = openai.OpenAI()
results = {"empty": client.conversations.create().object}
made = client.conversations.create(items=[{"role": "user", "content": "My name is Ada."}])
results["metadata"] = client.conversations.update(made.id, metadata={"topic": "x"}).metadata
first = client.responses.create(model=model, input="Who am I?", conversation=made.id)
results["conversation"] = first.conversation.id == made.id
last = None
for event in client.responses.create(model=model, input="Sure?", conversation={"id": made.id}, stream=True):
    last = event
results["streamed"] = last.type == "response.completed" and last.response.conversation.id == made.id
results["roles"] = [item.role for item in client.conversations.items.list(made.id, order="asc", limit=2)]
added = client.conversations.items.create(made.id, items=[{"role": "user", "content": "One more."}])
item_id = added.data[0].id
results["found"] = client.conversations.items.retrieve(item_id, conversation_id=made.id).content[0].text
results["deleted_item"] = client.conversations.items.delete(item_id, conversation_id=made.id).object
gone = client.conversations.delete(made.id)
results["deleted"] = [gone.deleted, gone.object]
try:
    client.conversations.retrieve(made.id)
except openai.NotFoundError as error:
    results["refused"] = [error.status_code, error.code]
json.dump(results, sys.stdout)
