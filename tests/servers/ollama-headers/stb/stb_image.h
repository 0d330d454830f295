// Ollama's Go module comes without its vendored headers. This one lets it compile: whoever decodes a picture is told that it failed.
#pragma once

static unsigned char *stbi_load_from_memory(const unsigned char *, int, int *, int *, int *, int) { return nullptr; }
static void stbi_image_free(void *) {}
