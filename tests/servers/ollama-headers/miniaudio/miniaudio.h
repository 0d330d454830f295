// Ollama's Go module comes without its vendored headers. This one lets it compile: whoever decodes audio is told that it failed.
#pragma once
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>

typedef int ma_result;
typedef uint64_t ma_uint64;
enum { MA_SUCCESS = 0, MA_NOT_IMPLEMENTED = -29 };
enum ma_format { ma_format_f32 };
struct ma_decoder_config {};
struct ma_decoder {};

static ma_decoder_config ma_decoder_config_init(ma_format, uint32_t, uint32_t) { return {}; }
static ma_result ma_decoder_init_memory(const void *, size_t, const ma_decoder_config *, ma_decoder *) { return MA_NOT_IMPLEMENTED; }
static ma_result ma_decoder_get_length_in_pcm_frames(ma_decoder *, ma_uint64 *) { return MA_NOT_IMPLEMENTED; }
static ma_result ma_decoder_read_pcm_frames(ma_decoder *, void *, ma_uint64, ma_uint64 *) { return MA_NOT_IMPLEMENTED; }
static ma_result ma_decoder_uninit(ma_decoder *) { return MA_SUCCESS; }
